"""A control plane that does what a test asks of it: the shell is what is tested, with real switches below."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controller.fabric.switch_data import Held, MeterReading, Port
from controller.openflow.wanted import (
    Bucket,
    FlowRule,
    Group,
    Match,
    Meter,
    Output,
    SetField,
    SwitchState,
    ThroughMeter,
    ToController,
    ToGroup,
    difference,
)
from controller.plane.effects import Effects


@dataclass
class ScriptedPlane:
    """Keeps all calls; gives each switch the state that ``states`` has for it, and else what ``on_*`` return."""

    states: dict[int, SwitchState] = field(default_factory=dict)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    ports: dict[int, dict[int, Port]] = field(default_factory=dict)
    held: dict[int, Held | None] = field(default_factory=dict)
    on_packet_in: Callable[..., Effects] = lambda *_: Effects()
    on_meter: Callable[..., Effects] = lambda *_: Effects()
    on_tick: Callable[[float], Effects] = lambda _: Effects()
    next_tick: float | None = None

    def refusal(self, dpid: int, now: float) -> str | None:
        return None

    def in_fabric(self, dpid: int) -> bool:
        return True

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] == kind]

    def switch_connected(self, dpid: int, ports: Sequence[Port], held: Held | None, now: float) -> Effects:
        self.calls.append(("connected", dpid, now))
        self.ports[dpid] = {port.number: port for port in ports}
        self.held[dpid] = held
        state = self.states.get(dpid)
        return Effects() if state is None else whole(dpid, state)

    def switch_disconnected(self, dpid: int, now: float) -> Effects:
        self.calls.append(("disconnected", dpid, now))
        return Effects()

    def applied(self, dpid: int, now: float) -> Effects:
        self.calls.append(("applied", dpid, now))
        return Effects()

    def progressed(self, dpid: int, now: float) -> None:
        self.calls.append(("progressed", dpid, now))

    def port_changed(self, dpid: int, port: Port, now: float) -> Effects:
        self.calls.append(("port", dpid, port, now))
        self.ports[dpid][port.number] = port
        return Effects()

    def packet_in(self, dpid: int, in_port: int, cookie: int, data: bytes, now: float) -> Effects:
        self.calls.append(("packet", dpid, in_port, cookie, data, now))
        return self.on_packet_in(dpid, in_port, cookie, data, now)

    def meter_sample(self, dpid: int, readings: Mapping[int, MeterReading], now: float) -> Effects:
        self.calls.append(("meter", dpid, readings, now))
        return self.on_meter(dpid, readings, now)

    def tick(self, now: float) -> Effects:
        self.next_tick = None
        return self.on_tick(now)

    def deadline(self) -> float | None:
        return self.next_tick


def whole(dpid: int, state: SwitchState) -> Effects:
    return Effects(updates={dpid: difference(SwitchState(), state)}, resync=frozenset({dpid}))


def change(dpid: int, have: SwitchState, want: SwitchState) -> Effects:
    return Effects(updates={dpid: difference(have, want)})


def state(
    flows: Sequence[FlowRule] = (), groups: Sequence[Group] = (), meters: Sequence[Meter] = ()
) -> SwitchState:
    return SwitchState(
        {flow.key: flow for flow in flows},
        {group.id: group for group in groups},
        {meter.id: meter for meter in meters},
    )


def everything() -> SwitchState:
    """Return one of every kind of thing that can be wanted of a switch with three ports."""
    udp = {"eth_type": 0x800, "ip_proto": 17}
    buckets = tuple(Bucket((SetField("udp_src", port), Output(port)), port) for port in (1, 2, 3))
    return state(
        [
            FlowRule(0, 1000, Match(eth_type=0x88CC), (ToController(256),), cookie=1),
            FlowRule(0, 1000, Match(eth_type=0x806, arp_op=1), (ToController(),), cookie=2),
            FlowRule(
                0, 100, Match(**udp, ip_dscp=8, udp_dst=(47000, 0xFFF8)), goto=1, metadata=(0x50000, 0x70000)
            ),
            FlowRule(0, 101, Match(**udp, udp_src=(0x4000, 0xC000), udp_dst=(47000, 0xFFFF)), goto=1),
            FlowRule(0, 5, Match(in_port=2, eth_dst="02:00:00:00:00:05"), (Output(3),), cookie=(1 << 48) - 1),
            FlowRule(0, 4, Match(eth_type=0x800, ipv4_src="10.0.0.0/9", ipv4_dst="10.0.1.0/24")),
            FlowRule(
                1,
                20,
                Match(**udp, ipv4_src="10.0.1.1", ipv4_dst="10.0.2.1", metadata=(0x40000, 0x40000)),
                (SetField("udp_dst", 47000), SetField("eth_dst", "02:00:00:00:00:01"), Output(1)),
                cookie=5,
            ),
            FlowRule(
                1,
                10,
                Match(eth_type=0x800),
                (
                    SetField("eth_src", "02:00:00:00:00:02"),
                    SetField("ipv4_src", "10.9.9.9"),
                    SetField("ipv4_dst", "10.9.9.8"),
                    SetField("ip_dscp", 24),
                    SetField("metadata", 77),
                    ThroughMeter(1),
                    ToController(64),
                ),
                goto=2,
                metadata=(3, 0xFFFF_FFFF_FFFF_FFFF),
                cookie=3,
            ),
            FlowRule(2, 10, Match(metadata=(3, 0xFFFF_FFFF_FFFF_FFFF)), (ToGroup(256),)),
            FlowRule(2, 9, Match(metadata=(0x80000, 0x80000)), (ToGroup(320),)),
            FlowRule(2, 0, Match()),
        ],
        [
            Group(256, "dp_hash", 0xABCD1234, buckets * 85),
            Group(
                320,
                "hash",
                7,
                tuple(Bucket((Output(port),), port, weight=port) for port in (1, 2, 3)),
                ("ipv4_src", "ipv4_dst", "udp_dst"),
            ),
            Group(321, "hash", 1, (Bucket((Output(1),), None),), ("udp_dst",)),
        ],
        [Meter(1), Meter(9)],
    )
