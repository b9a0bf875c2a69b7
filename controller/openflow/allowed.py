"""The switches that may connect, by datapath id and the name in their certificate, from a file of the operator's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from capstan_client.errors import CapstanError

_DPID: Final = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})")


class AllowedSwitchesError(CapstanError, ValueError):
    """A file of switches that cannot be used; the text says where, what and what to do."""


@dataclass(frozen=True, slots=True)
class AllowedSwitches:
    """``file``: where they are written, for what is said to those that are not.

    certificates: of the switches that must show a certificate of their own, its common name.
    """

    dpids: frozenset[int]
    file: str
    certificates: Mapping[int, str] = field(default_factory=dict)

    def refusal(self, dpid: int, certificate: str = "") -> str | None:
        """Return why a switch whose certificate has this common name may not connect, or None if it may."""
        if dpid in self.dpids:
            wanted = self.certificates.get(dpid)
            if wanted is None or certificate == wanted or certificate.startswith(f"{wanted} id:"):
                return None
            shown = repr(certificate) if certificate else "none"
            return (
                f"datapath id {dpid:016x} needs certificate {wanted!r} by {self.file}, and it shows {shown}"
            )
        text = f"{dpid:016x}"
        near = difflib.get_close_matches(text, [f"{dpid:016x}" for dpid in self.dpids], n=1, cutoff=0.9)
        hint = f" (did you mean it by {near[0]}?)" if near else ""
        return f"datapath id {text} is not in {self.file}{hint}; add a line with it if it may connect"


def read_allowed_switches(path: Path) -> AllowedSwitches:
    """Return the switches that *path* names: a datapath id a line, in hex as `ovs-vsctl` prints it; # begins a comment.

    A second word is the common name of the certificate that the switch has to show; what `ovs-pki` adds to a name
    (" id:" and a number) does not count.

    Raises AllowedSwitchesError; OSError if the file cannot be read.
    """
    dpids: dict[int, int] = {}
    certificates: dict[int, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        word, *certificate = line.partition("#")[0].split() or [""]
        if not word:
            continue
        match = _DPID.fullmatch(word)
        if len(certificate) > 1:
            raise AllowedSwitchesError(
                f"{' '.join(certificate[1:])!r} is too much",
                where=f"{path}:{number}",
                remedy="write a datapath id, and a certificate's name if the switch must show it",
            )
        if match is None:
            raise AllowedSwitchesError(
                f"{word!r} is not a datapath id",
                where=f"{path}:{number}",
                remedy="write up to 16 hex digits, such as 0000000000000001",
            )
        dpid = int(match[1], 16)
        if dpid in dpids:
            raise AllowedSwitchesError(
                f"{word} is in line {dpids[dpid]} already",
                where=f"{path}:{number}",
                remedy="remove one of them",
            )
        dpids[dpid] = number
        if certificate:
            certificates[dpid] = certificate[0]
    if not dpids:
        raise AllowedSwitchesError(
            f"{path} names no switch, so none could connect", remedy="write one datapath id a line"
        )
    return AllowedSwitches(frozenset(dpids), str(path), certificates)
