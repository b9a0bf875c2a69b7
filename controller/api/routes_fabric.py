"""Routes about the fabric as it is: health, switches, modes, agents, the scheme."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from flask import Blueprint

from controller.agents.asking import FlowReports
from controller.api import answers, views
from controller.api.bodies import ImpairmentBody, ReportBody, SchemeBody, body, number, text
from controller.api.describing import Description, Query, Text, describe
from controller.api.problems import ProblemError
from controller.api.repeatable import Repeatable
from controller.lifecycle import RunningController
from controller.live.naming import FabricNames
from controller.schemes import loader
from controller.schemes.loader import SchemeError
from plain.reading import PlainError, did_you_mean
from protocol.control import Impair
from protocol.policy import PolicyError

MAX_WAIT_S = 60.0


def fabric_routes(running: RunningController, lab: bool, version: str, started: float) -> Blueprint:
    """The blueprint. *started*: monotonic time of the controller's start."""
    routes = Blueprint("fabric", __name__, url_prefix="/api/v1")
    told: Repeatable[FlowReports] = Repeatable()

    @routes.get("/health")
    @describe(Description("Whether everything that is known is set up.", answers.Health))
    def health() -> answers.Health:
        snapshot = running.snapshot()
        agents = running.agents.agents()
        reasons = []
        if not any(switch.connected for switch in snapshot.switches):
            reasons.append("no switch is connected")
        elif not snapshot.settled:
            reasons.append("links are still being discovered")
        placeless = [host.name or host.ipv4 for host in snapshot.hosts if host.place is None]
        if placeless:
            reasons.append(f"not heard at any port yet: {', '.join(placeless)}")
        waiting = [
            one.host for one in agents if one.connected and one.policy_version != running.current.version
        ]
        if waiting:
            reasons.append(f"agents without the current policy: {', '.join(waiting)}")
        reasons += [f"queues of {text}" for text in running.queues.problems()]
        if not reasons and not running.ready():
            reasons.append("switches have not got their whole state yet")
        return {
            "ready": not reasons,
            "reasons": reasons,
            "version": version,
            "uptime_s": round(time.monotonic() - started, 3),
            "scheme": running.current.scheme.name,
            "switches": sum(switch.connected for switch in snapshot.switches),
            "links": sum(link.up for link in snapshot.links),
            "hosts": sum(host.place is not None for host in snapshot.hosts),
            "agents": sum(agent.connected for agent in agents),
        }

    @routes.get("/fabric")
    @describe(Description("The fabric as discovered.", answers.FabricView, problems=(503,)))
    def fabric() -> answers.FabricView:
        snapshot = running.snapshot()
        overlay = {agent.underlay_ip: agent.overlay for agent in running.agents.agents()}
        return views.fabric_view(snapshot, running.rates(FabricNames(snapshot)), overlay)

    @routes.get("/fabric/paths")
    @describe(
        Description(
            "All equal-cost paths between two hosts.",
            answers.PathsView,
            query=(
                Text("from", "A host's name or underlay address.", required=True),
                Text("to", "Another's.", required=True),
            ),
            problems=(404,),
        )
    )
    def paths() -> answers.PathsView:
        ends = [text("from"), text("to")]
        try:
            found = running.paths(*ends)
        except KeyError as error:
            raise ProblemError(404, str(error.args[0])) from None
        snapshot = running.snapshot()
        return {"paths": views.path_views(found, snapshot, *ends)}

    @routes.get("/modes")
    @describe(
        Description(
            "Every leaf's mode, and changes after a cursor.",
            answers.ModesView,
            query=(Query("since", "Changes after this cursor; without it: none."),),
        )
    )
    def modes() -> answers.ModesView:
        return views.modes_view(running.snapshot(), running.events, number("since", None))

    @routes.get("/agents")
    @describe(Description("All host agents, with their counters.", answers.AgentsView))
    def agents() -> answers.AgentsView:
        return {"agents": [views.agent_view(agent) for agent in running.agents.agents()]}

    @routes.get("/queues")
    @describe(
        Description(
            "Queues of every port: what is in force, and what each holds and has sent.", answers.QueuesView
        )
    )
    def queues() -> answers.QueuesView:
        return views.queues_view(running.queues.wanted, running.queues.snapshot(), running.snapshot())

    @routes.get("/tpfs")
    @describe(Description("Types of flows: what was learnt, from what, and why.", answers.LearnerObject))
    def tpfs() -> dict[str, Any]:
        return dataclasses.asdict(running.learner.state())

    @routes.get("/schemes")
    @describe(Description("The schemes that come with Capstan.", answers.SchemesView, tagged=True))
    def schemes() -> answers.SchemesView:
        return {"schemes": [loader.scheme_to_dict(scheme) for scheme in loader.all_schemes()]}

    @routes.get("/schemes/<name>")
    @describe(Description("One of them.", answers.SchemeObject, tagged=True, problems=(404,)))
    def scheme(name: str) -> dict[str, Any]:
        if name not in loader.scheme_names():
            hint = did_you_mean(name, loader.scheme_names())
            raise ProblemError(404, f"there is no scheme {name!r}{hint}")
        return loader.scheme_to_dict(loader.load(name))

    @routes.get("/scheme")
    @describe(Description("The scheme in force.", answers.SchemeView))
    def current() -> answers.SchemeView:
        return views.scheme_view(running.current)

    @routes.put("/scheme")
    @describe(
        Description(
            "Switch the fabric to a scheme; answers once everybody has confirmed.",
            answers.AppliedScheme,
            SchemeBody,
            problems=(504,),
        )
    )
    def set_scheme() -> answers.AppliedScheme:
        wanted = body(SchemeBody)
        if not isinstance(wanted.scheme, str | dict):
            raise ProblemError(422, "body.scheme: expected a name or an object", "body.scheme")
        if isinstance(wanted.scheme, str) and wanted.scheme not in loader.scheme_names():
            hint = did_you_mean(wanted.scheme, loader.scheme_names())
            raise ProblemError(
                422, f"body.scheme: scheme {wanted.scheme!r} is not known{hint}", "body.scheme"
            )
        packet_time_s = None if wanted.packet_time_us is None else wanted.packet_time_us / 1e6
        timeout_s = min(max(wanted.timeout_s, 0.1), MAX_WAIT_S)
        try:
            took_ms, late = running.set_scheme(
                wanted.scheme, wanted.overrides, packet_time_s, timeout_s, wanted.forget_flows
            )
        except (SchemeError, PolicyError, PlainError) as error:
            raise ProblemError(422, str(error), getattr(error, "where", "body.scheme")) from None
        except OSError as error:
            raise ProblemError(
                503,
                "the scheme cannot be kept over a restart, so the one before stays in force: "
                f"{error.strerror or error}; make room in the data directory, and ask again",
            ) from None
        if late:
            raise ProblemError(
                504,
                f"not everybody has confirmed scheme {running.current.scheme.name!r} within {timeout_s:g} s",
                unconfirmed=[dataclasses.asdict(one) for one in late],
            )
        return {**views.scheme_view(running.current), "applied_ms": round(took_ms, 3)}

    @routes.post("/flows/report")
    @describe(Description("Ask all agents for their flows.", answers.ReportView, ReportBody))
    def report() -> answers.ReportView:
        wanted = body(ReportBody)
        timeout_s = min(max(wanted.timeout_s, 0.1), MAX_WAIT_S)
        reports = told.ask(wanted.question, lambda: running.agents.report(wanted.forget, timeout_s))
        hosts = {host: [dataclasses.asdict(flow) for flow in flows] for host, flows in reports.hosts.items()}
        return {"hosts": hosts, "missing": reports.missing}

    @routes.put("/agents/<host>/impairment")
    @describe(
        Description(
            "Make an agent's receiving side lossy (labs only).",
            answers.ImpairmentObject,
            ImpairmentBody,
            problems=(403, 404),
        )
    )
    def impair(host: str) -> dict[str, Any]:
        if not lab:
            raise ProblemError(403, "agents are impaired in labs only: this controller does not run for one")
        wanted = body(ImpairmentBody)
        setting = Impair(**dataclasses.asdict(wanted))
        try:
            running.agents.impair(host, setting, 5.0)
        except KeyError:
            hint = did_you_mean(host, [one.host for one in running.agents.agents()])
            raise ProblemError(404, f"there is no agent {host!r}{hint}") from None
        return dataclasses.asdict(setting)

    return routes
