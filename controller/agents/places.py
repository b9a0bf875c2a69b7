"""What agents know of the fabric: the leaf of each host, and the paths from each leaf."""

from __future__ import annotations

from collections.abc import Container

from protocol.control import Paths
from protocol.frames import encode


class Places:
    """Leaves are named by the text that `Peer.leaf` carries, hosts by their underlay address."""

    def __init__(self) -> None:
        self._leaves: dict[str, str] = {}
        self._paths: dict[str, Paths] = {}
        self._frames: dict[str, bytes] = {}

    def leaf_of(self, underlay_ip: str) -> str:
        """Return the leaf of a host, "" while it is not known."""
        return self._leaves.get(underlay_ip, "")

    def set_leaf(self, underlay_ip: str, leaf: str) -> bool:
        """Set the leaf of a host. Return True if it changed."""
        changed = self.leaf_of(underlay_ip) != leaf
        self._leaves[underlay_ip] = leaf
        return changed

    def keep_leaves(self, underlay_ips: Container[str]) -> None:
        """Forget the leaves of all other hosts."""
        self._leaves = {address: leaf for address, leaf in self._leaves.items() if address in underlay_ips}

    def set_paths(self, leaf: str, paths: Paths) -> bool:
        """Set the paths of a leaf. Return True if they changed. Raises ControlError if a message cannot hold them."""
        if self._paths.get(leaf) == paths:
            return False
        self._frames[leaf] = encode(paths)
        self._paths[leaf] = paths
        return True

    def paths_frame(self, underlay_ip: str) -> bytes | None:
        """Return the message about paths for the agent at that address; None while nothing is known."""
        return self._frames.get(self.leaf_of(underlay_ip))
