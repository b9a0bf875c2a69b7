"""Two host agents on a bare veth link, with the controller's own agent channel: the smallest place they work in."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from capstan_client.errors import CapstanError
from controller.agents.membership import Member
from controller.agents.server import AgentServer
from controller.agents.settings import ChannelSettings
from protocol.policy import ClassPolicy, CodingPolicy, PathSettings, Policy, ReleasePolicy

ROOT: Final = Path(__file__).resolve().parents[1]
HOSTS: Final = ("h1", "h2")
UNDERLAY: Final = ("10.0.1.1", "10.0.1.2")
OVERLAY: Final = ("10.128.1.1", "10.128.1.2")
OVERLAY6: Final = ("fd00:ca::1:1", "fd00:ca::1:2")
INTERFACE: Final = "fabric0"
START_S: Final = 60.0


class PairError(CapstanError, RuntimeError):
    """The pair did not come up; the text says what is missing."""


class AgentPair:
    """Hosts 0 and 1, each a network namespace. Needs root. Use it as a context manager; it leaves nothing behind.

    Args:
        agents: False: the bare link only.
        policy: what the agents start with.
        options: more arguments for each `python -m host_agent`.
        checkout: where that module is, with an environment of its own (`.venv`), if it is not ours.
    """

    def __init__(
        self,
        policy: Policy,
        agents: bool = True,
        options: Sequence[str] = (),
        checkout: Path | None = None,
    ) -> None:
        self._policy = policy
        self._with_agents = agents
        self._options = tuple(options)
        self._place = ROOT if checkout is None else checkout
        self._python = sys.executable if checkout is None else str(checkout / ".venv" / "bin" / "python")
        self._stack = ExitStack()
        self._holders: list[subprocess.Popen[bytes]] = []
        self.agents: list[subprocess.Popen[bytes] | None] = [None, None]
        self.joined: list[Member] = []
        self.left: list[Member] = []

    def __enter__(self) -> AgentPair:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # -- work on the hosts -----------------------------------------------------------------------

    def command(self, host: int, argv: Sequence[str]) -> list[str]:
        """Return *argv* as a command line that runs it on a host."""
        program = shutil.which(argv[0])
        if program is None:
            raise PairError(f"{argv[0]!r} is not installed")
        pid = str(self._holders[host].pid)
        return [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "--",
            "nsenter",
            f"--net=/proc/{pid}/ns/net",
            program,
            *argv[1:],
        ]

    def popen(self, host: int, argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a program on a host, and return its process; it ends with the pair."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("cwd", ROOT)
        process: subprocess.Popen[Any] = subprocess.Popen(self.command(host, argv), **options)
        self._stack.callback(end, process)
        return process

    def run(self, host: int, argv: Sequence[str], timeout: float = 60.0, check: bool = True) -> str:
        """Run a program on a host, return its standard output. Raises PairError with what it said."""
        done = subprocess.run(
            self.command(host, argv), capture_output=True, text=True, timeout=timeout, cwd=ROOT, check=False
        )
        if check and done.returncode:
            raise PairError(
                f"`{' '.join(argv)}` on {HOSTS[host]} failed ({done.returncode}): {done.stdout}{done.stderr}"
            )
        return done.stdout

    # -- the agents ------------------------------------------------------------------------------

    def start_agent(self, host: int, options: Sequence[str] = ()) -> None:
        """Start a host's agent (again)."""
        log = (self.directory / f"{HOSTS[host]}.log").open("ab")
        self._stack.callback(log.close)
        self.agents[host] = self.popen(
            host,
            [
                self._python, "-m", "host_agent",
                "--host", HOSTS[host],
                "--interface", INTERFACE,
                "--underlay-ip", UNDERLAY[host],
                "--overlay", f"{OVERLAY[host]}/9",
                "--overlay", f"{OVERLAY6[host]}/64",
                "--controller", f"unix:{self.directory / 'agents.sock'}",
                "--token-file", str(self.directory / "token"),
                "--congestion-control", "cubic",
                *self._options,
                *options,
            ],
            stdout=log,
            stderr=log,
            cwd=self._place,
        )  # fmt: skip

    def log(self, host: int) -> str:
        """Return what a host's agents have said."""
        return (self.directory / f"{HOSTS[host]}.log").read_text(errors="replace")

    def set_policy(self, policy: Policy) -> None:
        """Have both agents confirm *policy*, whose version must be higher than the one before."""
        self._policy = policy
        self.server.set_policy(policy)
        silent = self.server.wait_applied(policy.version, START_S)
        if silent:
            raise PairError(
                f"policy {policy.version}: {silent[0].who} {silent[0].why}; {self.log(0)}{self.log(1)}"
            )

    def start_server(self) -> None:
        """Start the controller's end of the channel (again)."""
        self.server = AgentServer(
            ChannelSettings(self.directory / "agents.sock", self.directory / "members.json"),
            self._token,
        )
        self.server.joined.subscribe(self.joined.append)
        self.server.left.subscribe(self.left.append)
        self.server.start()
        self._stack.callback(self.server.stop)
        self.server.set_policy(self._policy)

    def counters(self, host: int) -> dict[str, float]:
        """Return the counters that the host's agent reported last, at most about one second old."""
        for agent in self.server.agents():
            if agent.host == HOSTS[host]:
                return agent.counters
        raise PairError(f"{HOSTS[host]} is not a member")

    def wait_ready(self) -> None:
        """Wait until packets go both ways over the overlay."""
        wait_until(
            lambda: sum(agent.connected and agent.policy_version >= 0 for agent in self.server.agents()) == 2,
            START_S,
            lambda: f"both agents joined; {self.log(0)}{self.log(1)}",
        )
        wait_until(
            lambda: "1 received" in self.run(0, ["ping", "-c1", "-W1", OVERLAY[1]], check=False),
            START_S,
            lambda: f"a packet over the overlay; {self.log(0)}{self.log(1)}",
        )

    def _start(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="capstan-pair-"))
        self._stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        for _ in HOSTS:
            # `unshare` becomes `sleep`, so the namespace is known by one pid and goes with it
            holder = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--net", "sleep", "infinity"],
                stdin=subprocess.DEVNULL,
            )
            self._holders.append(holder)
            self._stack.callback(end, holder)
        own = Path("/proc/self/ns/net").readlink()
        wait_until(
            lambda: all(Path(f"/proc/{holder.pid}/ns/net").readlink() != own for holder in self._holders),
            START_S,
            lambda: "two network namespaces (needs root)",
        )
        link = f"link add {INTERFACE} type veth peer name {INTERFACE} netns {self._holders[1].pid}"
        self.run(0, ["ip", *link.split()])
        for host, address in enumerate(UNDERLAY):
            self.run(
                host,
                [
                    "ethtool",
                    "-K",
                    INTERFACE,
                    "tx",
                    "off",
                    "rx",
                    "off",
                    "tso",
                    "off",
                    "gso",
                    "off",
                    "gro",
                    "off",
                ],
            )
            for line in (
                "link set lo up",
                f"addr add {address}/9 dev {INTERFACE}",
                f"link set {INTERFACE} up",
            ):
                self.run(host, ["ip", *line.split()])
        if not self._with_agents:
            return
        self._token = secrets.token_hex(16)
        (self.directory / "token").write_text(self._token)
        self.start_server()
        for host in range(len(HOSTS)):
            self.start_agent(host)
        self.wait_ready()


def end(process: subprocess.Popen[Any]) -> None:
    """End a process that was started here, politely first."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def wait_until(done: Callable[[], bool], seconds: float, waited_for: Callable[[], str]) -> None:
    """Wait for a condition; PairError says *waited_for* did not come true in time."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            raise PairError(f"not within {seconds:g} s: {waited_for()}")
        time.sleep(0.02)


def simple_policy(
    version: int,
    *,
    coding: CodingPolicy | None = None,
    release_s: float | None = None,
    short_limit_bytes: int = 100_000,
) -> Policy:
    """Return everything sprayed; coding for short flows and in-order release for all, where asked."""
    release = None if release_s is None else ReleasePolicy(release_s)
    spray = PathSettings("spray")
    return Policy(
        version=version,
        scheme="pair",
        short_limit_bytes=short_limit_bytes,
        short=ClassPolicy(spray, coding, release),
        long=ClassPolicy(spray, None, release),
        control=ClassPolicy(spray),
    )
