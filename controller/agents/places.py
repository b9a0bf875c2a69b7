"""What agents are told of the fabric: at which leaf each host is, and which paths there are from each leaf."""

from __future__ import annotations

from protocol.control import Paths, encode


class Places:
    """Leaves are named by the text that `Peer.leaf` carries, hosts by their underlay address."""

    def __init__(self) -> None:
        self._leaves: dict[str, str] = {}
        self._paths: dict[str, Paths] = {}
        self._frames: dict[str, bytes] = {}

    def leaf_of(self, underlay_ip: str) -> str:
        """Leaf of a host, "" while that is not known."""
        return self._leaves.get(underlay_ip, "")

    def set_leaf(self, underlay_ip: str, leaf: str) -> bool:
        """Whether that is news."""
        changed = self.leaf_of(underlay_ip) != leaf
        self._leaves[underlay_ip] = leaf
        return changed

    def set_paths(self, leaf: str, paths: Paths) -> bool:
        """Whether that is news. Raises ControlError for more than a message can hold."""
        if self._paths.get(leaf) == paths:
            return False
        self._frames[leaf] = encode(paths)
        self._paths[leaf] = paths
        return True

    def paths_frame(self, underlay_ip: str) -> bytes | None:
        """What the agent at that address is to know of paths; None while nothing is known."""
        return self._frames.get(self.leaf_of(underlay_ip))
