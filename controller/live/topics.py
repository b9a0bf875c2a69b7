"""What a stream of events is about, by topic, and how its events look."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any, Final

from controller.fabric.events import LinkDown, LinkUp
from controller.fabric.graph import PortRef
from controller.live.event_log import Logged, kind_of
from controller.plane.faults import Fault
from controller.plane.naming import FabricNames

LOG_TOPICS: Final = ("fabric", "modes", "scheme", "agents", "experiments", "faults")
"""Topics of events: each is sent once, in order."""
SAMPLE_TOPICS: Final = ("links", "flows")
"""Topics of samples: only the newest counts, older ones may be dropped."""
TOPICS: Final = (*LOG_TOPICS, *SAMPLE_TOPICS)
_TOPIC_OF: Final = {
    "mode-changed": "modes",
    "mode-switched": "modes",
    "partition-changed": "modes",
    "scheme-changed": "scheme",
    "agent-event": "agents",
    "capton-capacity": "agents",
    "capton-fail-safe": "agents",
    "capton-sent-again": "agents",
    "experiment-created": "experiments",
    "experiment-submitted": "experiments",
    "experiment-changed": "experiments",
    "experiment-progress": "experiments",
    "run-added": "experiments",
    "experiment-ended": "experiments",
    "fault-began": "faults",
    "fault-ended": "faults",
    "part-restarted": "faults",
}


def topic_of(event: Any) -> str:
    """Return the topic of an event; what is of no other is of the fabric."""
    return _TOPIC_OF.get(kind_of(event), "fabric")


def event_object(logged: Logged, names: FabricNames) -> dict[str, Any]:
    """Return an event as the API shows it: switches and links by name."""
    document: dict[str, Any] = {"cursor": logged.cursor, "at": logged.at, "kind": kind_of(logged.data)}
    for field in dataclasses.fields(logged.data):
        value = getattr(logged.data, field.name)
        if field.name == "dpid":
            document |= {"switch": names.switch(value), "dpid": f"{value:016x}"}
        elif field.name == "leaf":
            document["leaf"] = names.switch(value)
        elif isinstance(value, PortRef):
            document[field.name] = {"switch": names.switch(value.dpid), "port": value.port}
        elif isinstance(value, Fault):
            document["fault"] = fault_object(value)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            document[field.name] = dataclasses.asdict(value)
        elif field.name != "at":
            document[field.name] = value
    if isinstance(logged.data, LinkUp | LinkDown):
        document["link"] = names.between(logged.data.a, logged.data.b)
    return document


def fault_object(fault: Fault) -> Any:
    """Return a fault as the API shows it."""
    names = ("id", "kind", "target", "rate_mbps", "delay_ms", "began_at")
    return {name: getattr(fault, name) for name in names}


def frame(topic: str, data: Any, identity: str | None = None) -> bytes:
    """Return one event of a stream (WHATWG HTML, section 9.2, server-sent events)."""
    head = f"id: {identity}\n" if identity is not None else ""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, default=str)
    return f"{head}event: {topic}\ndata: {text}\n\n".encode()


def parse_topics(text: str) -> frozenset[str]:
    """Return the topics from a query, comma-separated. Raises ValueError that names the one that is none."""
    wanted = [topic.strip() for topic in text.split(",") if topic.strip()]
    for topic in wanted:
        if topic not in TOPICS:
            raise ValueError(unknown(topic, TOPICS))
    if not wanted:
        raise ValueError(f"name at least one of {', '.join(TOPICS)}")
    return frozenset(wanted)


def unknown(topic: str, known: Iterable[str]) -> str:
    """Return, in words, that there is no such topic, and which there are."""
    return f"topic {topic!r} is not known; there are {', '.join(known)}"
