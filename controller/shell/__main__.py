"""``python -m controller.shell``: control plane and switches' shell alone, in the foreground, to try things.

No agents' channel and no API: hosts with agents are named on the command line. Every event is one line of JSON on
standard output. The controller proper is ``python -m controller``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import queue
import re
import secrets
import signal
import sys
from functools import partial
from typing import Any, Final

from controller.control_plane import ControlPlane
from controller.schemes import loader
from controller.shell.shell import OpenFlowShell
from controller.shell.shell_events import ShellEvent

_AGENT: Final = re.compile(r"(?P<host>[^=]+)=(?P<ip>[0-9.]+),(?P<mac>[0-9a-fA-F:]{17})")


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGINT or SIGTERM; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m controller.shell", description=__doc__)
    parser.add_argument(
        "--listen", default="127.0.0.1:6653", metavar="ADDRESS:PORT", help="where switches connect"
    )
    parser.add_argument("--scheme", default="ecmp", help="name or file of a scheme")
    parser.add_argument(
        "--packet-time-us", type=float, default=600.0, help="1500 B on the slowest link, in microseconds"
    )
    parser.add_argument(
        "--agent", action="append", default=[], type=_agent, metavar="HOST=IP,MAC", help="an agent's host"
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    address, _, port = options.listen.rpartition(":")
    plane = ControlPlane(secrets.token_bytes(16))
    events: queue.SimpleQueue[ShellEvent | None] = queue.SimpleQueue()
    shell = OpenFlowShell(plane, address, int(port), on_event=events.put)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: events.put(None))
    scheme = loader.load(options.scheme)
    shell.start()
    shell.call(lambda: plane.set_scheme(scheme, options.packet_time_us / 1e6, shell.now()))
    for host, ip, mac in options.agent:
        shell.call(partial(plane.agent_joined, host, ip, mac, shell.now()))
    _print("Listening", {"port": shell.port})
    while (event := events.get()) is not None:
        _print(type(event).__name__, dataclasses.asdict(event))
    shell.stop()
    return 0


def _agent(text: str) -> tuple[str, str, str]:
    match = _AGENT.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not HOST=IP,MAC, such as h1=10.0.1.1,02:00:00:00:00:01"
        )
    return match["host"], match["ip"], match["mac"]


def _print(name: str, fields: dict[str, Any]) -> None:
    print(json.dumps({"event": name, **fields}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
