"""A fabric with everything on it: lab, controller and agents, up and forwarding, or an error that says why not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from experiments.controller_client import ControllerClient, ControllerError, Health
from experiments.served import ServedController
from experiments.spec import SchemeChoice, Spec, is_scheme_file, merge_overrides
from experiments.traffic import Traffic, log_tail
from experiments.yaml_source import read
from protocol.plain import PlainError
from topologies.addressing import OVERLAY6_PREFIX, OVERLAY_PREFIX
from topologies.lab import Lab
from workloads.plan import Plan, PlannedFlow

CONTROLLER_START_S: Final = 60.0
READY_S: Final = 60.0
PROBE_S: Final = 30.0
STOP_S: Final = 30.0
FOUND_AGAIN_S: Final = 5.0
SERVED_EVERY_S: Final = 2.0
"""A controller that is not our process is asked whether it is there."""
ROOT: Final = Path(__file__).parent.parent
PROBE_BYTES: Final = 1000

OnStage = Callable[[str], None]


class DeploymentError(RuntimeError):
    """A part did not start or has died; the text names it, with the end of its log."""


@dataclass(slots=True)
class _Part:
    name: str
    process: subprocess.Popen[Any]
    log: Path
    host: str | None
    argv: Sequence[str]


class Deployment:
    """Lab, controller and agents of one spec. Use as a context manager.

    on_stage: told in a few words what happens next. database: SQLAlchemy URL of the controller's; None: a file of
    the lab's, gone with it. logs: directory for the logs of this deployment, which stay if it ends by an error;
    None: with the lab, gone with it. controller_options: more of the controller's own (`capstan serve --help`).
    served: a controller that runs already, in place of one of this deployment's own. path_policy: a file with the path
    policy that ``entropy: file`` means.
    """

    def __init__(
        self,
        spec: Spec,
        *,
        lab_id: str | None = None,
        database: str | None = None,
        logs: Path | None = None,
        on_stage: OnStage = lambda text: None,
        controller_options: Sequence[str] = (),
        served: ServedController | None = None,
        path_policy: Path | None = None,
    ) -> None:
        self.spec = spec
        self.lab = Lab(
            spec.fabric,
            lab_id,
            tcp=spec.transport.profile,
            congestion_control=spec.transport.congestion,
            controller_port=served.openflow_port if served is not None else None,
        )
        self._served = served
        self._path_policy = path_policy
        self._database = database
        self._logs = logs
        self._on_stage = on_stage
        self._controller_options = list(controller_options)
        self._parts: list[_Part] = []
        self._felled: set[str] = set()
        """Agents that were killed on purpose and have not been started again."""
        self._client: ControllerClient | None = None
        self._ask_again = 0.0

    @property
    def client(self) -> ControllerClient:
        if self._client is None:
            raise DeploymentError("the controller is not started")
        return self._client

    @property
    def logs(self) -> Path:
        """Directory of all parts' logs."""
        return self._logs / self.lab.lab_id if self._logs is not None else self.lab.run_dir / "logs"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None and self._logs is not None:
            shutil.rmtree(self.logs, ignore_errors=True)

    def start(self) -> Self:
        """Bring everything up and prove that it forwards; whatever goes wrong leaves nothing behind."""
        try:
            self._on_stage(f"building the fabric: {fabric_words(self.spec)}")
            self.lab.start()
            self.logs.mkdir(parents=True, exist_ok=True)
            if self._served is not None:
                self._client = self._served.client()
            else:
                self._on_stage("starting the controller")
                self._start_controller()
            self._on_stage(f"starting {len(self.lab.hosts)} host agents")
            self._start_agents()
            self._on_stage("discovering switches, links and hosts")
            self.set_scheme(self.spec.schemes[0])
            self._wait_ready()
            self._on_stage("trying every host")
            self._probe()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End agents, our controller and the lab. Harmless if nothing runs."""
        if self._client is not None:
            self._client.close()
            self._client = None
        for part in reversed(self._parts):  # agents before the controller
            if part.process.poll() is None:
                part.process.terminate()
        deadline = time.monotonic() + STOP_S
        for part in self._parts:
            try:
                part.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                part.process.kill()
                part.process.wait()
        self._parts.clear()
        self.lab.stop()

    def check(self) -> None:
        """Raises DeploymentError if a process has ended, but for agents that the controller was told to kill.

        Those are started again when that fault has ended. Raises ControllerError if a served controller is silent.
        """
        if self._served is not None and self._client is not None and time.monotonic() > self._ask_again:
            self._client.health()
            self._ask_again = time.monotonic() + SERVED_EVERY_S
        for part in tuple(self._parts):
            if part.process.poll() is not None:
                if part.host is not None and part.name in self._killed(part.host):
                    continue
                if part.name in self._felled:
                    self._felled.discard(part.name)
                    self.relaunch(part.name)
                    continue
                raise DeploymentError(
                    f"{part.name} has ended (exit code {part.process.returncode}){log_tail(part.log)}"
                )

    def _killed(self, host: str) -> set[str]:
        """Agents that are down because a fault wants it."""
        try:
            down = {f"agent {one['target']}" for one in self.client.faults() if one["kind"] == "agent-down"}
        except ControllerError as error:
            raise DeploymentError(
                f"the agent of {host} has ended, and the controller says nothing: {error}"
            ) from None
        self._felled |= down
        return down

    def check_health(self) -> Health:
        """The same, and raises if the controller misses anything of the fabric that no fault on purpose took.

        What such a fault has just given back gets some seconds to be found again.
        """
        deadline = time.monotonic() + FOUND_AGAIN_S
        while True:
            self.check()
            health = self.client.health()
            missing = self._missing(health)
            if not missing or any(one["kind"] != "slow-link" for one in self.client.faults()):
                return health
            if time.monotonic() > deadline:
                raise DeploymentError(f"the fabric is not whole: {'; '.join(missing)}{self._tails()}")
            time.sleep(0.1)

    def take(self, spec: Spec) -> None:
        """Go on with another spec. Raises DeploymentError unless its fabric and transport are those of this one."""
        if (spec.fabric, spec.transport) != (self.spec.fabric, self.spec.transport):
            raise DeploymentError(
                f"{spec.name!r} needs another fabric or transport: start a deployment for it"
            )
        self.spec = spec

    def set_scheme(self, choice: SchemeChoice, forget_flows: bool = False) -> dict[str, Any]:
        """Switch to a scheme of the spec, with its overrides; returns when all have confirmed.

        forget_flows: what the controller has learnt of flows before does not count.
        """
        return self.client.set_scheme(
            scheme_body(choice.name),
            self.spec.packet_time_s,
            merge_overrides(self.spec.policy, choice.overrides),
            forget_flows=forget_flows,
        )

    def kill(self, name: str) -> None:
        """End a part ("controller", "agent h1") at once, as a crash would; `relaunch` brings it back."""
        part = self._part(name)
        part.process.kill()
        part.process.wait()

    def relaunch(self, name: str) -> None:
        """Start a part that has ended again, as it was started first; a controller answers when this returns."""
        part = self._part(name)
        self._parts.remove(part)
        if name == "controller":
            if self._client is not None:
                self._client.close()
            self._start_controller()
        else:
            self._launch(part.name, part.host, part.argv)

    def _part(self, name: str) -> _Part:
        found = [part for part in self._parts if part.name == name]
        if not found:
            raise DeploymentError(
                f"there is no part {name!r}; there are {', '.join(p.name for p in self._parts)}"
            )
        return found[0]

    # -- parts ---------------------------------------------------------------------------------------

    def _launch(self, name: str, host: str | None, argv: Sequence[str]) -> _Part:
        log = self.logs / f"{name.replace(' ', '-')}.log"
        with log.open("ab") as output:
            process = self.lab.popen(host, argv, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT)
        part = _Part(name, process, log, host, argv)
        self._parts.append(part)
        return part

    def _start_controller(self) -> None:
        data = self.lab.run_dir / "controller"
        endpoints = data / "endpoints.json"
        endpoints.unlink(missing_ok=True)  # a controller that was killed leaves its own
        address, port = self.lab.controller_endpoint
        argv = [sys.executable, "-m", "controller", "--lab", "--no-experiments"]
        argv += ["--data", str(data)]
        argv += ["--openflow", f"{address}:{port}", "--api", "127.0.0.1:0"]
        argv += ["--agents-socket", str(self._socket), "--token-file", str(self._token_file)]
        argv += self._controller_options
        if self._database is not None:
            argv += ["--database", self._database]
        part = self._launch("controller", None, argv)
        deadline = time.monotonic() + CONTROLLER_START_S
        while not endpoints.exists():
            self.check()
            if time.monotonic() > deadline:
                raise DeploymentError(
                    f"the controller did not open its API within {CONTROLLER_START_S:g} s{log_tail(part.log)}"
                )
            time.sleep(0.02)
        self._client = ControllerClient(json.loads(endpoints.read_text(encoding="utf-8"))["api"])

    @property
    def _socket(self) -> Path:
        return self._served.agents_socket if self._served is not None else self.lab.run_dir / "agents.sock"

    @property
    def _token_file(self) -> Path:
        return self._served.token_file if self._served is not None else self.lab.run_dir / "agents-token"

    def _start_agents(self) -> None:
        for place in self.spec.fabric.hosts():
            argv = [sys.executable, "-m", "host_agent", "--host", place.name]
            argv += ["--interface", f"{place.name}-eth0", "--underlay-ip", place.underlay]
            argv += ["--overlay", f"{place.overlay}/{OVERLAY_PREFIX}"]
            argv += ["--overlay", f"{place.overlay6}/{OVERLAY6_PREFIX}"]
            argv += ["--underlay-mtu", str(self.spec.fabric.mtu)]
            argv += ["--congestion-control", self.lab.congestion_control]
            argv += ["--controller", f"unix:{self._socket}", "--token-file", str(self._token_file)]
            if self._path_policy is not None:
                argv += ["--path-policy", str(self._path_policy.absolute())]
            self._launch(f"agent {place.name}", place.name, argv)

    # -- readiness -----------------------------------------------------------------------------------

    def _missing(self, health: Health) -> list[str]:
        """What is not there yet, in words."""
        fabric = self.spec.fabric
        links = [name for name in fabric.link_names() if not name.startswith("h") and name not in fabric.down]
        wanted = {
            "switches": (health.switches, len(self.lab.switches)),
            "links between switches": (health.links, len(links)),
            "agents": (health.agents, len(self.lab.hosts)),
            "hosts": (health.hosts, len(self.lab.hosts)),
        }
        missing = [f"{have} of {want} {what}" for what, (have, want) in wanted.items() if have != want]
        return missing + ([] if health.ready else [f"the controller waits for {r}" for r in health.reasons])

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + READY_S
        while True:
            self.check()
            missing = self._missing(self.client.health())
            if not missing:
                return
            if time.monotonic() > deadline:
                raise DeploymentError(
                    f"the fabric is not ready after {READY_S:g} s: {'; '.join(missing)}{self._tails()}"
                )
            time.sleep(0.1)

    def _tails(self) -> str:
        """Ends of the logs of the controller and of agents that it does not know."""
        try:
            known = {agent["host"] for agent in self.client.agents() if agent["connected"]}
        except ControllerError:
            known = set()
        text = ""
        for part in self._parts:
            if part.name == "controller" or part.name.removeprefix("agent ") not in known:
                text += f"\n{part.name}{log_tail(part.log)}"
                if text.count("\n") > 40:
                    break
        return text

    def _probe(self) -> None:
        """One small flow from every host to the next host of another leaf, over the overlay."""
        endpoints = self.spec.endpoints()
        flows = []
        for index, source in enumerate(endpoints):
            others = [other for other in endpoints if other.leaf != source.leaf]
            others = others or [other for other in endpoints if other != source]
            if others:
                target = others[index % len(others)]
                flows.append(
                    PlannedFlow(
                        index, source.host, target.host, 9000 + index % 900, 0.0, PROBE_BYTES, "short"
                    )
                )
        with Traffic(self.lab.popen, endpoints, self.logs) as traffic:
            traffic.configure(self.spec.transport)
            traffic.prepare(Plan(tuple(flows), (0.0, 0.0), 0.0, PROBE_BYTES))
            traffic.run(PROBE_S, lambda finished, failed: None, self.check)
            sent, _ = traffic.stop_flows()
        names = {flow.id: f"{flow.source} to {flow.destination}" for flow in flows}
        lost = [f"{names[flow.id]} ({flow.error})" for flow in sent if flow.state != "finished"]
        if lost:
            raise DeploymentError(
                f"the fabric does not forward: {len(lost)} of {len(flows)} probes failed within {PROBE_S:g} s: "
                f"{', '.join(lost[:5])}{self._tails()}"
            )


def scheme_body(name: str) -> str | dict[str, Any]:
    """What the API is given: a scheme's name, or the whole scheme from a file of the user's."""
    if not is_scheme_file(name):
        return name
    source = read(Path(name).read_text(encoding="utf-8"), name)
    if source.problems or not isinstance(source.data, dict):
        raise PlainError(name, str(source.problems[0]) if source.problems else "is no scheme")
    return source.data


def fabric_words(spec: Spec) -> str:
    """`2 leaves x 16 spines, 8 hosts, links of 3 Mbit/s`."""
    fabric = spec.fabric
    if fabric.topology == "leaf-spine":
        shape = f"{fabric.leaves} leaves x {fabric.spines} spines"
    else:
        shape = f"{fabric.k}-ary fat tree"
    rate = fabric.slowest_link_mbps
    links = "unshaped links" if rate is None else f"links of {rate:g} Mbit/s"
    return f"{shape}, {len(fabric.hosts())} hosts, {links}"
