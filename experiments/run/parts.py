"""What a deployment runs and its supervisor starts again: controller, agents, switches' daemons."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from capstan_client.controller import ControllerClient
from capstan_client.errors import CapstanError, ControllerError
from experiments.run.traffic import Popen, log_tail
from topologies.ovs import Daemon, OvsSwitch

LOOK_EVERY_S: Final = 0.02
CONTROLLER_START_S: Final = 60.0
AGENT_START_S: Final = 10.0
"""An agent that has not found its controller by then counts as started: there may be no controller."""
ASK_S: Final = 2.0


class PartError(CapstanError, RuntimeError):
    """A part did not start or has died; the text names it, with the end of its log."""


class DeploymentError(CapstanError, RuntimeError):
    """A part did not start, or ended again and again; the text names it, with the end of its log."""


class ProcessPart:
    """A part that is one process with a log of its own."""

    def __init__(
        self, name: str, popen: Popen, host: str | None, *, argv: Sequence[str], log: Path, directory: Path
    ) -> None:
        self.name = name
        self.log = log
        self.wanted = True
        """Whether it is to run: not after `end`."""
        self.abandoned = False
        """Whether nothing waits any more for it to come up."""
        self.newest: subprocess.Popen[Any] | None = None
        self.launched_at = 0.0
        """When, Unix seconds."""
        self._popen = popen
        self._host = host
        self.argv = list(argv)
        self._directory = directory
        self._changing = threading.Lock()
        """Held by who starts the process, or says that it is not to run."""

    @property
    def process(self) -> subprocess.Popen[Any] | None:
        """Return its newest process; None after `end`."""
        return self.newest if self.wanted else None

    def held(self) -> bool:
        """Return False: no fault keeps it down."""
        return False

    def was_held(self) -> bool:
        """Return False: no fault ends it."""
        return False

    def start(self) -> None:
        """Start it again, and return at once; not after `end`."""
        self.launch_again()

    def launch(self) -> subprocess.Popen[Any]:
        """Start its process, also after `end`; return at once."""
        with self._changing:
            process = self._begin()
            self.wanted = True  # not before: its supervisor would take the process of before for the newest
            return process

    def launch_again(self) -> subprocess.Popen[Any] | None:
        """Start its process, and return it at once; None, and nothing started, after `end`."""
        with self._changing:
            return self._begin() if self.wanted else None

    def _begin(self) -> subprocess.Popen[Any]:
        with self.log.open("ab") as output:
            process = self._popen(
                self._host, self.argv, stdout=output, stderr=subprocess.STDOUT, cwd=self._directory
            )
        self.newest, self.launched_at = process, time.time()
        return process

    def end(self) -> None:
        """End it at once, as a crash would, and for good."""
        with self._changing:  # what is being started just now is the newest then
            self.wanted = False
        process = self.newest
        if process is not None:
            process.kill()
            process.wait()

    def check(self) -> None:
        """Raise PartError if its process has ended though it is wanted."""
        if self.process is not None and self.process.poll() is not None:
            raise PartError(
                f"{self.name} has ended (exit code {self.process.returncode}){log_tail(self.log)}"
            )


class ControllerPart(ProcessPart):
    """A controller. data: its directory; its API's address, once known, is the same for good."""

    def __init__(self, popen: Popen, argv: Sequence[str], log: Path, *, directory: Path, data: Path) -> None:
        super().__init__(
            "controller", popen, None, argv=[*argv, "--api", "127.0.0.1:0"], log=log, directory=directory
        )
        self._endpoints = data / "endpoints.json"
        self.url = ""

    def start(self) -> None:
        """Return once its API answers. Raises PartError; it does not run then."""
        if self.launch_again() is not None:
            self.await_answer()

    def _begin(self) -> subprocess.Popen[Any]:
        self._endpoints.unlink(missing_ok=True)  # a controller that was killed leaves its own
        return super()._begin()

    def await_answer(self) -> None:
        """Return once the API of the process that was launched answers. Raises PartError; it does not run then."""
        process = self.newest
        assert process is not None
        deadline = time.monotonic() + CONTROLLER_START_S
        while not self._endpoints.exists():
            if process.poll() is not None or self.abandoned or time.monotonic() > deadline:
                self._fail(process)
            time.sleep(LOOK_EVERY_S)
        self.url = json.loads(self._endpoints.read_text(encoding="utf-8"))["api"]
        self.argv[-1] = self.url.removeprefix("http://")
        with ControllerClient(self.url) as client:
            try:
                client.health(max(ASK_S, deadline - time.monotonic()))
            except ControllerError:
                self._fail(process)

    def _fail(self, process: subprocess.Popen[Any]) -> None:
        code = process.poll()
        process.kill()
        process.wait()
        how = f"has ended (exit code {code})"
        if code is None:
            how = f"did not open its API within {CONTROLLER_START_S:g} s"
        raise PartError(f"the controller {how}{log_tail(self.log)}")


