"""Routes about the fabric as it is: health, switches, modes, agents, the scheme."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any, Final

from flask import Response

from controller.agents.asking import AgentInfo, FlowReports
from controller.api import answers, views
from controller.api.bodies import ImpairmentBody, ReportBody, SchemeBody
from controller.api.describing import Description, Query, Text
from controller.api.problems import ProblemError
from controller.api.repeatable import Repeatable
from controller.api.request_values import body, number, text
from controller.api.routing import get, post, put
from controller.lifecycle import RunningController
from controller.plane.naming import FabricNames
from controller.plane.snapshot import FabricSnapshot
from controller.schemes import loader
from controller.schemes.loader import SchemeError
from plain.reading import PlainError, did_you_mean
from protocol.control import Impair
from protocol.policy import PolicyError


class FabricRoutes:
    """The fabric as discovered, its agents and queues, and the scheme in force."""

    def __init__(self, running: RunningController, lab: bool, version: str, started: float) -> None:
        """Take what answers need. *lab*: agents may be impaired. *started*: monotonic time of the
        controller's start.
        """
        self._running: Final = running
        self._lab: Final = lab
        self._version: Final = version
        self._started: Final = started
        self._reports: Final = Repeatable[FlowReports]()

    @get("/health", Description("Whether everything that is known is set up.", answers.Health))
    def health(self) -> answers.Health:
        snapshot = self._running.snapshot()
        agents = self._running.agents.agents()
        reasons = self._what_is_missing(snapshot, agents)
        return {
            "ready": not reasons,
            "reasons": reasons,
            "version": self._version,
            "uptime_s": round(time.monotonic() - self._started, 3),
            "scheme": self._running.current.scheme.name,
            "switches": sum(switch.connected for switch in snapshot.switches),
            "links": sum(link.up for link in snapshot.links),
            "hosts": sum(host.place is not None for host in snapshot.hosts),
            "agents": sum(agent.connected for agent in agents),
        }

    def _what_is_missing(self, snapshot: FabricSnapshot, agents: Sequence[AgentInfo]) -> list[str]:
        """Return why the fabric is not ready, a sentence for each reason; empty if it is."""
        reasons = []
        if not any(switch.connected for switch in snapshot.switches):
            reasons.append("no switch is connected")
        elif not snapshot.settled:
            reasons.append("links are still being discovered")
        placeless = [host.name or host.ipv4 for host in snapshot.hosts if host.place is None]
        if placeless:
            reasons.append(f"not seen at any port yet: {', '.join(placeless)}")
        version = self._running.current.version
        waiting = [agent.host for agent in agents if agent.connected and agent.policy_version != version]
        if waiting:
            reasons.append(f"agents without the current policy: {', '.join(waiting)}")
        reasons += [f"queues of {text}" for text in self._running.queues.problems()]
        if not reasons and not self._running.ready():
            reasons.append("switches have not got their whole state yet")
        return reasons

    @get("/fabric", Description("The fabric as discovered.", answers.FabricView, problems=(503,)))
    def fabric(self) -> answers.FabricView:
        snapshot = self._running.snapshot()
        overlay = {agent.underlay_ip: agent.overlay for agent in self._running.agents.agents()}
        return views.fabric_view(snapshot, self._running.rates(FabricNames(snapshot)), overlay)

    @get(
        "/fabric/paths",
        Description(
            "All equal-cost paths between two hosts.",
            answers.PathsView,
            query=(
                Text("from", "A host's name or underlay address.", required=True),
                Text("to", "Another's.", required=True),
            ),
            problems=(404,),
        ),
    )
    def paths(self) -> answers.PathsView:
        ends = [text("from"), text("to")]
        try:
            paths = self._running.paths(*ends)
        except KeyError as error:
            raise ProblemError(404, str(error.args[0])) from None
        snapshot = self._running.snapshot()
        return {"paths": views.path_views(paths, snapshot, *ends)}

    @get(
        "/modes",
        Description(
            "Every leaf's mode, and changes after a cursor.",
            answers.ModesView,
            query=(Query("since", "Changes after this cursor; without it: none."),),
        ),
    )
    def modes(self) -> answers.ModesView:
        return views.modes_view(self._running.snapshot(), self._running.events, number("since", None))

    @get("/agents", Description("All host agents, with their counters.", answers.AgentsView))
    def agents(self) -> answers.AgentsView:
        return {"agents": [dataclasses.asdict(agent) for agent in self._running.agents.agents()]}

    @get(
        "/queues",
        Description(
            "Queues of every port: what is in force, and what each holds and has sent.", answers.QueuesView
        ),
    )
    def queues(self) -> answers.QueuesView:
        return views.queues_view(
            self._running.queues.wanted, self._running.queues.snapshot(), self._running.snapshot()
        )

    @get("/tpfs", Description("Types of flows: what was learnt, from what, and why.", answers.LearnerObject))
    def tpfs(self) -> dict[str, Any]:
        return dataclasses.asdict(self._running.learner.state())

    @get("/schemes", Description("The schemes that come with Capstan.", answers.SchemesView, tagged=True))
    def schemes(self) -> answers.SchemesView:
        return {"schemes": [loader.scheme_to_dict(scheme) for scheme in loader.all_schemes()]}

    @get("/schemes/<name>", Description("One of them.", answers.SchemeObject, tagged=True, problems=(404,)))
    def scheme(self, name: str) -> dict[str, Any]:
        return loader.scheme_to_dict(loader.load(_known_scheme(name)))

    @get(
        "/schemes/<name>.yaml",
        Description(
            "One of them, as it is written: comments give reasons.",
            str,
            tagged=True,
            problems=(404,),
            media="text/plain",
        ),
    )
    def scheme_yaml(self, name: str) -> Response:
        return Response(loader.source(_known_scheme(name)), mimetype="text/plain")

    @get("/scheme", Description("The scheme in force.", answers.SchemeView))
    def current(self) -> answers.SchemeView:
        return views.scheme_view(self._running.current)

    @put(
        "/scheme",
        Description(
            "Switch the fabric to a scheme; answers once all switches and agents have confirmed.",
            answers.AppliedScheme,
            SchemeBody,
            problems=(504,),
        ),
    )
    def set_scheme(self) -> answers.AppliedScheme:
        wanted = _scheme_body()
        packet_time_s = None if wanted.packet_time_us is None else wanted.packet_time_us / 1e6
        try:
            took_ms, late = self._running.set_scheme(
                wanted.scheme,
                overrides=wanted.overrides,
                packet_time_s=packet_time_s,
                timeout_s=wanted.timeout_s,
                forget_flows=wanted.forget_flows,
            )
        except (SchemeError, PolicyError, PlainError) as error:
            raise ProblemError(422, str(error), error.where or "body.scheme") from None
        except OSError as error:
            raise ProblemError(
                503,
                "the scheme cannot be kept over a restart, so the one before stays in force: "
                f"{error.strerror or error}; make room in the data directory, and ask again",
            ) from None
        if late:
            raise ProblemError(
                504,
                f"not all switches and agents have confirmed scheme {self._running.current.scheme.name!r} "
                f"within {wanted.timeout_s:g} s",
                unconfirmed=[dataclasses.asdict(agent) for agent in late],
            )
        return {**views.scheme_view(self._running.current), "applied_ms": round(took_ms, 3)}

    @post("/flows/report", Description("Ask all agents for their flows.", answers.ReportView, ReportBody))
    def report(self) -> answers.ReportView:
        wanted = body(ReportBody)
        reports = self._reports.respond(
            wanted.question, lambda: self._running.agents.report(wanted.forget, wanted.timeout_s)
        )
        hosts = {host: [dataclasses.asdict(flow) for flow in flows] for host, flows in reports.hosts.items()}
        return {"hosts": hosts, "missing": reports.missing}

    @put(
        "/agents/<host>/impairment",
        Description(
            "Make an agent's receiving side lossy (labs only).",
            answers.ImpairmentObject,
            ImpairmentBody,
            problems=(403, 404),
        ),
    )
    def impair(self, host: str) -> dict[str, Any]:
        if not self._lab:
            raise ProblemError(403, "agents are impaired in labs only: this controller does not run for one")
        wanted = body(ImpairmentBody)
        setting = Impair(**dataclasses.asdict(wanted))
        try:
            self._running.agents.impair(host, setting, 5.0)
        except KeyError:
            hint = did_you_mean(host, [agent.host for agent in self._running.agents.agents()])
            raise ProblemError(404, f"there is no agent {host!r}{hint}") from None
        return dataclasses.asdict(setting)


def _known_scheme(name: str) -> str:
    """Return *name*, of a scheme that comes with Capstan. Raise ProblemError."""
    try:
        return loader.known_name(name)
    except loader.SchemeError as error:
        raise ProblemError(404, str(error)) from None


def _scheme_body() -> SchemeBody:
    """Return the request's body, whose scheme is an object or a known name. Raises ProblemError."""
    wanted = body(SchemeBody)
    if not isinstance(wanted.scheme, str | dict):
        raise ProblemError(422, "body.scheme: expected a name or an object", "body.scheme")
    if isinstance(wanted.scheme, str):
        try:
            loader.known_name(wanted.scheme)
        except loader.SchemeError as error:
            raise ProblemError(422, f"body.scheme: {error}", "body.scheme") from None
    return wanted
