"""What ports of a fabric send to the controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from controller.control_plane import ControlPlane
from controller.fabric.arp import REPLY, REQUEST, Arp
from controller.fabric.graph import PortRef
from controller.fabric.lldp import encode_lldp
from controller.fabric.switch_data import Port
from controller.openflow.cookies import Rule
from tests.fuzz.target import Target


class Frames(Target):
    """LLDP and ARP at ports of a fabric: links and hosts come from what is right, and nothing else happens."""

    KEY: Final = b"0123456789abcdef"
    PORTS: Final = tuple(Port(number, f"p{number}", True, 10_000) for number in (1, 2, 3))
    samples = (
        *(encode_lldp(PortRef(dpid, 1), 1.0, b"0123456789abcdef") for dpid in (1, 2, 3)),
        encode_lldp(PortRef(1, 1), 1.0, b"another key that is not ours"),
        *(
            Arp("ff:ff:ff:ff:ff:ff", mac, operation, mac, address, "00:00:00:00:00:00", "10.0.0.9").encode()
            for mac in ("02:00:00:00:00:01", "02:00:00:00:00:02")
            for address in ("10.0.0.1", "10.0.0.2", "0.0.0.0")
            for operation in (REQUEST, REPLY)
        ),
    )

    def run(self, messages: Sequence[bytes]) -> None:
        plane, now = ControlPlane(self.KEY), 1.0
        for dpid in (1, 2):
            plane.switch_connected(dpid, self.PORTS, None, now)
        for data in messages:
            now += 0.01
            for rule in (Rule.LLDP, Rule.ARP):
                plane.packet_in(1 + len(data) % 3, len(data) % 5, int(rule), data, now=now)
            plane.tick(now)
        snapshot = plane.snapshot()
        signed = set(messages) & set(self.samples)
        assert len(snapshot.hosts) <= 2 * len(messages)
        assert len(snapshot.links) <= len(signed)
