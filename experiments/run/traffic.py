"""All traffic generators of a fabric, driven as one."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from capstan_client.errors import CapstanError
from workloads.description import Endpoint, Transport
from workloads.plan import Plan, PlannedFlow
from workloads.records import FlowOrder, ReceivedFlow, Replication, SentFlow

ANSWER_TIMEOUT_S: Final = 60.0
LEAD_S: Final = 0.3
"""From the order to start until the run's start: all hosts must have it by then."""
LOG_TAIL_LINES: Final = 15
GENERATOR: Final = (sys.executable, "-S", "-m", "workloads.generator")
"""Without site-packages, which it does not need: what runs at their start takes longer than its imports."""


class TrafficError(CapstanError, RuntimeError):
    """A generator failed; the text says on which host and what it said last."""


class Popen(Protocol):
    """How processes are started on hosts: `topologies.lab.Lab.popen`."""

    def __call__(self, host: str | None, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]: ...


@dataclass(slots=True)
class _Host:
    endpoint: Endpoint
    process: subprocess.Popen[Any]
    log: Path
    finished: int = 0
    failed: int = 0
    over: bool = False


class Traffic:
    """One generator a host. Use as a context manager.

    popen: starts a program on a host. log_directory: where generators' error output goes.
    """

    def __init__(self, popen: Popen, endpoints: Sequence[Endpoint], log_directory: Path) -> None:
        self._popen = popen
        self._endpoints = list(endpoints)
        self._logs = log_directory
        self._hosts: dict[str, _Host] = {}
        self._events: queue.Queue[tuple[str, dict[str, Any] | None]] = queue.Queue()
        self._readers: list[threading.Thread] = []

    def start(self) -> None:
        """Start all generators and wait until their sinks listen. Raises TrafficError."""
        for endpoint in self._endpoints:
            log = self._logs / f"generator-{endpoint.host}.log"
            with log.open("ab") as errors:
                process = self._popen(
                    endpoint.host,
                    [*GENERATOR],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=Path(__file__).parents[2],
                )
            self._hosts[endpoint.host] = _Host(endpoint, process, log)
            reader = threading.Thread(
                target=self._read, args=(endpoint.host, process), name=f"read-{endpoint.host}", daemon=True
            )
            reader.start()
            self._readers.append(reader)
        self._collect("ready", "start")

    def configure(self, transport: Transport) -> None:
        """Set the senders' congestion control."""
        self._say_to_all({"do": "configure", "congestion_control": transport.congestion})
        self._collect("done", "configure")

    def prepare(self, plan: Plan, replication: Replication | None = None) -> None:
        """Give every host its flows; forgets those of the last run. replication: of short flows."""
        address = {endpoint.host: endpoint.address for endpoint in self._endpoints}
        orders: dict[str, list[dict[str, Any]]] = {host: [] for host in self._hosts}
        for flow in plan.flows:
            order = FlowOrder(
                flow.id,
                address[flow.destination],
                flow.source_port,
                flow.start_s,
                flow.size_bytes,
                flow.traffic_class,
                *self._copy(flow, replication),
                flow.port,
            )
            orders[flow.source].append(asdict(order))
        for host, flows in orders.items():
            self._say(host, {"do": "prepare", "flows": flows, "window_s": plan.window_s, "ports": plan.ports})
        self._collect("done", "prepare")

    @staticmethod
    def _copy(flow: PlannedFlow, replication: Replication | None) -> tuple[int | None, Replication | None]:
        if replication is None or flow.traffic_class != "short":
            return None, None
        if flow.copy_port is None:
            raise TrafficError("the run has too many flows to replicate them: use more repeats instead")
        return flow.copy_port, replication

    def run(
        self,
        deadline_s: float,
        on_progress: Callable[[int, int], None],
        check: Callable[[], None] = lambda: None,
        *,
        lead_s: float = LEAD_S,
        on_start: Callable[[float], None] = lambda epoch: None,
    ) -> float:
        """Start what was prepared; return when all flows with a size are over, or at the deadline.

        deadline_s: seconds after the run's start. on_progress: gets flows finished and failed. check: called
        every half second; what it raises ends the run. lead_s: from the order to start until the run's start; 0 where
        hosts need not begin together. on_start: gets the monotonic time of the run's start, before that.

        Returns the monotonic time of the run's start.
        """
        epoch = time.monotonic() + lead_s
        for generator in self._hosts.values():
            generator.finished = generator.failed = 0
            generator.over = False
        self._say_to_all({"do": "start", "epoch": epoch})
        on_start(epoch)
        check_at = time.monotonic()
        while not all(generator.over for generator in self._hosts.values()):
            now = time.monotonic()
            if now > epoch + deadline_s:
                break
            if now >= check_at:
                check()
                check_at = now + 0.5
            try:
                host, event = self._events.get(timeout=min(0.5, max(0.01, epoch + deadline_s - now)))
            except queue.Empty:
                continue
            self._note(host, event, ("done", "progress", "over"))
            if event is not None and event["event"] == "progress":
                on_progress(
                    sum(generator.finished for generator in self._hosts.values()),
                    sum(generator.failed for generator in self._hosts.values()),
                )
        return epoch

    def stop_flows(self) -> tuple[list[SentFlow], list[ReceivedFlow]]:
        """End what still runs and return the records of all flows."""
        self._say_to_all({"do": "stop"})
        sent: list[SentFlow] = []
        received: list[ReceivedFlow] = []
        for event in self._collect("records", "stop"):
            sent += [SentFlow(**flow) for flow in event["sent"]]
            received += [ReceivedFlow(**flow) for flow in event["received"]]
        return sent, received

    def check(self) -> None:
        """Raise TrafficError if a generator has ended."""
        for host, generator in self._hosts.items():
            if generator.process.poll() is not None:
                raise TrafficError(self._death(host))

    def close(self) -> None:
        """End all generators."""
        for generator in self._hosts.values():
            with contextlib.suppress(OSError):
                generator.process.stdin.close()  # type: ignore[union-attr]
        for generator in self._hosts.values():
            try:
                generator.process.wait(10)
            except subprocess.TimeoutExpired:
                generator.process.kill()
                generator.process.wait()
        for reader in self._readers:
            reader.join()
        for host in self._hosts.values():
            host.process.stdout.close()  # type: ignore[union-attr]
        self._hosts.clear()
        self._readers.clear()

    def __enter__(self) -> Traffic:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, host: str, process: subprocess.Popen[Any]) -> None:
        for line in process.stdout:  # type: ignore[union-attr]
            try:
                self._events.put((host, json.loads(line)))
            except ValueError:
                self._events.put((host, {"event": "error", "text": f"said {line!r}"}))
        self._events.put((host, None))

    def _say(self, host: str, command: Mapping[str, Any]) -> None:
        stdin = self._hosts[host].process.stdin
        assert stdin is not None
        try:
            stdin.write((json.dumps(command) + "\n").encode())
            stdin.flush()
        except OSError:
            raise TrafficError(self._death(host)) from None

    def _say_to_all(self, command: Mapping[str, Any]) -> None:
        for host in self._hosts:
            self._say(host, command)

    def _collect(self, kind: str, command: str) -> list[dict[str, Any]]:
        """Return one event of *kind* from every host; progress that comes in between is dropped."""
        waiting = set(self._hosts)
        records = []
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while waiting:
            try:
                host, event = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TrafficError(
                    f"no answer to {command!r} within {ANSWER_TIMEOUT_S:g} s from the generators of "
                    f"{', '.join(sorted(waiting))}"
                ) from None
            self._note(host, event, (kind, "done", "progress", "over"))
            assert event is not None
            if event["event"] == kind and event.get("do", command) == command:
                waiting.discard(host)
                records.append(event)
        return records

    def _note(self, host: str, event: dict[str, Any] | None, expected: tuple[str, ...]) -> None:
        if event is None:
            raise TrafficError(self._death(host))
        kind = event["event"]
        if kind not in expected:
            raise TrafficError(f"generator of {host}: {event.get('text', event)}")
        if kind == "progress":
            self._hosts[host].finished, self._hosts[host].failed = event["finished"], event["failed"]
        elif kind == "over":
            self._hosts[host].over = True

    def _death(self, host: str) -> str:
        generator = self._hosts[host]
        with contextlib.suppress(subprocess.TimeoutExpired):
            generator.process.wait(10)
        return (
            f"the traffic generator of {host} has ended (exit code {generator.process.returncode})"
            f"{log_tail(generator.log)}"
        )


def log_tail(log: Path) -> str:
    """Return the last lines of a log, ready to append to an error."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "; it has no log"
    if not text:
        return f"; its log {log} is empty"
    return f"; the end of {log}:\n" + "\n".join(f"  {line}" for line in text[-LOG_TAIL_LINES:])
