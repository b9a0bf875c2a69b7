"""From what a switch's database says of its ports, and the queues that a scheme wants, to what must be written there.

Three kinds of port:

- A program on the switch writes its queueing discipline and offers to give it queues (`ovsdb.port_queues`; the lab
  does): it gets number and buffer, and reports what is in force. Works with every datapath.
- Open vSwitch's kernel datapath: a QoS row of type ``linux-htb`` with a Queue row each, by which ovs-vswitchd writes an
  HTB tree; the flow entries' `set_queue` brings packets there. It has no word for a queue's buffer in packets.
- Anything else has no queues. Open vSwitch's userspace datapath (``netdev``) installs that HTB tree too, but brings
  every packet to the same queue whatever `set_queue` says: it would look like queues and be none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Literal

from controller.fabric.switch_data import MOST_PORTS
from ovsdb.port_queues import (
    APPLIED,
    ASKED_KEYS,
    MOST_RATE_BPS,
    NO_LIMIT,
    WRITER,
    Applied,
    PortLimit,
    PortQueues,
)
from ovsdb.session import Row, Tables, delete_keys, map_of, set_keys

COLUMNS: Final = {
    "Open_vSwitch": ("external_ids",),
    "Bridge": ("name", "ports", "datapath_type", "datapath_id"),
    "Port": ("name", "interfaces", "qos"),
    "Interface": ("name", "type", "ofport", "link_speed"),
    "QoS": ("type", "queues", "other_config", "external_ids"),
    "Queue": ("other_config",),
}
OWNER: Final = "capstan-owner"
"""Key of `external_ids` that marks rows of QoS and Queue which this controller has made."""
OWN_RATE_BPS: Final = 12_000
"""The least that Open vSwitch gives a class of its HTB tree: what a lower queue may send beside higher ones."""

By = Literal["writer", "openvswitch", "none"]


@dataclass(frozen=True, slots=True)
class PortState:
    """One port. ``number``: its OpenFlow number, 0 if it has none.

    by: who gives it its queues. queues, buffer_packets, rate_bps: what is in force (0: not known). problem: why that is
    not what is wanted, or "". limits: what this port cannot do, in words.
    """

    name: str
    number: int
    by: By
    queues: int
    buffer_packets: int
    rate_bps: int
    in_force: bool
    problem: str = ""
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchPlan:
    """What a switch's ports have, and the operations (of one transaction) that bring them to what is wanted."""

    bridge: str
    datapath: str
    ports: tuple[PortState, ...]
    operations: tuple[Mapping[str, Any], ...]

    @property
    def in_force(self) -> bool:
        """Return whether all its ports have what is wanted of them."""
        return all(port.in_force for port in self.ports)

    @property
    def problems(self) -> tuple[str, ...]:
        """Return in words what is wrong; ports with one problem together."""
        by_problem: dict[str, list[str]] = {}
        for port in self.ports:
            if port.problem:
                by_problem.setdefault(port.problem, []).append(port.name)
        return tuple(f"{', '.join(names)}: {problem}" for problem, names in by_problem.items())


def plan(
    tables: Tables, dpid: int, wanted: PortQueues, limits: Mapping[int, PortLimit] | None = None
) -> SwitchPlan | None:
    """Return what to write for a switch's ports; None while the database has no bridge with this datapath id.

    limits: of single ports, by OpenFlow number.
    """
    bridge = next((row for row in tables["Bridge"].values() if _number(row["datapath_id"], 16) == dpid), None)
    if bridge is None:
        return None
    datapath = str(bridge["datapath_type"] or "system")
    ports: list[PortState] = []
    operations: list[Mapping[str, Any]] = []
    for uuid, port, interface in islice(_ports(tables, bridge), MOST_PORTS):
        limit = (limits or {}).get(_number(interface["ofport"]), NO_LIMIT)
        state, changes = _port(
            tables, datapath, uuid, port, interface=interface, wanted=replace(wanted, limit=limit)
        )
        ports.append(state)
        operations += changes
    return SwitchPlan(str(bridge["name"]), datapath, tuple(ports), tuple(operations))


