"""The controller's side of the control channel: all agents, from one event loop in one thread.

Public methods may be called from any thread but the loop's own (callbacks run there: they must not wait).
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from controller.agents.membership import (
    GRACE_S,
    Member,
    Membership,
    MembershipError,
    members_from_plain,
    members_to_plain,
)
from controller.agents.session import Session, SessionClosed, Timing
from protocol.control import ControlError, Directory, FlowEntry, Impair, Report, SetPolicy, encode
from protocol.plain import PlainError
from protocol.policy import Policy

LOG: Final = logging.getLogger("capstan.agents")
SETTLE_S: Final = 0.03
"""Agents that join within this time cause one new directory, not one each."""
MOST_UNKNOWN: Final = 256
"""Connections at a time that have not said who they are."""
T = TypeVar("T")


class ChannelError(RuntimeError):
    """The channel cannot be opened, or an agent cannot be asked; the text says what to do."""


@dataclass(frozen=True)
class TcpListener:
    """Where agents on other machines connect, with TLS."""

    address: str
    port: int
    certificate: Path
    key: Path


@dataclass(frozen=True)
class ChannelSettings:
    """``members_file`` keeps who was a member over restarts of the controller."""

    socket_path: Path | None
    members_file: Path
    tcp: TcpListener | None = None
    grace_s: float = GRACE_S
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True)
class AgentInfo:
    """What is known of one member. ``*_at`` are Unix seconds."""

    host: str
    connected: bool
    underlay_ip: str
    overlay: list[str]
    session: int
    version: str
    policy_version: int
    policy_error: str
    counters: dict[str, float]
    counters_at: float | None
    connected_at: float | None
    round_trip_ms: float | None


@dataclass(frozen=True)
class Unconfirmed:
    """Somebody who has not confirmed, and why as far as is known."""

    who: str
    why: str


@dataclass(frozen=True)
class FlowReports:
    """Flow entries by host; ``missing``: hosts that did not answer in time."""

    hosts: dict[str, list[FlowEntry]]
    missing: list[str]


class AgentServer:
    """``on_joined`` and ``on_left`` get the member: first registration, and anew when the agent restarted; end."""

    def __init__(
        self,
        settings: ChannelSettings,
        token: str,
        on_joined: Callable[[Member], None],
        on_left: Callable[[Member], None],
    ) -> None:
        self._settings = settings
        self._token = token
        self._on_joined = on_joined
        self._on_left = on_left
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._sessions: dict[str, Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._socket_inode: int | None = None
        self._leaves: dict[str, str] = {}
        self._unknown = 0
        self._policy: Policy | None = None
        self._policy_frame: bytes | None = None
        self._membership = Membership((), 0.0, settings.grace_s)
        self._spreading: asyncio.TimerHandle | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self.tcp_port: int | None = None
        """Port of the TCP listener once started (the settings may say 0: any)."""

    # life

    def start(self) -> None:
        """Listen. Raises ChannelError if that is not possible."""
        opened: asyncio.Event | None = None
        failure: list[BaseException] = []
        ready = threading.Event()

        async def main() -> None:
            nonlocal opened
            self._loop = asyncio.get_running_loop()
            self._pulse: asyncio.Future[None] = self._loop.create_future()
            self._end = asyncio.Event()
            try:
                await self._open()
            except BaseException as error:
                failure.append(error)
                await self._close()
                return
            finally:
                ready.set()
            await self._end.wait()
            await self._close()

        self._thread = threading.Thread(
            target=lambda: asyncio.run(main()), name="capstan-agents", daemon=True
        )
        self._thread.start()
        ready.wait()
        if failure:
            self._thread.join()
            self._thread = None
            error = failure[0]
            if isinstance(error, ChannelError):
                raise error
            raise ChannelError(f"the agents' channel cannot be opened: {error}") from error

    def stop(self) -> None:
        """Close all channels; agents go on with their last policy. Harmless when not started."""
        if self._thread is None or self._loop is None:
            return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()
        self._thread = None

    # what the controller says

    def set_policy(self, policy: Policy) -> None:
        """Push *policy* to all agents, and to whoever comes later."""
        self._run(self._set_policy(policy))

    def set_leaf(self, underlay_ip: str, leaf: str) -> None:
        """Tell all agents at which leaf a host is. Returns at once; for the thread of the OpenFlow shell."""
        if self._loop is not None and self._thread is not None:
            with suppress(RuntimeError):  # the loop has just ended
                self._loop.call_soon_threadsafe(self._place, underlay_ip, leaf)

    def wait_applied(self, version: int, timeout: float) -> tuple[Unconfirmed, ...]:
        """Wait, up to *timeout* seconds, until all members have applied policy *version* or a later one.

        Returns those who have not: refused it (known at once), silent, or without a channel.
        """
        return self._run(self._wait_applied(version, timeout))

    def report(self, forget: bool, timeout: float) -> FlowReports:
        """Ask all members for their flow entries, up to *timeout* seconds."""
        return self._run(self._report(forget, timeout))

    def impair(self, host: str, impairment: Impair, timeout: float) -> None:
        """Make the receiving side of *host* lossy; returns once that is in force.

        Raises:
            KeyError: no such member.
            ChannelError: it has no channel or did not confirm in time.
        """
        self._run(self._impair(host, impairment, timeout))

    def agents(self) -> list[AgentInfo]:
        """All members by name."""
        return self._run(self._agents())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None or self._thread is None:
            work.close()
            raise ChannelError("the agents' channel is not open")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    # in the loop

    async def _open(self) -> None:
        self._membership = Membership(self._remembered(), time.monotonic(), self._settings.grace_s)
        for member in self._membership.members():
            self._joined(member)
        self._plan_expiry()
        if self._settings.socket_path is not None:
            listener = _unix_listener(self._settings.socket_path)
            self._socket_inode = self._settings.socket_path.stat().st_ino
            self._servers.append(await asyncio.start_unix_server(self._accept, sock=listener, backlog=256))
        if self._settings.tcp is not None:
            tcp = self._settings.tcp
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            try:
                context.load_cert_chain(tcp.certificate, tcp.key)
            except (OSError, ssl.SSLError) as error:
                raise ChannelError(f"TLS certificate {tcp.certificate}, key {tcp.key}: {error}") from None
            server = await asyncio.start_server(
                self._accept, tcp.address, tcp.port, ssl=context, backlog=256, reuse_address=True
            )
            self._servers.append(server)
            self.tcp_port = server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        for timer in (self._spreading, self._expiry):
            if timer is not None:
                timer.cancel()
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        path = self._settings.socket_path
        if path is not None and self._socket_inode is not None:
            with suppress(OSError):
                if path.stat().st_ino == self._socket_inode:
                    path.unlink()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        session = Session(reader, writer, self._settings.timing, self._changed)
        try:
            member = await self._let_in(session)
            if member is not None:
                await session.run()
                self._ended(member, session)
        except (ControlError, OSError, TimeoutError, MembershipError) as error:
            LOG.warning("agent refused", extra={"reason": str(error) or repr(error)})
            await session.refuse(str(error) or "no hello in time")
        except asyncio.CancelledError:
            session.close("the controller ends")
        finally:
            session.close("ended")
            self._tasks.discard(task)

    async def _let_in(self, session: Session) -> Member | None:
        if self._unknown >= MOST_UNKNOWN:
            await session.refuse("too many connections; try again later")
            return None
        self._unknown += 1
        try:
            hello = await session.open(self._token)
        finally:
            self._unknown -= 1
        if hello is None:
            LOG.warning("agent refused", extra={"reason": session.end_reason})
            return None
        member = Member.from_hello(hello)
        for displaced in self._membership.join(member, time.monotonic()):
            self._left(displaced)
        old = self._sessions.get(member.host)
        self._sessions[member.host] = session
        if old is not None:
            with suppress(SessionClosed):
                await old.refuse(f"another agent of host {member.host!r} has registered")
        session.welcome(self._token)
        session.put_newest("directory", self._directory_frame())
        if self._policy_frame is not None:
            session.put_newest("policy", self._policy_frame)
        LOG.info("agent joined", extra={"host": member.host, "session": member.session})
        self._joined(member)
        self._spread_directory()
        self._plan_expiry()
        self._changed()
        return member

    def _ended(self, member: Member, session: Session) -> None:
        if self._sessions.get(member.host) is not session:
            return  # replaced
        del self._sessions[member.host]
        LOG.warning("agent lost", extra={"host": member.host, "reason": session.end_reason})
        self._membership.disconnect(member.host, time.monotonic())
        self._plan_expiry()
        self._changed()

    def _joined(self, member: Member) -> None:
        try:
            self._on_joined(member)
        except Exception:
            LOG.exception("telling of an agent failed", extra={"host": member.host})

    def _left(self, member: Member) -> None:
        LOG.warning("agent left", extra={"host": member.host})
        try:
            self._on_left(member)
        except Exception:
            LOG.exception("telling of an agent failed", extra={"host": member.host})

    def _plan_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        deadline = self._membership.deadline()
        if deadline is not None:
            assert self._loop is not None
            self._expiry = self._loop.call_later(max(0.0, deadline - time.monotonic()) + 0.01, self._expire)

    def _expire(self) -> None:
        gone = self._membership.expire(time.monotonic())
        for member in gone:
            self._left(member)
        if gone:
            self._spread_directory()
            self._changed()
        self._expiry = None
        self._plan_expiry()

    def _changed(self) -> None:
        """Wake whoever waits for something of the agents."""
        pulse, self._pulse = self._pulse, asyncio.get_running_loop().create_future()
        if not pulse.done():
            pulse.set_result(None)

    def _directory_frame(self) -> bytes:
        peers = [member.peer() for member in self._membership.members()]
        return encode(
            Directory([replace(peer, leaf=self._leaves.get(peer.underlay_ip, "")) for peer in peers])
        )

    def _place(self, underlay_ip: str, leaf: str) -> None:
        if self._leaves.get(underlay_ip) != leaf:
            self._leaves[underlay_ip] = leaf
            self._spread_directory()

    def _spread_directory(self) -> None:
        if self._spreading is None:
            assert self._loop is not None
            self._spreading = self._loop.call_later(SETTLE_S, self._spread_now)

    def _spread_now(self) -> None:
        self._spreading = None
        frame = self._directory_frame()
        for session in self._sessions.values():
            session.put_newest("directory", frame)
        self._remember()

    def _remembered(self) -> tuple[Member, ...]:
        try:
            return members_from_plain(json.loads(self._settings.members_file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, PlainError) as error:
            LOG.warning("the list of members is lost", extra={"reason": str(error)})
            return ()

    def _remember(self) -> None:
        path = self._settings.members_file
        try:
            draft = path.with_name(f"{path.name}.new")
            draft.write_text(json.dumps(members_to_plain(self._membership.members())), encoding="utf-8")
            draft.chmod(0o600)
            draft.replace(path)
        except OSError as error:
            LOG.error("the list of members cannot be kept", extra={"reason": str(error)})

    async def _set_policy(self, policy: Policy) -> None:
        self._policy = policy
        self._policy_frame = encode(SetPolicy(policy.to_dict()))
        for session in self._sessions.values():
            session.put_newest("policy", self._policy_frame)

    async def _wait_applied(self, version: int, timeout: float) -> tuple[Unconfirmed, ...]:
        deadline = time.monotonic() + timeout
        while True:
            pulse = self._pulse
            refused: list[Unconfirmed] = []
            silent: list[Unconfirmed] = []
            for member in self._membership.members():
                session = self._sessions.get(member.host)
                who = f"agent {member.host}"
                if session is None:
                    silent.append(Unconfirmed(who, "has no channel to the controller"))
                elif session.applied_version >= version:
                    continue
                elif session.error_version >= version:
                    refused.append(Unconfirmed(who, session.applied_error))
                else:
                    silent.append(Unconfirmed(who, f"has not confirmed policy {version}"))
            left = deadline - time.monotonic()
            if not silent or left <= 0:
                return (*refused, *silent)
            await asyncio.wait((pulse,), timeout=left)

    async def _report(self, forget: bool, timeout: float) -> FlowReports:
        asked: dict[str, tuple[Session, int, asyncio.Future[list[FlowEntry]]]] = {}
        for host, session in list(self._sessions.items()):
            number, future = session.new_report()
            try:
                session.queue(Report(number, forget))
            except SessionClosed:
                session.drop_report(number)
                continue
            asked[host] = (session, number, future)
        if asked:
            await asyncio.wait([future for _, _, future in asked.values()], timeout=timeout)
        hosts: dict[str, list[FlowEntry]] = {}
        for host, (session, number, future) in asked.items():
            session.drop_report(number)
            if future.done() and future.exception() is None:
                hosts[host] = future.result()
        names = [member.host for member in self._membership.members()]
        return FlowReports(hosts, [host for host in names if host not in hosts])

    async def _impair(self, host: str, impairment: Impair, timeout: float) -> None:
        session = self._sessions.get(host)
        if session is None:
            if host in {member.host for member in self._membership.members()}:
                raise ChannelError(f"agent {host!r} has no channel to the controller now")
            raise KeyError(host)
        try:
            session.queue(impairment)
            confirmed = session.ping(wait=True)
            assert confirmed is not None
            async with asyncio.timeout(timeout):
                await confirmed
        except TimeoutError:
            raise ChannelError(f"agent {host!r} has not confirmed within {timeout:g} s") from None
        except SessionClosed as error:
            raise ChannelError(f"agent {host!r}: {error}") from None

    async def _agents(self) -> list[AgentInfo]:
        return [self._info(member) for member in self._membership.members()]

    def _info(self, member: Member) -> AgentInfo:
        session = self._sessions.get(member.host)
        trip = None if session is None else session.round_trip_s
        return AgentInfo(
            host=member.host,
            connected=session is not None,
            underlay_ip=member.underlay_ip,
            overlay=list(member.overlay),
            session=member.session,
            version=member.version,
            policy_version=-1 if session is None else session.applied_version,
            policy_error="" if session is None else session.applied_error,
            counters={} if session is None else session.counters,
            counters_at=None if session is None else session.counters_at,
            connected_at=None if session is None else session.connected_at,
            round_trip_ms=None if trip is None else trip * 1000,
        )


def _unix_listener(path: Path) -> socket.socket:
    """A socket bound to *path*, mode 0660, that does not listen yet: nobody can connect before the mode is set."""
    _clear_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        os.chmod(path, 0o660)
    except OSError as error:
        listener.close()
        why = "the path is too long" if "too long" in str(error) else error.strerror or str(error)
        raise ChannelError(f"socket {path} cannot be made: {why}") from None
    return listener


def _clear_stale(path: Path) -> None:
    try:
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise ChannelError(f"{path} is there and is no socket: remove it or give another path")
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError as error:
            if error.errno in (errno.ECONNREFUSED, errno.ENOENT):
                path.unlink(missing_ok=True)
                return
            raise ChannelError(f"socket {path} cannot be taken over: {error}") from None
    raise ChannelError(f"another controller listens on {path}: stop it or give another path")
