"""Which hosts get the answer when an address that they asked for is found."""

from __future__ import annotations

from controller.fabric.arp import BROADCAST_MAC, NO_MAC, REQUEST, Arp, decode_arp
from controller.fabric.graph import PortRef
from controller.fabric.hosts import Host
from controller.fabric.resolver import REQUESTERS, WAIT_S, Resolver

SERVER = Host("10.0.9.9", "02:00:00:00:09:09", place=PortRef(9, 9))


class Askers:
    """Hosts that ask for the server, each at a port of its own."""

    def __init__(self) -> None:
        self.resolver = Resolver()

    def ask(self, number: int, now: float) -> None:
        mac = f"02:00:00:00:01:{number:02x}"
        request = Arp(BROADCAST_MAC, mac, REQUEST, mac, f"10.0.1.{number}", NO_MAC, SERVER.ipv4)
        self.resolver.wanted(request, PortRef(1, number), list, now)

    def answered(self, now: float) -> list[str]:
        replies = [decode_arp(out.data) for out in self.resolver.found(SERVER, now)]
        return sorted(reply.target_ip for reply in replies if reply is not None)


def test_hosts_that_have_asked_long_ago_keep_no_others_from_their_answer() -> None:
    askers = Askers()
    for number in range(1, REQUESTERS + 1):
        askers.ask(number, 0.0)
    for number in (REQUESTERS + 1, 1):
        askers.ask(number, 60.0)
    assert askers.answered(61.0) == ["10.0.1.1", f"10.0.1.{REQUESTERS + 1}"]


def test_at_most_so_many_hosts_are_remembered_at_a_time_and_each_by_its_last_request() -> None:
    askers = Askers()
    for number in range(1, REQUESTERS + 2):
        askers.ask(number, 0.0)
    askers.ask(1, 2.0)
    assert askers.answered(WAIT_S + 1.0) == ["10.0.1.1"]
