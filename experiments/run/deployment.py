"""A fabric with everything on it: lab, controller and agents, up and forwarding, or an error that says why not."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from capstan_client.controller import ControllerClient, Health
from experiments.run.command_lines import AgentOptions, agent_command, controller_command
from experiments.run.parts import (
    AgentPart,
    ControllerPart,
    DaemonPart,
    DeploymentError,
    PartError,
    ProcessPart,
)
from experiments.run.probes import PROBE_S, lost_probes
from experiments.run.readiness import LOOK_EVERY_S, Readiness
from experiments.run.restart_log import RestartLog
from experiments.run.served import ServedController
from experiments.run.supervision import Restart
from experiments.run.supervisor import Supervisor
from experiments.spec.spec import SchemeChoice, Spec, fabric_words, is_scheme_file
from plain.overrides import merge
from plain.reading import PlainError
from plain.text_file import read_text
from plain.yaml_source import read
from topologies.lab import Lab

STOP_S: Final = 30.0
SERVED_EVERY_S: Final = 2.0
"""A controller that is not our process is asked whether it is there."""
ROOT: Final = Path(__file__).parents[2]

OnStage = Callable[[str], None]
OnRestart = Callable[[Restart], None]


class Deployment:
    """Lab, controller and agents of one spec. Use as a context manager.

    Once it is up, parts that end are started again (`experiments.run.supervision`), but those that were ended on
    purpose: by `kill`, by a fault "agent-down", by `Lab.kill_switch`.

    on_stage: gets a few words about what happens next. database: SQLAlchemy URL of the controller's; None: a file of
    the lab's, gone with it. logs: directory for the logs of this deployment, which stay if it ends by an error;
    None: with the lab, gone with it. controller_options: more of the controller's own (`capstan serve --help`).
    served: a controller that runs already, in place of one of this deployment's own. path_policy: a file with the path
    policy that ``entropy: file`` means. on_restart: gets each part that was started again, in a thread of its own.
    queue: experiments can be submitted to our own controller; who holds the deployment runs them.
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
        on_restart: OnRestart = lambda restart: None,
        queue: bool = False,
    ) -> None:
        self.spec = spec
        self._queue = queue
        self.lab = Lab(
            spec.fabric,
            lab_id,
            tcp=spec.transport.profile,
            congestion_control=spec.transport.congestion,
            controller_port=served.openflow_port if served is not None else None,
            on_endpoint=self._launch_controller,
        )
        self._served = served
        self._path_policy = path_policy
        self._database = database
        self._logs = logs
        self._on_stage = on_stage
        self._controller_options = list(controller_options)
        self._on_restart = on_restart
        self._parts: list[ProcessPart] = []
        self._readiness = Readiness(spec.fabric, self._parts, client=lambda: self.client, check=self.check)
        self._supervisor: Supervisor | None = None
        self._restart_log = RestartLog(self._own_client)
        self._client: ControllerClient | None = None
        self._api: tuple[str, str | None] = ("", None)
        """The controller's address and token."""
        self._ask_again = 0.0

    @property
    def client(self) -> ControllerClient:
        """Return the client of its controller. Raises DeploymentError before `start`."""
        if self._client is None:
            raise DeploymentError("the controller is not started")
        return self._client

    @property
    def logs(self) -> Path:
        """Return the directory of all parts' logs."""
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
        """Bring everything up, prove that it forwards, and return this deployment.

        Whatever goes wrong leaves nothing behind. Raises DeploymentError, and what `Lab.start` raises.
        """
        try:
            self._on_stage(f"building the fabric: {fabric_words(self.spec)}")
            self.lab.start()
            self._on_stage("waiting for the controller")
            self._await_controller()
            self._on_stage(f"starting {len(self.lab.hosts)} host agents")
            self._start_agents()
            self._on_stage("discovering switches, links and hosts")
            self.set_scheme(self.spec.schemes[0])
            self._readiness.wait()
            self._on_stage("trying every host")
            self._probe()
            self._supervise()
        except PartError as error:
            self.stop()
            raise DeploymentError(str(error)) from None
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End agents, our controller and the lab. Harmless if nothing runs."""
        if self._supervisor is not None:
            for part in self._parts:
                part.abandoned = True
            self.lab.abandon()
            self._supervisor.stop()
            self._supervisor = None
        if self._client is not None:
            self._client.close()
            self._client = None
        for part in reversed(self._parts):  # agents before the controller
            if part.newest is not None:
                part.newest.terminate()
        deadline = time.monotonic() + STOP_S
        for part in self._parts:
            try:
                if part.newest is not None:
                    part.newest.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                part.end()
        self._parts.clear()
        self.lab.stop()

    def check(self) -> None:
        """Raise DeploymentError if the lab is to end: a part ended again and again, or, while it starts,
        once.

        Raises ControllerError if a served controller is silent.
        """
        if self._served is not None and self._client is not None and time.monotonic() > self._ask_again:
            self._client.health()
            self._ask_again = time.monotonic() + SERVED_EVERY_S
        if self._supervisor is None:
            for part in self._parts:
                part.check()
        elif self._supervisor.failure is not None:
            raise DeploymentError(self._supervisor.failure)

    @property
    def deaths(self) -> int:
        """Return the ends of parts until now that nothing on purpose explains."""
        return 0 if self._supervisor is None else self._supervisor.deaths

    @property
    def restarts(self) -> tuple[Restart, ...]:
        """Return the parts that were started again until now."""
        return () if self._supervisor is None else self._supervisor.restarts

    @property
    def complete(self) -> bool:
        """Return whether all parts run but those that are down on purpose."""
        return self._supervisor is None or self._supervisor.complete

    def wait_complete(self) -> None:
        """Return when all parts run but those that are down on purpose. Raises DeploymentError where they will not."""
        while not self.complete:
            self.check()
            time.sleep(LOOK_EVERY_S)
        self.check()

    def wait_whole(self) -> None:
        """Wait until everything of the fabric is found again that no fault on purpose took, too."""
        self.wait_complete()
        if not self._readiness.held_down():
            self._readiness.wait()

    def check_health(self) -> Health:
        """Return the controller's health. Raises DeploymentError if it misses anything of the fabric that no fault on
        purpose took.

        What such a fault has just given back gets FOUND_AGAIN_S seconds to be found again.
        """
        return self._readiness.check_health()

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
            packet_time_s=self.spec.packet_time_s,
            overrides=merge(self.spec.policy, choice.overrides),
            forget_flows=forget_flows,
        )

    def kill(self, name: str) -> None:
        """End a part ("controller", "agent h1") at once, as a crash would; it stays down until `relaunch`."""
        self.part(name).end()
        if self._supervisor is not None:
            self._supervisor.look_again()

    def relaunch(self, name: str) -> None:
        """Start a part that was killed again, as it was started first; a controller answers when this returns."""
        part = self.part(name)
        part.launch()
        if isinstance(part, ControllerPart):
            part.await_answer()
        if self._supervisor is not None:
            self._supervisor.look_again()

    def part(self, name: str) -> ProcessPart:
        """Return a part by its name ("controller", "agent h1"). Raises DeploymentError: there is none."""
        matching = [part for part in self._parts if part.name == name]
        if not matching:
            raise DeploymentError(
                f"there is no part {name!r}", remedy=f"there are {', '.join(p.name for p in self._parts)}"
            )
        return matching[0]

    # -- parts ---------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        """Start parts again that end from now on."""
        switches = [self.lab.switch(name) for name in self.lab.switches]
        daemons = [
            DaemonPart(switch, program) for switch in switches for program in ("ovsdb-server", "ovs-vswitchd")
        ]
        supervisor = Supervisor([*self._parts, *daemons], self._restarted)
        for switch in switches:
            switch.on_purpose(supervisor.look_again)
        self._supervisor = supervisor
        supervisor.start()

    def _restarted(self, restart: Restart) -> None:
        self._on_restart(restart)
        self._restart_log.add(restart)

    def _own_client(self) -> ControllerClient:
        """Return another client of the controller, for another thread: also for one that outlives `stop` for a
        moment."""
        return ControllerClient(*self._api)

    def _log(self, name: str) -> Path:
        return self.logs / f"{name.replace(' ', '-')}.log"

    def _launch_controller(self) -> None:
        """Start the controller, if it is to be our own; the fabric is built while it loads."""
        self.logs.mkdir(parents=True, exist_ok=True)
        if self._served is not None:
            return
        data = self.controller_data
        argv = controller_command(
            data,
            self.lab.controller_endpoint,
            agents_socket=self._socket,
            token_file=self._token_file,
            database=self._database,
            queue=self._queue,
        )
        part = ControllerPart(
            self.lab.popen,
            [*argv, *self._controller_options],
            self._log("controller"),
            directory=ROOT,
            data=data,
        )
        self._parts.append(part)
        part.launch()

    def _await_controller(self) -> None:
        if self._served is not None:
            self._client = self._served.client()
            self._api = self._client.url, self._client.token
            return
        (part,) = (part for part in self._parts if isinstance(part, ControllerPart))
        part.await_answer()
        self._client, self._api = ControllerClient(part.url), (part.url, None)

    @property
    def controller_data(self) -> Path:
        """Return the controller's data directory, of our own or of the one that serves us."""
        return self._served.directory if self._served is not None else self.lab.run_dir / "controller"

    @property
    def _socket(self) -> Path:
        return self._served.agents_socket if self._served is not None else self.lab.run_dir / "agents.sock"

    @property
    def _token_file(self) -> Path:
        return self._served.token_file if self._served is not None else self.lab.run_dir / "agents-token"

    def _start_agents(self) -> None:
        options = AgentOptions(self.spec.fabric.mtu, self.lab.congestion_control, self._path_policy)
        for place in self.spec.fabric.hosts():
            argv = agent_command(place, self._socket, self._token_file, options)
            log = self._log(f"agent {place.name}")
            part = AgentPart(
                place.name, self.lab.popen, argv, log=log, directory=ROOT, client=self._own_client
            )
            self._parts.append(part)
            part.launch()

    def _probe(self) -> None:
        """Raise DeploymentError unless a small flow from every host arrives."""
        lost = lost_probes(self.lab.popen, self.spec, self.logs, self.check)
        if lost:
            raise DeploymentError(
                f"the fabric does not forward: {len(lost)} of {len(self.spec.endpoints())} probes failed within "
                f"{PROBE_S:g} s: {', '.join(lost[:5])}{self._readiness.log_ends()}"
            )


def scheme_body(name: str) -> str | dict[str, Any]:
    """Return what the API is given: a scheme's name, or the whole scheme from a file of the user's."""
    if not is_scheme_file(name):
        return name
    source = read(read_text(Path(name)), name)
    if source.problems or not isinstance(source.data, dict):
        raise PlainError(name, str(source.problems[0]) if source.problems else "is not a scheme")
    return source.data
