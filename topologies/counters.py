"""What a port has sent and dropped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from topologies.namespaces import run


@dataclass(frozen=True)
class PortCounters:
    """What one end of a link has sent into it, from its queueing discipline (or its interface)."""

    interface: str
    sent_bytes: int
    sent_packets: int
    dropped_packets: int
    queued_packets: int


def read_counters(interface: str) -> PortCounters:
    """Return the counters of an interface in the namespace of this thread. Raises CommandError if there is none."""
    disciplines: list[Mapping[str, Any]] = json.loads(
        run(["tc", "-s", "-j", "qdisc", "show", "dev", interface])
    )
    root = next((entry for entry in disciplines if entry.get("root") and entry["kind"] != "noqueue"), None)
    if root is not None:
        return PortCounters(interface, root["bytes"], root["packets"], root["drops"], root["qlen"])
    sent = json.loads(run(["ip", "-s", "-j", "link", "show", "dev", interface]))[0]["stats64"]["tx"]
    return PortCounters(interface, sent["bytes"], sent["packets"], sent["dropped"], 0)
