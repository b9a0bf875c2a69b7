"""CAPTON's route: who is granted what, and how soon requests are answered."""

from __future__ import annotations

from typing import Any, Final

from controller.agents.asking import AgentInfo
from controller.api import answers_capton
from controller.api.describing import Description
from controller.api.routing import get
from controller.capton.fabric import VirtualLink
from controller.capton.resent import ResentView
from controller.capton.service import AdmissionState
from controller.lifecycle import RunningController
from protocol.latency import Latencies, bounds_us

MOST_FLOWS: Final = 1000
MOST_RESENT: Final = 1000
HOST_COUNTERS: Final = (
    "flows_small",
    "flows_scheduled",
    "flows_unscheduled_by_fail_safe",
    "bytes_sent_again",
)


class CaptonRoutes:
    """What CAPTON has granted, and what was retransmitted under it."""

    def __init__(self, running: RunningController) -> None:
        self._running: Final = running

    @get(
        "/capton",
        Description(
            "CAPTON: flows that are granted or wait, use of virtual links.", answers_capton.CaptonView
        ),
    )
    def capton(self) -> Any:
        return capton_view(
            self._running.admission.standing(),
            self._running.agents.agents(),
            self._running.current.scheme.name,
        )

    @get(
        "/capton/resent",
        Description("Payload that TCP has retransmitted under CAPTON, and why.", answers_capton.ResentView),
    )
    def resent(self) -> Any:
        return resent_view(self._running.admission.resent())


def capton_view(
    standing: AdmissionState | None, agents: list[AgentInfo], scheme: str
) -> answers_capton.CaptonView:
    """Return the answer of the route. *standing*: None under a scheme without admission."""
    flows = [] if standing is None else standing.flows
    granted = [flow.active for flow in flows if flow.active.rate_bps]
    return {
        "enabled": standing is not None,
        "scheme": scheme,
        "paths": None if standing is None else standing.paths,
        "totals": {
            "granted_flows": len(granted),
            "waiting_flows": len(flows) - len(granted),
            "granted_bps": sum(flow.rate_bps for flow in granted),
            "remaining_bytes": sum(flow.active.remaining_bytes for flow in flows),
        },
        "flows": [
            {
                "flow": active.flow,
                "source": active.source,
                "destination": active.destination,
                "state": "granted" if active.rate_bps else "waiting",
                "rate_bps": active.rate_bps,
                "remaining_bytes": active.remaining_bytes,
                "asked_bytes": asked_bytes,
                "asked_s_ago": round(standing.at - asked_at, 4),
                "path": active.stamp or None,
            }
            for active, asked_at, asked_bytes in flows[:MOST_FLOWS]
        ]
        if standing is not None
        else [],
        "links": [] if standing is None else _links(standing),
        "counters": {} if standing is None else standing.counters,
        "hosts": [_host(agent) for agent in agents] if standing is not None else [],
        "latency": _latency(Latencies.from_counters(agent.counters for agent in agents)),
    }


def resent_view(view: ResentView) -> answers_capton.ResentView:
    """Return what was retransmitted, the newest first."""
    return {
        "episodes": view.episodes,
        "bytes": view.bytes,
        "by_cause": [
            {"state": state, "trigger": trigger, "verdict": verdict, "bytes": count}
            for (state, trigger, verdict), count in view.by_cause.items()
        ],
        "newest": [
            {
                "number": episode.number,
                "s_ago": round(view.at - episode.at, 4),
                "host": episode.host,
                "source": episode.resent.source,
                "source_port": episode.resent.source_port,
                "destination": episode.resent.destination,
                "destination_port": episode.resent.destination_port,
                "state": episode.resent.state,
                "trigger": episode.resent.trigger,
                "lasted_s": episode.resent.lasted_s,
                "quiet_s": episode.resent.quiet_s,
                "late_s": episode.resent.late_s,
                "in_flight_bytes": episode.resent.in_flight_bytes,
                "bytes": episode.resent.bytes,
                "needless_bytes": episode.resent.needless_bytes,
                "queue_bytes": episode.resent.queue_bytes,
            }
            for episode in reversed(view.newest[-MOST_RESENT:])
        ],
    }


def _links(standing: AdmissionState) -> list[answers_capton.CaptonLink]:
    def name(link: VirtualLink, kind: str) -> str:
        return link.of if kind == "path" else f"{link.of} {link.direction}"

    return [
        {
            "name": name(link, kind := standing.kinds.get(link.of, "path")),
            "of": link.of,
            "kind": kind,
            "direction": link.direction,
            "capacity_bps": use.capacity_bps,
            "granted_bps": use.granted_bps,
            "utilisation": round(use.granted_bps / use.capacity_bps, 4) if use.capacity_bps else 0.0,
        }
        for link, use in standing.links.items()
    ]


def _host(agent: AgentInfo) -> answers_capton.CaptonHost:
    small, scheduled, fail_safe, again = (int(agent.counters.get(name, 0)) for name in HOST_COUNTERS)
    return {
        "host": agent.host,
        "flows_small": small,
        "flows_scheduled": scheduled,
        "flows_unscheduled_by_fail_safe": fail_safe,
        "unscheduled_now": int(agent.counters.get("flows_unscheduled", 0)),
        "bytes_sent_again": again,
    }


def _latency(latencies: Latencies) -> answers_capton.CaptonLatency:
    return {
        "count": len(latencies),
        "median_us": latencies.quantile_us(0.5),
        "p99_us": latencies.quantile_us(0.99),
        "buckets": [
            {"from_us": round(low, 1), "to_us": round(high, 1), "count": count}
            for bucket, count in sorted(latencies.counts.items())
            for low, high in (bounds_us(bucket),)
        ],
    }
