"""What is asked of agents, and what they answer: confirmed policies, flow entries, impairments, their state."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from controller.agents.listeners import ChannelError
from controller.agents.membership import Member, Membership
from controller.agents.session import AgentSession, SessionClosed
from protocol.control import Crash, FlowEntry, Impair, Report


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
    """A party that has not confirmed, and why as far as is known."""

    who: str
    why: str


@dataclass(frozen=True)
class FlowReports:
    """Flow entries by host; ``missing``: hosts that did not answer in time."""

    hosts: dict[str, list[FlowEntry]]
    missing: list[str]


def agent_info(member: Member, session: AgentSession | None) -> AgentInfo:
    """Return what is known of a member. *session*: None without a channel."""
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


def unconfirmed(
    members: Iterable[Member], sessions: Mapping[str, AgentSession], version: int
) -> tuple[list[Unconfirmed], list[Unconfirmed]]:
    """Return the members that refused policy *version*, and those that have said nothing of it yet."""
    refused: list[Unconfirmed] = []
    silent: list[Unconfirmed] = []
    for member in members:
        session = sessions.get(member.host)
        who = f"agent {member.host}"
        if session is None:
            silent.append(Unconfirmed(who, "has no channel to the controller"))
        elif session.applied_version >= version:
            continue
        elif session.error_version >= version:
            refused.append(Unconfirmed(who, session.applied_error))
        else:
            silent.append(Unconfirmed(who, f"has not confirmed policy {version}"))
    return refused, silent


async def flow_reports(
    membership: Membership, sessions: Mapping[str, AgentSession], forget: bool, timeout: float
) -> FlowReports:
    """Return the flow entries of all members that answer within *timeout* seconds, and who does not."""
    pending: dict[str, tuple[AgentSession, int, asyncio.Future[list[FlowEntry]]]] = {}
    for host, session in list(sessions.items()):
        number, future = session.new_report()
        try:
            session.queue(Report(number, forget))
        except SessionClosed:
            session.drop_report(number)
            continue
        pending[host] = (session, number, future)
    if pending:
        await asyncio.wait([future for _, _, future in pending.values()], timeout=timeout)
    answers: dict[str, list[FlowEntry]] = {}
    for host, (session, number, future) in pending.items():
        session.drop_report(number)
        if future.done() and future.exception() is None:
            answers[host] = future.result()
    missing = [member.host for member in membership.members() if member.host not in answers]
    return FlowReports(answers, missing)


async def impair_host(
    membership: Membership,
    sessions: Mapping[str, AgentSession],
    host: str,
    impairment: Impair,
    *,
    timeout: float,
) -> None:
    """Impair the datagrams of a host's agent, and return once it does. Raise KeyError for no member, ChannelError for
    one without a channel, or that does not say so in time.
    """
    session = sessions.get(host)
    if session is None:
        if host in {member.host for member in membership.members()}:
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


async def applied(
    membership: Membership,
    sessions: Mapping[str, AgentSession],
    version: int,
    *,
    timeout: float,
    pulse: Callable[[], asyncio.Future[None]],
) -> tuple[Unconfirmed, ...]:
    """Return who has not applied a policy after *timeout* seconds, or refused it. *pulse*: done when
    something has changed.
    """
    deadline = time.monotonic() + timeout
    while True:
        changed = pulse()
        refused, silent = unconfirmed(membership.members(), sessions, version)
        remaining_s = deadline - time.monotonic()
        if not silent or remaining_s <= 0:
            return (*refused, *silent)
        await asyncio.wait((changed,), timeout=remaining_s)


async def crash_host(
    sessions: Mapping[str, AgentSession], host: str, timeout: float, pulse: Callable[[], asyncio.Future[None]]
) -> None:
    """Have an agent end as by a crash, and wait until its channel has ended. Raises KeyError, ChannelError."""
    session = sessions[host]
    with suppress(SessionClosed):
        session.queue(Crash())
    deadline = time.monotonic() + timeout
    while sessions.get(host) is session:
        if time.monotonic() >= deadline:
            raise ChannelError(f"agent {host!r} has not ended within {timeout:g} s")
        await asyncio.wait((pulse(),), timeout=max(0.0, deadline - time.monotonic()))
