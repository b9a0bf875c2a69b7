"""Typed client of the controller's REST API (docs/api.md): what experiments need of it."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import requests

CONNECT_TIMEOUT_S: Final = 3.0
ANSWER_TIMEOUT_S: Final = 15.0


class ControllerError(RuntimeError):
    """The controller refused something or did not answer; the text says what and why."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Health:
    """What the controller has found of the fabric; ready: everything that it knows of is set up."""

    ready: bool
    reasons: tuple[str, ...]
    version: str
    switches: int
    links: int
    hosts: int
    agents: int


class ControllerClient:
    """One controller. url: like ``http://127.0.0.1:8181``; token: needed on addresses other than loopback."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        self.token = token
        self._session = requests.Session()
        self._session.trust_env = False  # a proxy of the environment has no business with a loopback address
        if token is not None:
            self._session.headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._session.close()

    def health(self, timeout_s: float = ANSWER_TIMEOUT_S) -> Health:
        """State of the fabric as the controller sees it."""
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
        """Switches, links and hosts as discovered."""
        return self._ask("GET", "/fabric")

    def queues(self) -> dict[str, Any]:
        """Queues of every port, with their counters (docs/api.md)."""
        return self._ask("GET", "/queues")

    def capton(self) -> dict[str, Any]:
        """What CAPTON has granted (docs/capton.md)."""
        return self._ask("GET", "/capton")

    def capton_resent(self) -> dict[str, Any]:
        """What TCP has sent again under CAPTON, and why (docs/capton.md)."""
        return self._ask("GET", "/capton/resent")

    def flow_types(self) -> dict[str, Any]:
        """What the controller has learnt of flows (docs/api.md, ``GET /tpfs``)."""
        return self._ask("GET", "/tpfs")

    def agents(self) -> list[dict[str, Any]]:
        """All agents with their counters."""
        return _list(self._ask("GET", "/agents"), "agents")

    def scheme_names(self) -> list[str]:
        """Names of the schemes that the controller has."""
        return [scheme["name"] for scheme in _list(self._ask("GET", "/schemes"), "schemes")]

    def set_scheme(
        self,
        scheme: str | Mapping[str, Any],
        packet_time_s: float,
        overrides: Mapping[str, Any] | None = None,
        timeout_s: float = 10.0,
        forget_flows: bool = False,
    ) -> dict[str, Any]:
        """Switch the fabric; returns once all switches and agents have confirmed.

        forget_flows: what was learnt of flows before does not count.
        """
        body = {
            "scheme": scheme,
            "overrides": dict(overrides or {}),
            "packet_time_us": packet_time_s * 1e6,
            "timeout_s": timeout_s,
            "forget_flows": forget_flows,
        }
        return self._ask("PUT", "/scheme", body, timeout_s + ANSWER_TIMEOUT_S)

    def scheme(self) -> dict[str, Any]:
        """What is in force."""
        return self._ask("GET", "/scheme")

    def modes(self, since: int | None = None) -> tuple[list[dict[str, Any]], int]:
        """Mode changes after cursor *since*, and the newest cursor; without *since* only the cursor."""
        data = self._ask("GET", "/modes" if since is None else f"/modes?since={since}")
        return list(data.get("events", [])), int(data["cursor"])

    def events(self, since: int = 0) -> tuple[list[dict[str, Any]], int]:
        """Events of all kinds after cursor *since*, oldest first, at most 10000; and the cursor of the last one."""
        data = self._ask("GET", f"/events?since={since}&limit=10000")
        return list(data["events"]), int(data["cursor"])

    def leaf_modes(self) -> dict[str, str]:
        """Mode of each leaf now, "on" or "off"."""
        return {one["leaf"]: one["mode"] for one in _list(self._ask("GET", "/modes"), "leaves")}

    def report_flows(self, forget: bool, timeout_s: float = 30.0) -> dict[str, list[dict[str, Any]]]:
        """Flow entries of all agents by host. Raises ControllerError if an agent does not answer."""
        # A number of its own: where the request is sent twice since an answer was lost, nothing is forgotten unheard.
        body = {"forget": forget, "timeout_s": timeout_s, "question": secrets.randbits(53)}
        data = self._ask("POST", "/flows/report", body, timeout_s + ANSWER_TIMEOUT_S)
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
        """Names of all links, those of hosts among them."""
        return [link["name"] for link in _list(self._ask("GET", "/links"), "links")]

    def faults(self) -> list[dict[str, Any]]:
        """Faults in force, the oldest first."""
        return _list(self._ask("GET", "/faults"), "faults")

    def begin_fault(
        self, kind: str, target: str, rate_mbps: float | None = None, delay_ms: float | None = None
    ) -> dict[str, Any]:
        """Take something down, or make a link slower; in labs only."""
        body = {"kind": kind, "target": target, "rate_mbps": rate_mbps, "delay_ms": delay_ms}
        return self._ask("POST", "/faults", {key: value for key, value in body.items() if value is not None})

    def end_fault(self, number: int) -> None:
        self._ask("DELETE", f"/faults/{number}")

    def add_restart(self, part: str, how: str, after_s: float) -> None:
        """Have the controller's events say that a part of the lab ended and was started again."""
        self._ask("POST", "/lab/restarts", {"part": part, "how": how, "after_s": after_s})

    def create_experiment(
        self,
        name: str,
        seed: int,
        spec: Mapping[str, Any],
        versions: Mapping[str, str],
        machine: Mapping[str, Any],
    ) -> int:
        """Register an experiment that begins now; returns its number."""
        body = {
            "name": name,
            "seed": seed,
            "spec": dict(spec),
            "versions": dict(versions),
            "machine": dict(machine),
        }
        return int(self._ask("POST", "/experiments/recorded", body)["id"])

    def add_run(self, experiment: int, run: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a finished run with its flows."""
        return self._ask("POST", f"/experiments/{experiment}/runs", dict(run), 60.0)

    def modes_of_run(self, experiment: int, run: int) -> list[dict[str, Any]]:
        """Mode changes that the controller kept with a run."""
        return _list(self._ask("GET", f"/experiments/{experiment}/modes?run={run}"), "modes")

    def finish_experiment(self, experiment: int, summary: Mapping[str, Any]) -> None:
        self._ask(
            "PATCH", f"/experiments/{experiment}", {"state": "finished", "summary": dict(summary)}, 60.0
        )

    def fail_experiment(self, experiment: int, error: str) -> None:
        self._ask("PATCH", f"/experiments/{experiment}", {"state": "failed", "error": error})

    def results(self, experiment: int) -> dict[str, Any]:
        """An experiment, its runs and its summary."""
        return self._ask("GET", f"/experiments/{experiment}/results")

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> dict[str, Any]:
        what = f"{method} {path}"
        try:
            answer = self._session.request(
                method, f"{self.url}/api/v1{path}", json=body, timeout=(CONNECT_TIMEOUT_S, timeout_s)
            )
        except requests.RequestException as error:
            raise ControllerError(
                f"the controller at {self.url} does not answer {what}: {_unanswered(error, timeout_s)}"
            ) from None
        try:
            data = answer.json()
        except ValueError:
            raise ControllerError(
                f"{what}: {answer.status_code}, and no JSON: {answer.text[:200]!r}", answer.status_code
            ) from None
        if answer.status_code >= 400 or not isinstance(data, dict):
            raise ControllerError(f"{what}: {_problem(data)}", answer.status_code)
        return data


def _unanswered(error: requests.RequestException, timeout_s: float) -> str:
    """Why, in words of the system and not of the libraries in between."""
    if isinstance(
        error,
        requests.exceptions.InvalidURL
        | requests.exceptions.MissingSchema
        | requests.exceptions.InvalidSchema,
    ):
        return "that is no URL of a controller, such as http://192.0.2.1:8080"
    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {CONNECT_TIMEOUT_S:g} s"
    if isinstance(error, requests.Timeout):
        return f"nothing came within {timeout_s:g} s"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror):
            return "no machine of that name is known"
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno).lower()
        cause = cause.__cause__ or cause.__context__
    return "the connection ended before there was an answer"


def _problem(data: Any) -> str:
    if not isinstance(data, dict):
        return f"unexpected answer {data!r}"
    text = str(data.get("detail") or data.get("title") or data)
    unconfirmed: Sequence[Mapping[str, str]] = data.get("unconfirmed") or []
    if unconfirmed:
        text += "; not confirmed by " + ", ".join(f"{item['who']} ({item['why']})" for item in unconfirmed)
    return text


def _list(data: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = data[name]
    return items
