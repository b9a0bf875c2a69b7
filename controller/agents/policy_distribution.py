"""Sends agents the policy in force and what goes with it, also those that join later. Runs in the channels' loop."""

from __future__ import annotations

from collections.abc import Mapping

from controller.agents.session import AgentSession
from protocol.control import ActiveFlows, FlowTypes, Impair, PathLoad, SetPolicy, WatchFlows
from protocol.frames import encode
from protocol.policy import Policy


class PolicyDistribution:
    """Policy, flow types and which flows to report, of all agents; impairments, each of a host. sessions: by host."""

    def __init__(self, sessions: Mapping[str, AgentSession]) -> None:
        self._sessions = sessions
        self._policy: Policy | None = None
        self._watch = WatchFlows(0.0, 0)
        self._newest: dict[str, bytes] = {}
        """Of each kind the frame that is in force."""
        self._impairments: dict[str, Impair] = {}
        """By host."""

    @property
    def watch(self) -> WatchFlows:
        """Return how often agents report active flows, and how many; 0 s: they do not."""
        return self._watch

    def asks_for(self, kind: str) -> bool:
        """Return whether agents are asked for messages of this type, or need not be.

        Before there is a policy, loads of paths are taken.
        """
        if kind == ActiveFlows.type:
            return self._watch.every_s > 0
        return kind != PathLoad.type or self._policy is None or self._policy.shares_paths

    def set_policy(self, policy: Policy) -> None:
        """Send *policy* to all agents; flow types of the policy before it no longer hold."""
        self._policy = policy
        self._newest.pop("flow-types", None)
        self._broadcast("policy", encode(SetPolicy(policy.to_dict())))

    def set_flow_types(self, types: FlowTypes) -> None:
        """Send *types* to all agents if they belong to the policy in force."""
        if self._policy is not None and self._policy.version == types.version:
            self._broadcast("flow-types", encode(types))

    def watch_flows(self, watch: WatchFlows) -> None:
        """Ask all agents for active flows, or, every 0 s, for none any more."""
        self._watch = watch
        self._broadcast("watch", encode(watch))
        if watch.every_s <= 0:
            del self._newest["watch"]

    def note_impairment(self, host: str, impairment: Impair) -> None:
        """Note that the agent of a host has this impairment, which a later agent of it receives."""
        self._impairments[host] = impairment

    def send(self, host: str, session: AgentSession) -> None:
        """Send the agent of a host, which has joined, all that is in force."""
        for kind, frame in self._newest.items():
            session.put_newest(kind, frame)
        if host in self._impairments:
            session.put_newest("impairment", encode(self._impairments[host]))

    def _broadcast(self, kind: str, frame: bytes) -> None:
        self._newest[kind] = frame
        for session in self._sessions.values():
            session.put_newest(kind, frame)
