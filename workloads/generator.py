"""The traffic generator of one host: a process that gets flows and reports what became of them.

Only the standard library is imported: there is one such process a host, and all share the machine.

Commands come as lines of JSON on standard input, events go as lines of JSON to standard output::

    {"do": "configure", "congestion_control": "cubic"}
    {"do": "prepare", "flows": [FlowOrder, ...], "window_s": [begin, end], "ports": [P, ...]}
                                       ports: where the sink listens, too
    {"do": "start", "epoch": T}        T: monotonic time (one clock for all namespaces) of the run's start
    {"do": "stop"}                     end what runs; answers with all records
    {"do": "quit"}                     also the end of standard input

    {"event": "ready", "port": P}      once, when the sink listens
    {"event": "done", "do": ...}       a configure, prepare or start was carried out
    {"event": "progress", "finished": n, "failed": m}
    {"event": "over"}                  all flows with a size have finished or failed
    {"event": "records", "sent": [SentFlow, ...], "received": [ReceivedFlow, ...]}
    {"event": "error", "text": ...}    a command was wrong; the process goes on
"""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final

from workloads.flow_header import SINK_PORT
from workloads.loop import READ, Loop
from workloads.records import FlowOrder
from workloads.replication import ReplicatedFlow
from workloads.sender import Sender
from workloads.sink import Sink

PROGRESS_PERIOD_S: Final = 0.25


class Generator:
    """State of one host: its sink, and the senders of the run."""

    def __init__(self, loop: Loop, port: int, emit: Callable[[dict[str, Any]], None]) -> None:
        self._loop = loop
        self._emit = emit
        self._sink = Sink(loop, port)
        self._congestion_control = "cubic"
        self._orders: list[FlowOrder] = []
        self._window: tuple[float, float] = (0.0, 0.0)
        self._senders: list[Sender | ReplicatedFlow] = []
        self._finished = self._failed = 0
        self._left = 0
        """Flows with a size that are not over."""
        self._progress_due = False
        emit({"event": "ready", "port": self._sink.port})

    def apply(self, line: str) -> None:
        """Carry out one command; what is wrong with it becomes an error event."""
        try:
            command = json.loads(line)
            action = command.pop("do")
            actions: dict[str, Callable[..., None]] = {
                "configure": self._configure,
                "prepare": self._prepare,
                "start": self._start,
                "stop": self._stop,
                "quit": self._loop.stop,
            }
            actions[action](**command)
        except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, OSError) as error:
            self._emit({"event": "error", "text": f"command {line.strip()[:200]}: {error!r}"})
            return
        if action in ("configure", "prepare", "start"):
            self._emit({"event": "done", "do": action})

    def _configure(self, congestion_control: str) -> None:
        self._congestion_control = congestion_control

    def _prepare(self, flows: list[dict[str, Any]], window_s: list[float], ports: Sequence[int] = ()) -> None:
        self._sink.reset()
        self._sink.listen_also(ports)
        self._orders = [FlowOrder(**flow) for flow in flows]
        self._window = (window_s[0], window_s[1])

    def _start(self, epoch: float) -> None:
        self._finished = self._failed = 0
        self._senders = [
            (ReplicatedFlow if order.replication else Sender)(
                self._loop,
                order,
                order.port or self._sink.port,
                congestion_control=self._congestion_control,
                epoch=epoch,
                on_end=self._flow_ended,
            )
            for order in self._orders
        ]
        for sender in self._senders:
            self._loop.at(epoch + sender.order.start_s, sender.begin)
            if sender.order.size_bytes is None:
                for moment in self._window:
                    self._loop.at(epoch + moment, sender.note_window)
        self._left = sum(order.size_bytes is not None for order in self._orders)
        if not self._left:
            self._emit({"event": "over"})

    def _flow_ended(self, sender: Sender | ReplicatedFlow) -> None:
        self._finished += sender.state == "finished"
        self._failed += sender.state == "failed"
        if sender.order.size_bytes is not None:
            self._left -= 1
            if not self._left:
                self._report_progress()
                self._emit({"event": "over"})
                return
        if not self._progress_due:
            self._progress_due = True
            self._loop.at(time.monotonic() + PROGRESS_PERIOD_S, self._report_progress)

    def _report_progress(self) -> None:
        self._progress_due = False
        self._emit({"event": "progress", "finished": self._finished, "failed": self._failed})

    def _stop(self) -> None:
        received = self._sink.snapshot()
        self._left = 0  # what ends now ends with the run
        for sender in self._senders:
            sender.stop()
        self._loop.drop_timers()
        self._progress_due = False
        self._sink.reset()
        self._emit(
            {
                "event": "records",
                "sent": [asdict(sender.record()) for sender in self._senders],
                "received": [asdict(flow) for flow in received],
            }
        )
        self._senders, self._orders = [], []


class _Lines:
    """Standard input as lines, without blocking the loop."""

    def __init__(self, loop: Loop, apply: Callable[[str], None]) -> None:
        self._loop = loop
        self._apply = apply
        self._rest = b""

    def read(self, _: int) -> None:
        data = os.read(sys.stdin.fileno(), 1 << 20)
        if not data:
            self._loop.stop()  # the process that started us is gone
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._apply(line.decode(errors="replace"))


def _emit(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Generate traffic until standard input ends; return the exit code: 1 where the sink cannot listen."""
    parser = argparse.ArgumentParser(description="Traffic generator of one host, driven by lines of JSON.")
    parser.add_argument("--port", type=int, default=SINK_PORT, help="TCP port of the sink (0: any)")
    arguments = parser.parse_args()
    atexit.register(gc.freeze)  # the last collection looks at what goes anyway
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's to handle: it ends us in order
    loop = Loop()
    try:
        generator = Generator(loop, arguments.port, _emit)
    except OSError as error:
        print(f"the sink cannot listen on TCP port {arguments.port}: {error}", file=sys.stderr)
        return 1
    try:
        loop.watch(sys.stdin, READ, _Lines(loop, generator.apply).read)
    except PermissionError:
        print("standard input must be a pipe or a socket that commands come from", file=sys.stderr)
        return 1
    try:
        loop.run()
    except BrokenPipeError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
