"""A controller's API for operating a fabric: scheme, faults, reports, recorded experiments (docs/api.md)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from capstan_client.errors import ControllerError
from capstan_client.http import Connected, Connection

ANSWER_TIMEOUT_S: Final = 15.0
EVENTS_PAGE: Final = 10_000


@dataclass(frozen=True, slots=True)
class Health:
    """What the controller has answer of the fabric; ready: everything that it knows of is set up."""

    ready: bool
    reasons: tuple[str, ...]
    version: str
    switches: int
    links: int
    hosts: int
    agents: int


class ControllerClient(Connected):
    """One controller. url: like ``http://127.0.0.1:8181``; token: needed on addresses other than loopback.

    authority: what the certificate of an https URL is checked by, PEM; None: the machine's authorities.
    """

    def __init__(self, url: str, token: str | None = None, authority: Path | None = None) -> None:
        self._connection = Connection(url, token, ANSWER_TIMEOUT_S, authority)
        self.authority = authority
        self.url = self._connection.url
        self.token = token

    def health(self, timeout_s: float = ANSWER_TIMEOUT_S) -> Health:
        """Return the state of the fabric as the controller sees it."""
        data = self._ask("GET", "/health", timeout_s=timeout_s)
        return Health(
            ready=data["ready"],
            reasons=tuple(data["reasons"]),
            version=data["version"],
            switches=data["switches"],
            links=data["links"],
            hosts=data["hosts"],
            agents=data["agents"],
        )

    def fabric(self) -> dict[str, Any]:
        """Return switches, links and hosts as discovered."""
        return self._ask("GET", "/fabric")

    def queues(self) -> dict[str, Any]:
        """Return queues of every port, with their counters (docs/api.md)."""
        return self._ask("GET", "/queues")

    def capton(self) -> dict[str, Any]:
        """Return what CAPTON has granted (docs/capton.md)."""
        return self._ask("GET", "/capton")

    def capton_resent(self) -> dict[str, Any]:
        """Return what TCP has retransmitted under CAPTON, and why (docs/capton.md)."""
        return self._ask("GET", "/capton/resent")

    def flow_types(self) -> dict[str, Any]:
        """Return what the controller has learnt of flows (docs/api.md, ``GET /tpfs``)."""
        return self._ask("GET", "/tpfs")

    def agents(self) -> list[dict[str, Any]]:
        """Return all agents with their counters."""
        return _list(self._ask("GET", "/agents"), "agents")

    def scheme_names(self) -> list[str]:
        """Return names of the schemes that the controller has."""
        return [scheme["name"] for scheme in _list(self._ask("GET", "/schemes"), "schemes")]

    def set_scheme(
        self,
        scheme: str | Mapping[str, Any],
        packet_time_s: float,
        *,
        overrides: Mapping[str, Any] | None = None,
        timeout_s: float = 10.0,
        forget_flows: bool = False,
    ) -> dict[str, Any]:
        """Switch the fabric to a scheme; return what is in force once all switches and agents have confirmed.

        forget_flows: what was learnt of flows before does not count.
        """
        body = {
            "scheme": scheme,
            "overrides": dict(overrides or {}),
            "packet_time_us": packet_time_s * 1e6,
            "timeout_s": timeout_s,
            "forget_flows": forget_flows,
        }
        return self._ask("PUT", "/scheme", body, timeout_s=timeout_s + ANSWER_TIMEOUT_S)

    def scheme(self) -> dict[str, Any]:
        """Return the scheme in force."""
        return self._ask("GET", "/scheme")

    def modes(self, since: int | None = None) -> tuple[list[dict[str, Any]], int]:
        """Return mode changes after cursor *since*, and the newest cursor; without *since* only the cursor."""
        data = self._ask("GET", "/modes", query={"since": since})
        return list(data.get("events", [])), int(data["cursor"])

    def events(self, since: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Return events of all kinds after cursor *since*, oldest first, at most EVENTS_PAGE; and the last one's
        cursor."""
        data = self._ask("GET", "/events", query={"since": since, "limit": EVENTS_PAGE})
        return list(data["events"]), int(data["cursor"])

    def all_events(self, since: int = 0) -> list[dict[str, Any]]:
        """Return all events after cursor *since* that the controller still has, oldest first."""
        found: list[dict[str, Any]] = []
        while True:
            events, since = self.events(since)
            found += events
            if len(events) < EVENTS_PAGE:
                return found

    def leaf_modes(self) -> dict[str, str]:
        """Return the mode of each leaf now, "on" or "off"."""
        return {leaf["leaf"]: leaf["mode"] for leaf in _list(self._ask("GET", "/modes"), "leaves")}

    def metrics(self) -> str:
        """Return the controller's metrics, as Prometheus reads them."""
        return self._connection.ask("GET", "/metrics").text

    def flows(self, before: int | None = None, limit: int = 1000) -> dict[str, Any]:
        """Return flows that agents carry or have carried, the newest first (docs/api.md, ``GET /flows``)."""
        return self._ask("GET", "/flows", query={"before": before, "limit": limit})

    def report_flows(self, forget: bool, timeout_s: float = 30.0) -> dict[str, list[dict[str, Any]]]:
        """Return flow entries of all agents by host. Raises ControllerError if an agent does not answer."""
        # A number of its own: where the request is sent twice since an answer was lost, no flow is forgotten unseen.
        body = {"forget": forget, "timeout_s": timeout_s, "question": secrets.randbits(53)}
        data = self._ask("POST", "/flows/report", body, timeout_s=timeout_s + ANSWER_TIMEOUT_S)
        if data["missing"]:
            raise ControllerError(
                f"no flow report from the agents of {', '.join(data['missing'])} within {timeout_s:g} s"
            )
        hosts: dict[str, list[dict[str, Any]]] = data["hosts"]
        return hosts

    def impair(self, host: str, **impairment: float) -> None:
        """Make the receiving side of an agent lossy, as `protocol.control.Impair` names it."""
        self._ask("PUT", f"/agents/{host}/impairment", impairment)

    def links(self) -> list[str]:
        """Return names of all links, those of hosts among them."""
        return [link["name"] for link in _list(self._ask("GET", "/links"), "links")]

    def faults(self) -> list[dict[str, Any]]:
        """Return faults in force, the oldest first."""
        return _list(self._ask("GET", "/faults"), "faults")

    def begin_fault(
        self, kind: str, target: str, rate_mbps: float | None = None, delay_ms: float | None = None
    ) -> dict[str, Any]:
        """Take something down, or make a link slower, and return the fault; in labs only."""
        body = {"kind": kind, "target": target, "rate_mbps": rate_mbps, "delay_ms": delay_ms}
        return self._ask("POST", "/faults", {key: value for key, value in body.items() if value is not None})

    def end_fault(self, number: int) -> None:
        """End a fault."""
        self._ask("DELETE", f"/faults/{number}")

    def add_restart(self, part: str, how: str, after_s: float) -> None:
        """Have the controller's events say that a part of the lab ended and was started again."""
        self._ask("POST", "/lab/restarts", {"part": part, "how": how, "after_s": after_s})

    def create_experiment(
        self,
        name: str,
        seed: int,
        spec: Mapping[str, Any],
        *,
        versions: Mapping[str, str],
        machine: Mapping[str, Any],
    ) -> int:
        """Register an experiment that begins now; return its number."""
        body = {
            "name": name,
            "seed": seed,
            "spec": dict(spec),
            "versions": dict(versions),
            "machine": dict(machine),
        }
        return int(self._ask("POST", "/experiments/recorded", body)["id"])

    def add_run(self, experiment: int, run: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a finished run with its flows; return the run as kept."""
        return self._ask("POST", f"/experiments/{experiment}/runs", dict(run), timeout_s=60.0)

    def modes_of_run(self, experiment: int, run: int) -> list[dict[str, Any]]:
        """Return mode changes that the controller kept with a run."""
        return _list(self._ask("GET", f"/experiments/{experiment}/modes", query={"run": run}), "modes")

    def finish_experiment(self, experiment: int, summary: Mapping[str, Any]) -> None:
        """Say that an experiment is finished, with its result document."""
        self._ask(
            "PATCH",
            f"/experiments/{experiment}",
            {"state": "finished", "summary": dict(summary)},
            timeout_s=60.0,
        )

    def fail_experiment(self, experiment: int, error: str, cancelled: bool = False) -> None:
        """Say that an experiment failed, or was cancelled, and why."""
        state = "cancelled" if cancelled else "failed"
        self._ask("PATCH", f"/experiments/{experiment}", {"state": state, "error": error})

    def results(self, experiment: int) -> dict[str, Any]:
        """Return an experiment, its runs and its summary."""
        return self._ask("GET", f"/experiments/{experiment}/results")

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        timeout_s: float = ANSWER_TIMEOUT_S,
        query: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON object that is the answer. Raises ControllerError."""
        answer = self._connection.json(method, path, query=query, body=body, timeout_s=timeout_s)
        if not isinstance(answer, dict):
            raise ControllerError(f"{method} {path}: unexpected answer {answer!r}")
        return answer


def _list(data: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = data[name]
    return items