class AgentPart(ProcessPart):
    """The agent of a host. client: makes a client of its controller."""

    def __init__(
        self,
        host: str,
        popen: Popen,
        argv: Sequence[str],
        *,
        log: Path,
        directory: Path,
        client: Callable[[], ControllerClient],
    ) -> None:
        super().__init__(f"agent {host}", popen, host, argv=argv, log=log, directory=directory)
        self._client = client
        self._of = host

    def held(self) -> bool:
        """Return whether a fault "agent-down" keeps it down; False where the controller does not answer."""
        try:
            with self._client() as client:
                return any(
                    (fault["kind"], fault["target"]) == ("agent-down", self._of) for fault in client.faults()
                )
        except ControllerError:
            return False  # a controller that comes back ends it again if it is to be down

    def was_held(self) -> bool:
        """Return whether such a fault ended after this process was launched, which has ended it then."""
        cursor = 0
        try:
            with self._client() as client:
                while True:
                    events, cursor = client.events(cursor)
                    if not events or any(self._was_held_by(event) for event in events):
                        return bool(events)
        except ControllerError:
            return False

    def _was_held_by(self, event: Mapping[str, Any]) -> bool:
        if event["kind"] != "fault-ended" or event["at"] < self.launched_at:
            return False
        return (event["fault"]["kind"], event["fault"]["target"]) == ("agent-down", self._of)

    def start(self) -> None:
        """Return once it is connected to its controller, has ended, or AGENT_START_S have passed; not after `end`."""
        began = time.time()
        process = self.launch_again()
        if process is None:
            return
        deadline = time.monotonic() + AGENT_START_S
        with self._client() as client:
            while not self._connected(client, began):
                if process.poll() is not None or self.abandoned or time.monotonic() > deadline:
                    return
                time.sleep(LOOK_EVERY_S)

    def _connected(self, client: ControllerClient, since: float) -> bool:
        try:
            agents = client.agents()
        except ControllerError:
            return False
        return any(
            agent["host"] == self._of and agent["connected"] and agent["connected_at"] >= since
            for agent in agents
        )


class DaemonPart:
    """One of a switch's two daemons."""

    def __init__(self, switch: OvsSwitch, program: Daemon) -> None:
        self.name = f"{program} of {switch.name}"
        self.log = switch.run_dir / f"{program}.log"
        self._switch = switch
        self._program = program

    @property
    def process(self) -> subprocess.Popen[Any] | None:
        """Return its newest process; None while its switch is down on purpose."""
        switch = self._switch
        if not switch.wanted:
            return None
        return switch.daemon if self._program == "ovs-vswitchd" else switch.database_server

    def held(self) -> bool:
        """Return False: a switch that a fault holds down runs, its ports are down."""
        return False

    def was_held(self) -> bool:
        """Return False: no fault ends it."""
        return False

    def start(self) -> None:
        """Start it again; return when its switch is as it was."""
        self._switch.revive(self._program)
