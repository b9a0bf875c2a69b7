"""A window of a run, packet by packet, as it is kept in a file.

The file is gzip over one JSON document of columns; docs/packet-traces.md describes it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final

from capstan_client.errors import CapstanError

FORMAT: Final = "capstan-packet-trace"
VERSION: Final = 1
KINDS: Final = ("data", "acknowledgement", "opening", "repair", "feedback")
CLASSES: Final = ("none", "short", "long", "control")
OUTCOMES: Final = ("sent", "dropped", "pending")
WINDOW_MS: Final = 1000.0
"""Of a recording, unless another length is asked for."""
MOST_HOPS: Final = 200_000
"""Of one recording: some 3 MB of file, and what a page draws without waiting."""
MOST_BYTES: Final = 64_000_000
"""Of the document, uncompressed."""
FLIGHT: Final = "flight_ps"
"""A column of hops on real switches alone."""
_COLUMNS: Final = {
    "links": ("from", "to", "bps", "delay_ps", "room_packets"),
    "flows": ("id", "source", "destination", "bytes", "class"),
    "packets": ("flow", "number", "kind", "class", "bytes", "source", "destination"),
    "hops": ("packet", "link", "offered_ps", "waited_ps", "outcome", "queue"),
    "releases": ("at_ps", "flow", "number", "kind"),
    "modes": ("at_ps", "leaf", "on"),
}


class PacketTraceError(CapstanError):
    """A file is no packet trace, or not one that this version reads; the text says where it fails."""


@dataclass(frozen=True, slots=True)
class SwitchRecording:
    """What a recording of real switches lacks.

    unplaced_drops: packets that a port dropped, but not known which. left_out: hops without the one before them.
    """

    unplaced_drops: int
    left_out: int


@dataclass(frozen=True, slots=True)
class PacketTrace:
    """A recorded window. Times are ps from its begin; flows, packets and links are named by their rows.

    cut: the recording was full before the window was over, and ends at `length_ps`. switches: None where the run was
    simulated. Hops of a run on switches have a column more, FLIGHT.
    """

    spec: str
    scheme: str
    repeat: int
    begin_ps: int
    length_ps: int
    cut: bool
    hosts: tuple[str, ...]
    links: Mapping[str, Sequence[Any]]
    flows: Mapping[str, Sequence[Any]]
    packets: Mapping[str, Sequence[int]]
    hops: Mapping[str, Sequence[int]]
    releases: Mapping[str, Sequence[int]]
    modes: Mapping[str, Sequence[Any]]
    switches: SwitchRecording | None = None


def modes_in_window(
    changes: Sequence[tuple[int, int, bool]], begin_ps: int, end_ps: int
) -> dict[str, list[Any]]:
    """Return the columns of `modes`: changes in the window, behind the modes that were in force at its begin.

    changes: time in ps, leaf and whether it is ON from then on, in order.
    """
    before = {leaf: on for time_ps, leaf, on in changes if time_ps <= begin_ps}
    rows = [(0, leaf, on) for leaf, on in sorted(before.items())]
    rows += [(time_ps - begin_ps, leaf, on) for time_ps, leaf, on in changes if begin_ps < time_ps <= end_ps]
    return {
        "at_ps": [time_ps for time_ps, _, _ in rows],
        "leaf": [leaf for _, leaf, _ in rows],
        "on": [on for _, _, on in rows],
    }


def trace_bytes(trace: PacketTrace) -> bytes:
    """Return a trace as its file has it; the same trace gives the same bytes."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "spec": trace.spec,
        "scheme": trace.scheme,
        "repeat": trace.repeat,
        "begin_ps": trace.begin_ps,
        "length_ps": trace.length_ps,
        "cut": trace.cut,
        "hosts": list(trace.hosts),
        **{
            name: {column: list(getattr(trace, name)[column]) for column in _COLUMNS[name]}
            for name in _COLUMNS
        },
    }
    if trace.switches is not None:
        document["switches"] = asdict(trace.switches)
        document["hops"][FLIGHT] = list(trace.hops[FLIGHT])
    for table, column in (("hops", "offered_ps"), ("releases", "at_ps")):
        times = document[table][column]
        document[table][column] = [later - before for before, later in pairwise([0, *times])]
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)


def write_trace(trace: PacketTrace, path: Path) -> None:
    """Write a trace's file."""
    path.write_bytes(trace_bytes(trace))


def parse_trace(content: bytes) -> PacketTrace:
    """Return the trace that a file's bytes hold.

    Raises:
        PacketTraceError: they are none, are larger than MOST_BYTES, or name what is not there.
    """
    unpacking = zlib.decompressobj(wbits=31)
    try:
        text = unpacking.decompress(content, MOST_BYTES + 1)
        document = json.loads(text) if len(text) <= MOST_BYTES else None
    except (zlib.error, ValueError, RecursionError) as error:
        raise PacketTraceError(f"no packet trace: {error}") from None
    if document is None:
        raise PacketTraceError(f"more than {MOST_BYTES // 10**6} MB of JSON: record a shorter window")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise PacketTraceError(f"no packet trace: format is not {FORMAT!r}")
    if document.get("version") != VERSION:
        raise PacketTraceError(f"version {document.get('version')!r}: this Capstan reads version {VERSION}")
    try:
        return _checked(document)
    except (KeyError, TypeError) as error:
        raise PacketTraceError(f"a field is missing or of another kind: {error}") from None


def _checked(document: dict[str, Any]) -> PacketTrace:
    tables: dict[str, dict[str, list[Any]]] = {}
    for name, columns in _COLUMNS.items():
        more = (FLIGHT,) if name == "hops" and "switches" in document else ()
        table = {column: document[name][column] for column in (*columns, *more)}
        if len({len(column) for column in table.values()}) != 1:
            raise PacketTraceError(f"{name}: columns differ in length")
        tables[name] = table
    for name, column in (("hops", "offered_ps"), ("releases", "at_ps")):
        tables[name][column] = list(accumulate(tables[name][column]))
    counts = {name: len(next(iter(table.values()))) for name, table in tables.items()}
    for name, column, first, end in (
        ("packets", "flow", -1, counts["flows"]),
        ("packets", "kind", 0, len(KINDS)),
        ("packets", "class", 0, len(CLASSES)),
        ("packets", "source", 0, len(document["hosts"])),
        ("packets", "destination", 0, len(document["hosts"])),
        ("hops", "packet", 0, counts["packets"]),
        ("hops", "link", 0, counts["links"]),
        ("hops", "outcome", 0, len(OUTCOMES)),
        ("hops", "offered_ps", 0, document["length_ps"] + 1),
        ("hops", "waited_ps", 0, 2**63),
        ("releases", "flow", 0, counts["flows"]),
        ("releases", "kind", 0, len(KINDS)),
        *([("hops", FLIGHT, 0, 2**63)] if "switches" in document else []),
    ):
        for row, value in enumerate(tables[name][column]):
            if not (isinstance(value, int) and first <= value < end):
                raise PacketTraceError(
                    f"{name}.{column}, row {row + 1}: {value!r} is not from {first} to {end - 1}"
                )
    return PacketTrace(
        spec=document["spec"],
        scheme=document["scheme"],
        repeat=document["repeat"],
        begin_ps=document["begin_ps"],
        length_ps=document["length_ps"],
        cut=document["cut"],
        hosts=tuple(document["hosts"]),
        switches=SwitchRecording(**document["switches"]) if "switches" in document else None,
        **tables,
    )
