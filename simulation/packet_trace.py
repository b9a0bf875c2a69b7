"""A window of a simulated run, packet by packet: recorded, kept in a file, and read again.

The file is gzip over one JSON document of columns; docs/packet-traces.md describes it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from capstan_client.errors import CapstanError
from simulation.fabrics import SettingsError

if TYPE_CHECKING:
    import capstan_native

    from experiments.spec.spec import Spec
    from simulation.spec_fabric import SimulatedFabric
    from workloads.plan import Plan

FORMAT: Final = "capstan-packet-trace"
VERSION: Final = 1
KINDS: Final = ("data", "acknowledgement", "opening", "repair", "feedback")
CLASSES: Final = ("none", "short", "long", "control")
OUTCOMES: Final = ("sent", "dropped", "pending")
MOST_HOPS: Final = 200_000
"""Of one recording: some 3 MB of file, and what a page draws without waiting."""
MOST_BYTES: Final = 64_000_000
"""Of the document, uncompressed."""
_PS_PER_MS: Final = 10**9
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
class PacketTrace:
    """A recorded window. Times are ps from its begin; flows, packets and links are named by their rows.

    cut: the recording was full before the window was over, and ends at `length_ps`.
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


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded: a plan's flows on a spec's fabric, under a scheme."""

    spec: Spec
    scheme: str
    repeat: int
    plan: Plan
    fabric: SimulatedFabric


@dataclass(slots=True)
class Recorder:
    """Records the window of a run from `from_ms` on, for `for_ms` milliseconds, MOST_HOPS hops at most."""

    from_ms: float
    for_ms: float
    trace: PacketTrace | None = field(default=None, init=False)

    def begin(self, simulation: capstan_native.Simulation) -> None:
        """Have a run recorded that has not begun. Raises ValueError for a window that cannot be."""
        begin_ps = round(self.from_ms * _PS_PER_MS)
        simulation.record(begin_ps, begin_ps + round(self.for_ms * _PS_PER_MS), MOST_HOPS)

    def take(self, simulation: capstan_native.Simulation, recorded: Recorded) -> None:
        """Take what a run that is over has recorded.

        Raises:
            SettingsError: nothing happened in the window.
        """
        recording = simulation.recording()
        if recording is None or not recording["hops"]["packet"]:
            raise SettingsError(
                f"no packet was under way from {self.from_ms:g} ms on for {self.for_ms:g} ms: the run took "
                f"{simulation.now_ps() / _PS_PER_MS:g} ms",
                remedy="record another window",
            )
        begin_ps, full_ps = round(self.from_ms * _PS_PER_MS), recording["full_at_ps"]
        end_ps = min(begin_ps + round(self.for_ms * _PS_PER_MS), simulation.now_ps())
        end_ps = end_ps if full_ps is None else full_ps
        hops, releases = recording["hops"], recording["releases"]
        rows = sorted({*recording["packets"]["flow"], *releases["flow"]} - {-1})
        place = {row: index for index, row in enumerate(rows)} | {-1: -1}
        self.trace = PacketTrace(
            spec=recorded.spec.name,
            scheme=recorded.scheme,
            repeat=recorded.repeat,
            begin_ps=begin_ps,
            length_ps=end_ps - begin_ps,
            cut=full_ps is not None,
            hosts=tuple(place.name for place in recorded.spec.fabric.hosts()),
            links=_links(recorded.fabric, simulation.links()),
            flows=_flows(recorded, rows),
            packets=recording["packets"] | {"flow": [place[row] for row in recording["packets"]["flow"]]},
            hops={**hops, "offered_ps": [at - begin_ps for at in hops["offered_ps"]]},
            releases={
                **releases,
                "at_ps": [at - begin_ps for at in releases["at_ps"]],
                "flow": [place[row] for row in releases["flow"]],
            },
            modes=_modes(simulation, begin_ps, end_ps),
        )


def _links(fabric: SimulatedFabric, links: Sequence[capstan_native.SimulatedLink]) -> dict[str, list[Any]]:
    """Return the links by number, each with the nodes that it joins."""
    ends = [("", "")] * len(links)
    for name, (up, down) in fabric.links.items():
        lower, upper = name.split("-")
        ends[up], ends[down] = (lower, upper), (upper, lower)
    rooms = dict(fabric.rooms)
    return {
        "from": [one for one, _ in ends],
        "to": [other for _, other in ends],
        "bps": [link["bps"] for link in links],
        "delay_ps": [link["delay_ps"] for link in links],
        "room_packets": [rooms.get(number, 0) for number in range(len(links))],
    }


def _flows(recorded: Recorded, rows: Sequence[int]) -> dict[str, list[Any]]:
    """Return the flows of these rows; those behind the plan's are copies of its short flows, in their order."""
    flows = recorded.plan.flows
    copied = [flow for flow in flows if flow.traffic_class == "short"]
    of = [flows[row] if row < len(flows) else copied[row - len(flows)] for row in rows]
    number = {place.name: index for index, place in enumerate(recorded.spec.fabric.hosts())}
    return {
        "id": [flow.id for flow in of],
        "source": [number[flow.source] for flow in of],
        "destination": [number[flow.destination] for flow in of],
        "bytes": [flow.size_bytes for flow in of],
        "class": [flow.traffic_class for flow in of],
    }


def _modes(simulation: capstan_native.Simulation, begin_ps: int, end_ps: int) -> dict[str, list[Any]]:
    """Return the changes of leaves' modes in the window, behind the modes that were in force at its begin."""
    changes = [(at, leaf, mode == "on") for at, leaf, mode, _ in simulation.mode_changes() if at <= end_ps]
    before = {leaf: on for at, leaf, on in changes if at <= begin_ps}
    rows = [(0, leaf, on) for leaf, on in sorted(before.items())]
    rows += [(at - begin_ps, leaf, on) for at, leaf, on in changes if at > begin_ps]
    return {
        "at_ps": [at for at, _, _ in rows],
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
    for table, column in (("hops", "offered_ps"), ("releases", "at_ps")):
        times = document[table][column]
        document[table][column] = [later - before for before, later in pairwise([0, *times])]
    return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)


def write_trace(trace: PacketTrace, path: Path) -> None:
    """Write a trace's file."""
    path.write_bytes(trace_bytes(trace))


def read_packet_trace(path: Path) -> PacketTrace:
    """Return the trace of a file.

    Raises:
        PacketTraceError: it is none, with its path.
    """
    try:
        return parse_trace(path.read_bytes())
    except OSError as error:
        raise PacketTraceError(f"{path}: {error.strerror}") from None
    except PacketTraceError as error:
        raise PacketTraceError(f"{path}: {error}") from None


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
        table = {column: document[name][column] for column in columns}
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
        **tables,
    )
