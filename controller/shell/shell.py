"""The shell round the control plane: sockets to switches on one side, calls and effects on the other.

One thread does all of it: it waits for sockets, posted closures and the control plane's deadline, calls the control
plane and carries out what that returns. So a packet-in becomes a flow change on the wire without a change of
threads, nothing needs a lock, and a switch that does not read fills its own buffer and stops no other.

os-ken makes the messages that we send (`os_ken.ofproto`), but it gives no threads: its native hub reports a lost switch
only when the switch comes back, leaks two threads each time, blocks senders behind 16 messages, ignores time-outs and
cannot be interrupted (`tests/lab/test_openflow_defects.py` shows each beside this shell).
"""

from __future__ import annotations

import logging
import selectors
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, TypeVar

from controller.control_plane import ControlPlane
from controller.fabric.graph import PortRef
from controller.openflow.allowed import AllowedSwitches
from controller.openflow.backlog import Backlog, TooManyEventsError, Waiting, urgent
from controller.openflow.connection import ConnectionEnded
from controller.openflow.connection import SwitchConnection as Connection
from controller.openflow.cookies import Rule, rule_of
from controller.openflow.errors import OpenFlowError, SwitchError
from controller.openflow.newcomers import Newcomers
from controller.openflow.packet_allowance import SIGNAL_WEIGHT
from controller.openflow.posted_calls import PostedCalls
from controller.openflow.read_pauses import ReadPauses
from controller.openflow.session_events import (
    MeterCount,
    PacketIn,
    PortsCounted,
    PortStatus,
    Ready,
    Refused,
    SessionEvent,
    UpdateDone,
)
from controller.openflow.switchboard import Switchboard
from controller.openflow.tls import SwitchTlsContexts
from controller.plane.effects import Effects, SwitchTurnedAway
from controller.plane.faults import PortsLeftOut
from controller.process.control_thread import ControlThread
from controller.shell.confirmations import Confirmations
from controller.shell.context import ShellContext
from controller.shell.effects_sender import EffectsSender
from controller.shell.serving_order import ServingOrder
from controller.shell.shell_events import PortCounters, ShellEvent
from controller.shell.update_results import UpdateResults

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")

POLL_EVERY_S: Final = 0.0005
"""While there is other work, urgent messages are looked for this often."""
READ_FOR_S: Final = 0.0005
"""So long connections are read before it is looked again which are ready."""
SWITCH_INTERVAL_S: Final = 0.0005
"""How long Python lets another thread (the API, agents' channel) compute before this one may go on.

Beside a thread that computes, a meter read takes 0.2 ms with it, and 5.3 ms with Python's default of 5 ms.
"""


