"""Metrics as Prometheus reads them (text exposition format 0.0.4)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from controller.lifecycle import RunningController
from controller.plane.naming import FabricNames

MEDIA: Final = "text/plain"
Labels = Mapping[str, str]
_NONE: Final[Labels] = {}


def metrics(running: RunningController, uptime_s: float, refused: Mapping[str, int]) -> str:
    """Return all metrics as they are now. Loads of links are of the newest sample: none while links are not sampled.

    refused: requests that the HTTP process has refused, by status.
    """
    return "".join(_families(running, uptime_s, refused))


def _families(running: RunningController, uptime_s: float, refused: Mapping[str, int]) -> Iterator[str]:
    snapshot = running.snapshot()
    names = FabricNames(snapshot)
    agents = running.agents.agents()
    counts = {
        "switches": ("Switches that are connected.", sum(switch.connected for switch in snapshot.switches)),
        "links_up": ("Links between switches that are up.", sum(link.up for link in snapshot.links)),
        "hosts": ("Hosts whose place is known.", sum(host.place is not None for host in snapshot.hosts)),
        "agents": ("Host agents that are connected.", sum(agent.connected for agent in agents)),
        "faults": ("Faults that were made on purpose and are in force.", len(running.faults.all())),
        "uptime_seconds": ("Since the controller's start.", uptime_s),
    }
    for name, (meaning, count) in counts.items():
        yield _family(name, "gauge", meaning, [(_NONE, count)])
    yield _family(
        "scheme", "gauge", "1 for the scheme in force.", [({"scheme": running.current.scheme.name}, 1)]
    )
    modes = [({"leaf": names.switch(leaf.leaf)}, float(leaf.mode == "on")) for leaf in snapshot.modes]
    yield _family("leaf_mode_on", "gauge", "1 while a leaf's mode is ON.", modes)
    events = [({"kind": kind}, count) for kind, count in sorted(running.events.totals().items())]
    yield _family("events_total", "counter", "Events since the start.", events)
    of_switches = {**running.shell.counters(), "refused-hosts": snapshot.refused_hosts}
    openflow = [({"what": name}, count) for name, count in sorted(of_switches.items())]
    yield _family("openflow_total", "counter", "What happened on switches' connections.", openflow)
    channel = [({"what": name}, count) for name, count in sorted(running.agents.counters().items())]
    yield _family("agents_total", "counter", "What happened on agents' connections.", channel)
    statuses = [({"status": status}, count) for status, count in sorted(refused.items())]
    meaning = "Requests that the HTTP process has refused, by status, and connections that it has cut off."
    yield _family("http_refused_total", "counter", meaning, statuses)
    stream = running.live.stream.counters()
    yield _family(
        "stream_readers", "gauge", "Who reads the stream of events.", [(_NONE, stream.pop("readers"))]
    )
    stream_totals = [({"what": name}, count) for name, count in stream.items()]
    yield _family(
        "stream_total", "counter", "What the stream of events has sent, and could not send.", stream_totals
    )
    totals = running.live.links.totals()
    meaning = "Sent into a link, from a to b (ab: as its name says) or back."
    octets = [({"link": link, "direction": way}, sent) for link, way, sent, _ in totals]
    yield _family("link_bytes_total", "counter", meaning, octets)
    packets = [({"link": link, "direction": way}, sent) for link, way, _, sent in totals]
    yield _family("link_packets_total", "counter", meaning, packets)
    counters = [
        ({"host": agent.host, "counter": name}, value)
        for agent in agents
        for name, value in sorted(agent.counters.items())
    ]
    yield _family("agent_counter", "untyped", "Counters and gauges of host agents, by their names.", counters)


def _family(name: str, kind: str, meaning: str, values: Iterable[tuple[Labels, float]]) -> str:
    full = f"capstan_{name}"
    lines = [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}"]
    for labels, value in values:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{full}{{{inside}}} {_number(value)}" if inside else f"{full} {_number(value)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return str(int(value)) if value == int(value) else repr(float(value))