def _ports(tables: Tables, bridge: Row) -> Iterator[tuple[str, Row, Row]]:
    """Yield the ports that frames leave by, in order of their OpenFlow numbers: UUID, row, row of the interface."""
    ports = []
    for uuid in dict.fromkeys(_several(bridge["ports"])):
        port = tables["Port"].get(uuid)
        interfaces = [tables["Interface"].get(uuid) for uuid in _several(port["interfaces"])] if port else []
        if port is None or len(interfaces) != 1 or interfaces[0] is None:
            continue
        if interfaces[0]["type"] != "internal":
            ports.append((_number(interfaces[0]["ofport"]), uuid, port, interfaces[0]))
    for _, uuid, port, interface in sorted(ports, key=lambda entry: (entry[0], entry[1])):
        yield uuid, port, interface


def _port(
    tables: Tables, datapath: str, uuid: str, port: Row, *, interface: Row, wanted: PortQueues
) -> tuple[PortState, list[dict[str, Any]]]:
    qos = tables["QoS"].get(port["qos"]) if port["qos"] else None
    if qos is not None and WRITER in qos["external_ids"]:
        return _written(port, interface, qos, wanted)
    name, number, rate = (
        str(port["name"]),
        max(0, _number(interface["ofport"])),
        _rate(interface["link_speed"]),
    )
    ours = qos is not None and OWNER in qos["external_ids"]
    if wanted.limit != NO_LIMIT:
        return PortState(
            name, number, "none", 1, 0, max(0, rate), False, "no program here can slow it down"
        ), []
    if wanted.number == 1:
        limits = () if wanted.buffer_packets is None else (_NO_BUFFER,)
        return (
            PortState(name, number, "none", 1, 0, rate, in_force=not ours, limits=limits),
            _remove(tables, uuid, port["qos"]) if ours else [],
        )
    problem = ""
    if qos is not None and not ours:
        problem = (
            f"it has a QoS of type {qos['type']} that is not ours: `ovs-vsctl clear port {name} qos` frees it"
        )
    elif datapath == "netdev":
        problem = "the userspace datapath brings no packet to a queue, and no program here offers to write its ports"
    elif rate <= 0:
        problem = "Open vSwitch does not know its rate (link_speed), without which it makes no queues"
    if problem:
        return PortState(name, number, "none", 1, 0, max(0, rate), False, problem), (
            _remove(tables, uuid, port["qos"]) if ours else []
        )
    if qos is not None and _is_made(tables, qos, wanted.number, rate):
        return PortState(name, number, "openvswitch", wanted.number, 0, rate, True, limits=_LIMITS), []
    making = _make(uuid, number or 1, wanted.number, rate)
    before = _remove(tables, uuid, port["qos"]) if ours else []
    return PortState(name, number, "openvswitch", 1, 0, rate, False, limits=_LIMITS), [*before, *making]


_NO_BUFFER: Final = "buffer in packets: Open vSwitch cannot set it; the interface's txqueuelen holds"
_LIMITS: Final = (_NO_BUFFER, "waiting packets: Open vSwitch does not report them")