class OpenFlowShell:
    """Runs a control plane against real switches.

    Args:
        control_plane: called from the shell's thread only, from `start` to `stop`.
        listen_address, listen_port: where switches connect; port 0 takes a free one (see `port`).
        on_event: gets every event of the control plane and of the shell, in the shell's thread; it must return at
            once (put the event into a queue).
        allowed: the switches that may connect; None: all.
        tls: of their connections; None: OpenFlow in clear.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        listen_address: str,
        listen_port: int,
        *,
        on_event: Callable[[ShellEvent], None],
        allowed: AllowedSwitches | None = None,
        tls: SwitchTlsContexts | None = None,
    ) -> None:
        self._allowed = allowed
        self._control_plane = control_plane
        self._address = (listen_address, listen_port)
        self._on_event = on_event
        self._selector = selectors.DefaultSelector()
        self._thread: threading.Thread | None = None
        self._posted = PostedCalls(lambda result: self._carry_out(result, self.now()))
        confirmations = Confirmations()
        self._counters: Counter[str] = Counter()
        self._board = Switchboard(self._selector, self._counters, self._refusal, confirmations.gone, tls=tls)
        self._switches = self._board.switches
        self._newcomers = Newcomers(self._switches, self._board.close, self._admit)
        self._backlog = Backlog(self._counters)
        self._pauses = ReadPauses()
        self._order = ServingOrder(control_plane.in_fabric)
        self._backlog_is_next = True
        self._stopping = False
        context = ShellContext(self._board, confirmations, self._counters, on_event, self.now)
        self._updates = UpdateResults(context)
        self._sender = EffectsSender(context)

    # For other threads

    def start(self) -> None:
        """Listen and run. Raises OSError if the address cannot be had."""
        if self._thread is not None:
            raise RuntimeError("the OpenFlow shell was started before; make a new one")
        self._board.listen(*self._address)
        self._posted.watch(self._selector)
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL_S))
        self._thread = ControlThread(self._run, "openflow", urgent=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close all connections; switches keep forwarding. No error if it does not run."""
        if self._thread is None or not self._thread.is_alive():
            return
        self.post(self._begin_stop)
        self._thread.join()

    @property
    def port(self) -> int:
        """Return the TCP port that switches connect to. Raise RuntimeError before `start`."""
        return self._board.port

    def address_of(self, dpid: int) -> str | None:
        """Return the address that a switch calls from, or None; only in this shell's thread (events, `post`)."""
        connection = self._switches.get(dpid)
        return None if connection is None else connection.peer.rpartition(":")[0]

    @staticmethod
    def now() -> float:
        """Return the clock of the control plane: seconds, monotonic."""
        return time.monotonic()

    def post(self, work: Callable[[], object]) -> None:
        """Have *work* done in the shell's thread; `Effects` that it returns are carried out."""
        self._posted.post(work)

    def call(self, work: Callable[[], T], timeout: float = 10.0, *, in_time: bool = False) -> T:
        """Do as `post`, wait for the result and return it (or raise what *work* raised).

        Effects have been sent, not confirmed, when this returns. in_time: what is not begun by then is never done.

        Raises:
            TimeoutError: it is not done after *timeout* seconds.
            ControlThreadDiedError: its thread, or another that the controller needs, has died.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("call() in the shell's own thread would wait for itself: do the work directly")
        return self._posted.call(work, timeout, in_time=in_time)

    def wait_applied(self, timeout: float) -> None:
        """Wait until switches have confirmed all updates sent so far (those of a switch that goes away count as done).

        A switch that is still taken over (`controller.plane.takeover`) has been sent no state, and is not waited for.

        Raises:
            TimeoutError: some have not after *timeout* seconds; the text names the switches.
            OpenFlowError: a switch refused part of one and has not begun anew since; ``errors`` say what.
        """
        deadline = self.now() + timeout
        waiter = self.call(self._updates.waiter, timeout)
        if not waiter.done.wait(max(0.0, deadline - self.now())):
            late = ", ".join(waiter.late())
            raise TimeoutError(f"switches {late} did not confirm an update within {timeout:g} s")
        if waiter.errors:
            raise OpenFlowError("; ".join(map(str, waiter.errors)), tuple(waiter.errors))

    def read_ports(self) -> None:
        """Ask all switches for their ports' counters; a `PortCounters` event each answers. Returns at once."""
        self.post(self._sender.read_ports)

    def set_ports(self, ports: Iterable[PortRef], up: bool) -> PortsLeftOut:
        """Have ports taken down, or up again, and return those that are left out."""
        return self.call(partial(self._sender.set_ports, tuple(ports), up), in_time=True)

    def set_ports_soon(self, ports: Iterable[PortRef], up: bool) -> None:
        """Do so soon: for the shell's own thread, and others who cannot wait."""
        self.post(partial(self._sender.set_ports, tuple(ports), up))

    def errors(self) -> tuple[SwitchError, ...]:
        """Return the last errors that switches answered with, oldest first."""
        return self._updates.errors()

    def counters(self) -> Mapping[str, int]:
        """Return totals since the start, by name."""
        return dict(self._counters)

    # The thread

    def _run(self) -> None:
        while not self._stopping:
            self._poll(0.0 if self._backlog else self._patience())
            self._report_lost()
            self._work()
            self._guarded("connections of switches that have one", self._settle_newcomers, self.now())
            self._report_lost()
        self._board.close_all("the controller ends")
        self._selector.close()

    def _work(self) -> None:
        """Do a piece of what is not urgent, the backlog or what is due in turn: between two, urgent messages go."""
        if self._backlog and self._backlog_is_next:
            self._work_off_backlog()
            self._backlog_is_next = False
        else:
            self._tick()
            self._backlog_is_next = True

    def _patience(self) -> float | None:
        """Return the seconds until something is due; None: nothing is, before something comes."""
        if self._board.lost:
            return 0.0
        times = (
            self._board.deadline(),
            self._newcomers.deadline(),
            self._updates.deadline(),
            self._pauses.deadline(),
            self._control_plane.deadline(),
        )
        deadlines = [time for time in times if time is not None]
        return max(0.0, min(deadlines) - self.now()) if deadlines else None

    def _poll(self, patience: float | None) -> None:
        shaken = False
        ready = self._order.of(self._selector.select(patience), self.now())
        until = self.now() + READ_FOR_S
        for key, mask in ready:
            if isinstance(key.data, Connection):
                if self.now() >= until:
                    continue  # it is ready again at the next look
                if key.data.shaking_hands and mask & selectors.EVENT_READ:
                    if shaken:
                        continue  # it is ready again at the next look: between two handshakes, urgent messages go
                    shaken = True
                if mask & selectors.EVENT_WRITE:
                    self._board.flush(key.data)
                if mask & selectors.EVENT_READ:
                    self._read(key.data)
            elif self._board.is_listener(key.data):
                self._board.accept(self.now())
            else:
                for work in self._posted.pending():
                    self._guarded("a posted call", work, self.now())

    def _work_off_backlog(self) -> None:
        """Do what is not urgent, until it is time to look for urgent messages again."""
        until = self.now() + POLL_EVERY_S
        while self._backlog and self.now() < until:
            waiting = self._backlog.take()
            if not waiting.connection.closed:
                self._handle(waiting.connection, waiting.event, waiting.at)

    def _tick(self) -> None:
        now = self.now()
        wanted = self._control_plane.deadline()
        if wanted is not None and wanted <= now:
            self._guarded("a tick", lambda: self._control_plane.tick(now), now)
        self._pauses.resume(now)
        self._board.tick(now)
        self._updates.tick(now)

    def _begin_stop(self) -> None:
        self._stopping = True

    def _guarded(self, cause: str, work: Callable[[], object], noticed: float) -> None:
        """Call the control plane or a closure. A fault in one of them must not end all switches' control."""
        try:
            self._carry_out(work(), noticed)
        except Exception:
            self._counters["faults"] += 1
            LOG.exception("fault while handling %s", cause)

    # Connections

    def _read(self, connection: Connection) -> None:
        if connection.closed:
            return
        now, has_room, packets, signalled = self.now(), True, 0.0, False
        try:
            for event in connection.receive(now):
                if isinstance(event, PacketIn):
                    signal = rule_of(event.cookie) is Rule.FIRST_SHORT
                    packets += SIGNAL_WEIGHT if signal else 1.0
                    if signal and signalled:
                        continue  # it came at the same time, and says the same
                    signalled |= signal
                elif isinstance(event, PortStatus | Refused):
                    packets += 1.0
                if connection.introduced is not None and urgent(event):
                    self._handle(connection, event, now)
                else:
                    has_room &= self._backlog.add(Waiting(connection, event, now))
                if connection.closed:
                    return
        except (ConnectionEnded, TooManyEventsError) as end:
            self._board.close(connection, str(end))
        else:
            self._board.flush(connection)
            over_s = connection.allowance.take(packets, connection.session.count_ports(), now)
            if over_s > 0 or not has_room:
                self._counters["read-pauses"] += 1
                self._pauses.pause(connection, now, over_s)

    def _report_lost(self) -> None:
        while self._board.lost and not self._stopping:
            dpid, now = self._board.lost.popleft(), self.now()
            self._guarded("a lost switch", partial(self._control_plane.switch_disconnected, dpid, now), now)

    # Events in

    def _handle(self, connection: Connection, event: SessionEvent, read_at: float) -> None:
        plane = self._control_plane
        if isinstance(event, Ready):
            if self._newcomers.arrived(connection, event, self.now()):
                self._turn_away(connection, event.dpid, "another connection waits for its place")
            elif (incumbent := self._switches.get(event.dpid)) is not None:
                self._board.flush(incumbent)  # it may have been probed
            return
        dpid = connection.introduced
        if dpid is None:
            return  # it waits; what its ports have become is asked when it is let in
        match event:
            case PacketIn(in_port, cookie, data):
                self._counters["packet-ins"] += 1
                self._guarded(
                    "a packet-in", lambda: plane.packet_in(dpid, in_port, cookie, data, now=read_at), read_at
                )
            case MeterCount(readings):
                self._guarded("a meter's count", lambda: plane.meter_sample(dpid, readings, read_at), read_at)
            case PortsCounted(body):
                self._on_event(PortCounters(dpid, body))
            case UpdateDone(ticket, errors):
                self._update_done(connection, ticket, errors, read_at)
            case PortStatus(port):
                self._guarded("a port's change", lambda: plane.port_changed(dpid, port, read_at), read_at)
            case Refused(error):
                self._updates.refused(error)

    def _admit(self, connection: Connection, ready: Ready) -> None:
        self._report_lost()
        plane, dpid, now = self._control_plane, ready.dpid, self.now()
        self._switches[dpid] = connection
        self._updates.began_anew(dpid)
        connection.introduced = dpid
        LOG.info("switch %#x at %s connected", dpid, connection.peer)
        ports, held = connection.session.ports(), ready.inventory.held
        self._guarded("a new switch", lambda: plane.switch_connected(dpid, ports, held, now), now)

    def _settle_newcomers(self) -> None:
        for newcomer, older in self._newcomers.settle(self.now()):
            dpid = newcomer.ready.dpid
            self._turn_away(
                newcomer.connection, dpid, f"switch {dpid:#x} is connected already, from {older}, and answers"
            )

    def _turn_away(self, connection: Connection, dpid: int, reason: str) -> None:
        self._sender.turn_away(connection, reason)
        self._sender.note(SwitchTurnedAway(self.now(), dpid, reason))

    def _refusal(self, dpid: int, certificate: str) -> str | None:
        if self._allowed is not None and (refusal := self._allowed.refusal(dpid, certificate)) is not None:
            return refusal
        # Before it says all that it has: to read that costs more than to refuse it.
        refusal = self._control_plane.refusal(dpid, self.now())
        if refusal is not None:
            self._counters["turned-away"] += 1
            self._sender.note(SwitchTurnedAway(self.now(), dpid, refusal))
        return refusal

    def _update_done(
        self, connection: Connection, ticket: int, errors: tuple[SwitchError, ...], read_at: float
    ) -> None:
        self._updates.done(connection, ticket, errors, read_at)
        dpid = connection.introduced
        if dpid is None or connection.closed:
            return
        if connection.session.unconfirmed:
            self._guarded("a confirmation", lambda: self._control_plane.progressed(dpid, read_at), read_at)
        else:
            self._guarded("a confirmation", lambda: self._control_plane.applied(dpid, read_at), read_at)

    def _carry_out(self, result: object, noticed: float) -> None:
        if isinstance(result, Effects):
            self._sender.send(result, noticed)
