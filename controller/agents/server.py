"""The controller's side of the control channel: all agents, from one event loop in one thread.

Public methods may be called from any thread but the loop's own (callbacks run there: they must not wait).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import suppress
from typing import Final, TypeVar

from controller.agents import asking
from controller.agents.asking import AgentInfo, FlowReports, Unconfirmed
from controller.agents.channel_loop import channel_loop
from controller.agents.directory_distribution import DirectoryDistribution
from controller.agents.inbound import HalfFrames, HandlingTime
from controller.agents.listeners import Listeners
from controller.agents.members_file import read_members
from controller.agents.membership import Member, Membership, MembershipError
from controller.agents.own_flows import own_flows
from controller.agents.path_distribution import PathDistribution
from controller.agents.policy_distribution import PolicyDistribution
from controller.agents.refusals import Refusals
from controller.agents.session import AgentReport, AgentSession, SessionClosed
from controller.agents.settings import ChannelSettings
from controller.agents.shares import UnknownPeers
from controller.subscribers import Subscribers
from protocol.admission import Finished, Grant, Request, Stop
from protocol.control import (
    ActiveFlows,
    Crash,
    FinishedFlows,
    FlowTypes,
    Impair,
    PathLoad,
    Paths,
    WatchFlows,
)
from protocol.frames import ControlError
from protocol.policy import Policy
from protocol.sent_again import SentAgain

LOG: Final = logging.getLogger("capstan.agents")
T = TypeVar("T")


class AgentServer:
    """What agents send is an event to subscribe to, before `start`; callbacks are called in the loop's thread."""

    def __init__(
        self,
        settings: ChannelSettings,
        token: str,
    ) -> None:
        self.joined: Final = Subscribers[[Member]]()
        """An agent has registered: for the first time, or anew after a restart."""
        self.left: Final = Subscribers[[Member]]()
        """A member is gone for good."""
        self.gone: Final = Subscribers[[str]]()
        """The channel of a host has ended, or its agent began anew."""
        self.finished_flows: Final = Subscribers[[str, Mapping[str, str], FinishedFlows]]()
        """An agent reports flows that have ended: its host, the host of each overlay address, the flows."""
        self.active_flows: Final = Subscribers[[str, ActiveFlows]]()
        """An agent reports its flows while `watch_flows` asks for it: its host, the flows."""
        self.admission: Final = Subscribers[[str, Request | Finished]]()
        """An agent requests grants, or says that flows have finished: its host, the message."""
        self.sent_again: Final = Subscribers[[str, SentAgain]]()
        """What a host has retransmitted."""
        self._settings = settings
        self._token = token
        self._thread = channel_loop(self._open, self._close)
        self._sessions: dict[str, AgentSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._listeners = Listeners()
        self._paths = PathDistribution(self._located)
        self._unknown = UnknownPeers()
        self._halves = HalfFrames()
        self._handling = HandlingTime(time.monotonic())
        self._refusals = Refusals()
        self._policies = PolicyDistribution(self._sessions)
        self._membership = Membership((), 0.0, settings.grace_s)
        self._expiry: asyncio.TimerHandle | None = None
        self._directory = DirectoryDistribution(
            lambda: self._membership.members(),
            self._sessions,
            self._paths.places.leaf_of,
            settings.datagram_keys,
            members_file=settings.members_file,
        )

    @property
    def tcp_port(self) -> int | None:
        """Return the port of the TCP listener once started (the settings may say 0: any)."""
        return self._listeners.tcp_port

    # life

    def start(self) -> None:
        """Listen. Raises ChannelError if that is not possible."""
        self._thread.start()

    def stop(self) -> None:
        """Close all channels; agents go on with their last policy. Harmless when not started."""
        self._thread.stop()

    # what the controller says

    def set_policy(self, policy: Policy) -> None:
        """Push *policy* to all agents, and to those that join later."""
        self._thread.run(self._set_policy(policy))

    def set_flow_types(self, types: FlowTypes) -> None:
        """Push *types* to all agents, and to those that join later, if they belong to the policy in force."""
        self.call(lambda: self._policies.set_flow_types(types))

    def set_leaf(self, underlay_ip: str, leaf: str) -> None:
        """Send all agents the leaf of a host. Returns at once; for the thread of the OpenFlow shell."""
        self._thread.post(self._place, underlay_ip, leaf)

    def keep_leaves(self, underlay_ips: Container[str]) -> None:
        """Forget the leaves of all other hosts. Returns at once; for the thread of the OpenFlow shell."""
        self._thread.post(self._paths.places.keep_leaves, underlay_ips)

    def set_paths(self, leaf: str, paths: Paths) -> None:
        """Send the agents at a leaf their paths. Returns at once; for the thread of the OpenFlow shell."""
        self._thread.post(self._paths.set_paths, leaf, paths)

    def post(self, work: Callable[[], object]) -> None:
        """Have *work* done in the loop's thread; returns at once."""
        self._thread.post(work)

    def call(self, work: Callable[[], T]) -> T:
        """Have *work* done in the loop's thread, and return what it returns."""

        async def done() -> T:
            return work()

        return self._thread.run(done())

    def decide(self, host: str, message: Grant | Stop) -> None:
        """Send a host a decision, if it has a channel. For the loop's own thread."""
        session = self._sessions.get(host)
        if session is not None:
            session.decide(message)

    def watch_flows(self, every_s: float, most: int) -> None:
        """Ask all agents, and those that come, for active flows every so often (`active_flows`); 0: no more."""
        self.call(lambda: self._policies.watch_flows(WatchFlows(every_s, most)))

    def wait_applied(self, version: int, timeout: float) -> tuple[Unconfirmed, ...]:
        """Wait, up to *timeout* seconds, until all members have applied policy *version* or a later one.

        Returns those who have not: refused it (known at once), silent, or without a channel.
        """
        return self._thread.run(
            asking.applied(
                self._membership, self._sessions, version, timeout=timeout, pulse=lambda: self._pulse
            )
        )

    def report(self, forget: bool, timeout: float) -> FlowReports:
        """Return the flow entries of all members that answer within *timeout* seconds."""
        return self._thread.run(asking.flow_reports(self._membership, self._sessions, forget, timeout))

    def impair(self, host: str, impairment: Impair, timeout: float) -> None:
        """Make the receiving side of *host* lossy, also if its agent begins anew; returns once that is in force.

        Raises:
            KeyError: no such member.
            ChannelError: it has no channel or did not confirm in time.
        """
        self._thread.run(self._impair(host, impairment, timeout))

    def crash(self, host: str, timeout: float) -> None:
        """Have an agent end as by a crash; returns once its channel has ended.

        Raises:
            KeyError: no such agent is connected.
            ChannelError: it is still there after *timeout* seconds.
        """
        self._thread.run(asking.crash_host(self._sessions, host, timeout, lambda: self._pulse))

    def crash_soon(self, host: str) -> None:
        """Have an agent crash, and return at once: for the channel's own thread (`on_joined`)."""
        session = self._sessions.get(host)  # a member that is only remembered has none
        if session is not None:
            with suppress(SessionClosed):
                session.queue(Crash())

    def agents(self) -> list[AgentInfo]:
        """Return all members by name."""
        return self.call(
            lambda: [
                asking.agent_info(member, self._sessions.get(member.host))
                for member in self._membership.members()
            ]
        )

    def counters(self) -> dict[str, int]:
        """Return what happened on connections since the start, by name."""
        return dict(self._refusals.counts)

    # in the loop

    async def _open(self) -> None:
        self._pulse: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._membership = Membership(
            read_members(self._settings.members_file), time.monotonic(), self._settings.grace_s
        )
        for member in self._membership.members():
            self._joined(member)
        self._plan_expiry()
        self._directory.open()
        await self._listeners.open(self._settings.socket_path, self._settings.tcp, self._accept)

    async def _close(self) -> None:
        self._directory.close()
        self._paths.close()
        if self._expiry is not None:
            self._expiry.cancel()
        self._listeners.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        session = AgentSession(
            reader,
            writer,
            self._settings.timing,
            self._changed,
            self._reported,
            self._halves,
            self._handling,
            self._asked,
        )
        try:
            if await self._let_in(session):
                await session.run()
                self._refusals.counts["bad-frames"] += session.bad_frame
            self._ended(session)
        except (ControlError, OSError, TimeoutError, MembershipError) as error:
            await session.refuse(self._refusals.failed(error))
            self._ended(session)
        except asyncio.CancelledError:
            session.close("the controller ends")
        except Exception:
            LOG.exception("an agent's channel is closed: a defect of ours")
            await session.refuse("the controller could not go on; its log says why")
            self._ended(session)
        finally:
            session.close("ended")
            self._tasks.discard(task)

    async def _let_in(self, session: AgentSession) -> bool:
        """Return True once the agent is a member."""
        with self._unknown.place(session.peer) as has_place:
            if not has_place:
                await session.refuse("too many connections that have not said who they are; try again later")
                self._refusals.refuse("refused-connections", f"{session.peer}: {session.end_reason}")
                return False
            hello = await session.open(self._token_of)
        if hello is None:
            self._refusals.refuse("wrong-proofs", session.end_reason)
            return False
        self._refusals.counts["connections"] += 1
        member = Member.from_hello(hello)
        for displaced in self._membership.join(member, time.monotonic()):
            self._left(displaced)
        old = self._sessions.get(member.host)
        self._sessions[member.host] = session
        if old is not None:
            with suppress(SessionClosed):
                await old.refuse(f"another agent of host {member.host!r} has registered")
            self.gone.notify(member.host)
        self._paths.came(member.host)
        session.welcome(self._token_of(member.host))
        self._directory.send(member.underlay_ip, session)
        self._policies.send(member.host, session)
        self._paths.send_paths(member.underlay_ip, session)
        LOG.info("agent %s joined, session %#x", member.host, member.session)
        self._joined(member)
        self._directory.changed()
        self._plan_expiry()
        self._changed()
        return True

    def _token_of(self, host: str) -> str:
        """Return what the agent of *host* has to know; of a host that may have none, a fresh secret."""
        tokens = self._settings.host_tokens
        return self._token if tokens is None else tokens.get(host) or secrets.token_hex(32)

    def _ended(self, session: AgentSession) -> None:
        """Forget a channel that is over; do nothing if it has no host, or another has replaced it."""
        host = next((host for host, other in self._sessions.items() if other is session), None)
        if host is None:
            return
        del self._sessions[host]
        self._membership.disconnect(host, time.monotonic())
        self.gone.notify(host)
        self._paths.gone(host)
        LOG.warning("agent %s lost: %s", host, session.end_reason)
        self._plan_expiry()
        self._changed()

    def _joined(self, member: Member) -> None:
        self._notify(self.joined, member)

    def _left(self, member: Member) -> None:
        LOG.warning("agent %s left", member.host)
        self._notify(self.left, member)

    def _notify(self, event: Subscribers[[Member]], member: Member) -> None:
        try:
            event.notify(member)
        except Exception:
            LOG.exception("a callback for agent %s failed", member.host)

    def _plan_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        deadline = self._membership.deadline()
        if deadline is not None:
            wait = max(0.0, deadline - time.monotonic()) + 0.01
            self._expiry = asyncio.get_running_loop().call_later(wait, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        try:
            gone = self._membership.expire(time.monotonic())
            for member in gone:
                self._left(member)
            if gone:
                self._directory.changed()
                self._changed()
        finally:  # an error costs one turn, not all later ones
            self._plan_expiry()

    def _changed(self) -> None:
        """Wake the threads that wait for agents."""
        pulse, self._pulse = self._pulse, asyncio.get_running_loop().create_future()
        if not pulse.done():
            pulse.set_result(None)

    def _located(self) -> Iterator[tuple[str, str, AgentSession]]:
        """Yield the members that have a channel: host, underlay address, and the channel."""
        for member in self._membership.members():
            session = self._sessions.get(member.host)
            if session is not None:
                yield member.host, member.underlay_ip, session

    def _place(self, underlay_ip: str, leaf: str) -> None:
        if self._paths.set_leaf(underlay_ip, leaf) and self._membership.has_underlay(underlay_ip):
            self._directory.moved()

    def _asked(self, kind: str) -> bool:
        if self._policies.asks_for(kind):
            return True
        self._refusals.counts["messages-not-asked-for"] += 1
        return False

    def _reported(self, session: AgentSession, report: AgentReport) -> None:
        """Pass on what the agent of a host sends, unless another agent has replaced it."""
        host = "" if session.hello is None else session.hello.host
        if self._sessions.get(host) is not session:
            return
        match report:
            case PathLoad():
                self._paths.load(host, report)
            case ActiveFlows():
                own = own_flows(report, host, self._membership.owners(), self._policies.watch.most)
                self._refusals.counts["refused-flows"] += len(report.flows) - len(own.flows)
                self.active_flows.notify(host, own)
            case Request() | Finished():
                self.admission.notify(host, report)
            case SentAgain():
                self.sent_again.notify(host, report)
            case FinishedFlows():
                self.finished_flows.notify(host, self._membership.owners(), report)

    async def _set_policy(self, policy: Policy) -> None:
        self._paths.clear_loads()
        self._policies.set_policy(policy)

    async def _impair(self, host: str, impairment: Impair, timeout: float) -> None:
        await asking.impair_host(self._membership, self._sessions, host, impairment, timeout=timeout)
        self._policies.note_impairment(host, impairment)