def _written(
    port: Row, interface: Row, qos: Row, wanted: PortQueues
) -> tuple[PortState, list[dict[str, Any]]]:
    """Return a port whose writer is on the switch."""
    config = {key: qos["other_config"][key] for key in ASKED_KEYS if key in qos["other_config"]}
    wanted_config = {} if wanted == PortQueues() else wanted.to_config()
    operations: list[dict[str, Any]] = []
    if config != wanted_config:
        operations += delete_keys("QoS", str(port["qos"]), "other_config", ASKED_KEYS)
        if wanted_config:
            operations += set_keys("QoS", str(port["qos"]), "other_config", wanted_config)
    has = Applied.from_text(qos["external_ids"].get(APPLIED, ""))
    written = has is not None and config == wanted_config and has.limit == wanted.limit
    problem = has.problem if has is not None and written else ""
    unshaped = has is not None and not has.rate_bps
    in_force = (
        written
        and has is not None
        and not problem
        and (unshaped or has.number == wanted.number)
        and (unshaped or wanted.buffer_packets in (None, has.buffer_packets))
    )
    has = has or Applied(0, 0, 0)
    state = PortState(
        str(port["name"]),
        max(0, _number(interface["ofport"])),
        "writer",
        has.number,
        has.buffer_packets,
        has.rate_bps,
        in_force,
        problem,
        ("queues: the link has no rate, so nothing ever waits",) if unshaped and wanted.number > 1 else (),
    )
    return state, operations


def _queue_config(queue: int, rate: int) -> dict[str, str]:
    return {"priority": str(queue), "min-rate": str(OWN_RATE_BPS), "max-rate": str(rate)}


def _is_made(tables: Tables, qos: Row, number: int, rate: int) -> bool:
    """Return whether the rows of a port are those that `_make` makes."""
    queues = {int(queue): tables["Queue"].get(uuid) for queue, uuid in dict(qos["queues"] or {}).items()}
    return (
        qos["type"] == "linux-htb"
        and qos["other_config"].get("max-rate") == str(rate)
        and {queue: row and row["other_config"] for queue, row in queues.items()}
        == {queue: _queue_config(queue, rate) for queue in range(number)}
    )


def _make(uuid: str, label: int, number: int, rate: int) -> list[dict[str, Any]]:
    mark = map_of({OWNER: "controller"})
    names = [f"port{label}queue{queue}" for queue in range(number)]
    operations: list[dict[str, Any]] = [
        {
            "op": "insert",
            "table": "Queue",
            "uuid-name": name,
            "row": {"other_config": map_of(_queue_config(queue, rate)), "external_ids": mark},
        }
        for queue, name in enumerate(names)
    ]
    qos = {
        "type": "linux-htb",
        "other_config": map_of({"max-rate": str(rate)}),
        "external_ids": mark,
        "queues": ["map", [[queue, ["named-uuid", name]] for queue, name in enumerate(names)]],
    }
    operations.append({"op": "insert", "table": "QoS", "uuid-name": f"port{label}", "row": qos})
    operations.append(_update_qos(uuid, ["named-uuid", f"port{label}"]))
    return operations


def _remove(tables: Tables, uuid: str, qos: str) -> list[dict[str, Any]]:
    """Return the rows of QoS and Queue do not go by themselves when nothing refers to them any more."""
    queues = [str(queue) for queue in dict(tables["QoS"][qos]["queues"] or {}).values()]
    return [
        _update_qos(uuid, ["set", []]),
        *(
            {"op": "delete", "table": table, "where": [["_uuid", "==", ["uuid", row]]]}
            for table, row in [("QoS", qos), *(("Queue", queue) for queue in queues)]
        ),
    ]


def _update_qos(uuid: str, value: list[Any]) -> dict[str, Any]:
    where = [["_uuid", "==", ["uuid", uuid]]]
    return {"op": "update", "table": "Port", "where": where, "row": {"qos": value}}


def _several(value: Any) -> tuple[str, ...]:
    """Return a column that holds one UUID or a set of them."""
    return (value,) if isinstance(value, str) else tuple(value)


def _rate(value: Any) -> int:
    """Return a column that holds a rate in bit/s; -1 for nothing, and for what no link has."""
    rate = _number(value)
    return rate if rate <= MOST_RATE_BPS else -1


def _number(value: Any, base: int = 10) -> int:
    """Return a column that holds a number (text for another base) or nothing; -1 for nothing."""
    if isinstance(value, int):
        return value
    try:
        return int(value, base) if isinstance(value, str) else -1
    except ValueError:
        return -1
