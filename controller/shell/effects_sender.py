"""Effects of the control plane on their way out: to the switches' connections, and to those who take events."""

from __future__ import annotations

import logging
from typing import Final

from controller.fabric.graph import PortRef
from controller.openflow.connection import SwitchConnection
from controller.plane.effects import Effects, ModeChanged, SwitchTurnedAway
from controller.plane.faults import PortsLeftOut
from controller.shell.context import ShellContext

LOG: Final = logging.getLogger(__name__)

TURNED_AWAY_EVERY_S: Final = 10.0
"""Between two events about switches that were turned away; the counter has all of them."""


class EffectsSender:
    """Sends in the OpenFlow thread."""

    def __init__(self, shell: ShellContext) -> None:
        self._shell: Final = shell
        self._board: Final = shell.board
        self._switches: Final = shell.board.switches
        self._turned_away_at = float("-inf")

    def send(self, effects: Effects, noticed: float) -> None:
        """Carry out what the control plane returned. noticed: when its cause was read from a switch, seconds."""
        self._send_updates(effects, noticed)
        for dpid, reason in effects.turned_away.items():
            connection = self._switches.get(dpid)
            if connection is not None:
                self.turn_away(connection, reason)
        self._send_requests(effects)
        for event in effects.events:
            if isinstance(event, SwitchTurnedAway):
                self.note(event)
            else:
                self._shell.on_event(event)

    def turn_away(self, connection: SwitchConnection, reason: str) -> None:
        """Close the connection of a switch that may not be here."""
        self._shell.counters["turned-away"] += 1
        self._board.close(connection, f"it is turned away: {reason}")

    def note(self, event: SwitchTurnedAway) -> None:
        """Pass the event on, unless another did so a moment ago: what is turned away may come back at once."""
        if event.at - self._turned_away_at >= TURNED_AWAY_EVERY_S:
            self._turned_away_at = event.at
            self._shell.on_event(event)

    def read_ports(self) -> None:
        """Ask all switches for their ports' counters."""
        for connection in tuple(self._switches.values()):
            connection.session.read_ports()
            self._board.flush(connection)

    def set_ports(self, ports: tuple[PortRef, ...], up: bool) -> PortsLeftOut:
        """Take ports down, or up, and return those that are left out."""
        away, missing = set(), set()
        for port in ports:
            connection = self._switches.get(port.dpid)
            if connection is None:
                away.add(port)
            elif not connection.session.has_port(port.port):
                missing.add(port)
            else:
                connection.session.set_port(port.port, up)
                self._board.flush(connection)
        return PortsLeftOut(frozenset(away), frozenset(missing))

    def _send_updates(self, effects: Effects, noticed: float) -> None:
        changes = {event.leaf: event for event in effects.events if isinstance(event, ModeChanged)}
        # A leaf whose mode changed goes first: its long flows are still on the wrong paths.
        for dpid in sorted(effects.updates, key=lambda dpid: dpid not in changes):
            connection = self._switches.get(dpid)
            if connection is None:
                continue  # it is gone; it gets its whole state when it comes back
            try:
                ticket = connection.session.apply(
                    effects.updates[dpid], dpid in effects.resync, self._shell.now()
                )
            except Exception as error:
                # The control plane counts it as sent: only a switch that begins anew gets it again.
                self._shell.counters["faults"] += 1
                LOG.exception("an update of switch %#x cannot be sent", dpid)
                self._board.close(connection, f"an update cannot be sent to it: {error!r}")
                continue
            self._board.flush(connection)
            if dpid in changes and not connection.closed:
                self._shell.confirmations.trace(
                    (connection, ticket), changes[dpid], noticed, self._shell.now()
                )

    def _send_requests(self, effects: Effects) -> None:
        """Send packets and reads of meters, with one write for each connection."""
        touched: set[SwitchConnection] = set()
        for packet in effects.packet_outs:
            connection = self._switches.get(packet.dpid)
            if connection is not None:
                connection.session.packet_out(packet.port, packet.data)
                touched.add(connection)
        for dpid in effects.read_meters:
            connection = self._switches.get(dpid)
            if connection is not None:
                connection.session.read_meters()
                touched.add(connection)
        for connection in touched:
            self._board.flush(connection)
