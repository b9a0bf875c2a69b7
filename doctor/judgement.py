"""What the facts mean: what works, what Capstan cannot do on this machine, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from doctor.facts import NO_PRESSURE, Attempt, Facts
from topologies.machine import (
    NEEDED_CAPABILITIES,
    TUN_ADVICE,
    capability_advice,
    namespace_advice,
)

State = Literal["ok", "lacks", "limited", "unknown"]
Part = Literal["lab", "features", "results", "containers", "benchmarks", "tests"]
"""What a result is about. A lack in "lab" means that no lab can be built; "features": of a lab that can be."""

LEAST_PYTHON: Final = (3, 11)
LEAST_CORES: Final = 2.0
LEAST_MEMORY: Final = 1 << 30
"""Bytes: the demo's fabric of 26 namespaces with its agents and controller takes about two thirds of it."""
LEAST_DISK: Final = 500 << 20
"""Bytes: the demo's results take some megabytes, a sweep's some hundreds."""
_AS_ROOT: Final = "sudo ./capstan doctor"
_KERNEL: Final = "use a kernel that has it; `modprobe {0}` shows whether this one does"


@dataclass(frozen=True)
class CheckResult:
    """The result of a check of this machine. advice: what to do; empty where nothing is to be done."""

    name: str
    part: Part
    state: State
    value: str
    needed_for: str
    advice: str = ""


@dataclass(frozen=True)
class DoctorReport:
    """The results of all checks, in the order in which they are shown."""

    findings: tuple[CheckResult, ...]

    @property
    def lab(self) -> bool:
        """Return True if a lab can be built: everything that it needs was tried and works."""
        return all(result.state == "ok" for result in self.findings if result.part == "lab")

    @property
    def wrong(self) -> tuple[CheckResult, ...]:
        """Return what is not as it should be."""
        return tuple(result for result in self.findings if result.state != "ok")

    def of(self, parts: Iterable[Part]) -> DoctorReport:
        """Return the same with the results of some parts only."""
        wanted = set(parts)
        return DoctorReport(tuple(result for result in self.findings if result.part in wanted))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {"lab": self.lab, "findings": [asdict(result) for result in self.findings]}


def judge(facts: Facts) -> DoctorReport:
    """Return what the facts mean for Capstan."""
    return DoctorReport(
        (
            *_privileges(facts),
            *_programs(facts),
            *_network(facts),
            *_features(facts),
            *_room(facts),
            *_benchmarks(facts),
            *(_others(facts) if facts.versions else ()),
        )
    )


def lines(results: Sequence[CheckResult]) -> list[str]:
    """Return the text of results for a person: a line each, what to do below those that are not ok."""
    width = max((len(result.name) for result in results), default=0)
    text = []
    for result in results:
        text.append(f"{result.state:<8} {result.name:<{width}}  {result.value}")
        if result.state != "ok":
            text.append(f"{'':<8} {'':<{width}}  needed for: {result.needed_for}")
            if result.advice:
                text.append(f"{'':<8} {'':<{width}}  what to do: {result.advice}")
    return text


def _check_result(
    name: str, part: Part, good: bool, *, value: str, needed_for: str, advice: str
) -> CheckResult:
    bad: State = "lacks" if part == "lab" else "limited"
    return CheckResult(name, part, "ok" if good else bad, value, needed_for, "" if good else advice)


def _tried(facts: Facts, attempt: str, name: str, part: Part, *, needed_for: str, advice: str) -> CheckResult:
    outcome = facts.attempts.get(attempt, Attempt(None, "not tried"))
    if outcome.worked is None:
        hint = f"{_AS_ROOT} tries it" if facts.user_id != 0 else ""
        return CheckResult(name, part, "unknown", outcome.said, needed_for, hint)
    missing = tuple(cap for cap in NEEDED_CAPABILITIES if cap not in facts.capabilities)
    if missing and "not permitted" in outcome.said:
        advice = capability_advice(missing)
    value = "works" if outcome.worked else outcome.said or "not here"
    return _check_result(name, part, outcome.worked, value=value, needed_for=needed_for, advice=advice)


def _privileges(facts: Facts) -> Iterator[CheckResult]:
    root = facts.user_id == 0
    yield _check_result(
        "root",
        "lab",
        root,
        value="yes" if root else f"no, user id {facts.user_id}",
        needed_for="namespaces, interfaces and switches of a lab",
        advice="run it with sudo; `./capstan run` and others call sudo themselves",
    )
    needed = {
        "CAP_SYS_ADMIN": "making network and mount namespaces, one for each host and switch",
        "CAP_NET_ADMIN": "interfaces, addresses, rates and buffers of links",
        "CAP_NET_RAW": "packet sockets of switches and agents",
    }
    for name in NEEDED_CAPABILITIES if root else ():
        there = name in facts.capabilities
        advice = capability_advice((name,))
        yield _check_result(
            name,
            "lab",
            there,
            value="in effect" if there else "missing",
            needed_for=needed[name],
            advice=advice,
        )


def _programs(facts: Facts) -> Iterator[CheckResult]:
    python = ".".join(map(str, facts.python))
    least = ".".join(map(str, LEAST_PYTHON))
    yield _check_result(
        "Python",
        "lab",
        facts.python >= LEAST_PYTHON,
        value=python,
        needed_for="everything",
        advice=f"Python {least} or newer: Debian 12, Ubuntu 24.04 or newer have it",
    )
    missing = facts.missing_programs
    packages = " ".join(sorted({*missing.values()}))
    yield _check_result(
        "programs",
        "lab",
        not missing,
        value=f"not installed: {', '.join(missing)}" if missing else "all installed",
        needed_for="switches, hosts and links of a lab",
        advice=f"./capstan demo installs them on Debian and Ubuntu; by hand: apt-get install {packages}",
    )
    yield _check_result(
        "environment",
        "features",
        facts.environment,
        value=".venv is there" if facts.environment else "no .venv yet",
        needed_for="every command but this one",
        advice="the first start of any command makes it (network, or a package index in pip's configuration)",
    )


def _network(facts: Facts) -> Iterator[CheckResult]:
    yield _tried(
        facts,
        "namespaces",
        "network namespaces",
        "lab",
        needed_for="hosts and switches of a lab",
        advice=namespace_advice(facts.capabilities),
    )
    tc = "links with a rate and a buffer"
    for name, needed_for, advice in (
        ("tun", "host agents: the overlay's interface", TUN_ADVICE),
        ("veth", "links", _KERNEL.format("veth")),
        ("htb", tc, _KERNEL.format("sch_htb")),
        ("pfifo", tc, _KERNEL.format("sch_fifo")),
        ("packet sockets", "switches' ports and agents", capability_advice(("CAP_NET_RAW",))),
    ):
        yield _tried(facts, name, name, "lab", needed_for=needed_for, advice=advice)
    loaded = f"loaded: {', '.join(facts.congestion_available)}; default: {facts.congestion_default}"
    needed_for = "TCP on a lab's hosts, unless a spec asks for another"
    there = "cubic" in facts.congestion_available
    if not there and facts.user_id != 0:  # root alone may have the kernel load it
        yield CheckResult("cubic", "lab", "unknown", loaded, needed_for, f"{_AS_ROOT} tries it")
        return
    advice = _KERNEL.format("tcp_cubic")
    yield _check_result("cubic", "lab", there, value=loaded, needed_for=needed_for, advice=advice)


def _features(facts: Facts) -> Iterator[CheckResult]:
    for attempt, name, needed_for, advice in (
        ("u32", "u32 filters", "priority queues: schemes such as pias, tpfs, capton", "cls_u32"),
        ("netem", "netem", "delays of links (delay_ms); without it links run without delay", "sch_netem"),
    ):
        yield _tried(facts, attempt, name, "features", needed_for=needed_for, advice=_KERNEL.format(advice))
    yield _tried(
        facts,
        "ovs datapath",
        "openvswitch module",
        "features",
        needed_for="switching in the kernel; without it switches use Open vSwitch's userspace datapath, which takes "
        "more CPU",
        advice="apt-get install linux-image-$(uname -r), then modprobe openvswitch; labs run without it too",
    )
    yield _tried(
        facts,
        "sysctls",
        "sysctls",
        "features",
        needed_for="TCP as a spec asks for it (profile ns2); without it hosts keep the kernel's settings",
        advice="in a container /proc/sys is read-only: docker/sysctls, run in it as root, makes these writable",
    )
    advice = "mount cgroup2 for writing; runs are judged by the whole machine else"
    if facts.attempts.get("cgroup v2") == NO_PRESSURE:
        advice = "add psi=1 to the kernel's command line; runs are judged without it else"
    yield _tried(
        facts,
        "cgroup v2",
        "cgroup v2",
        "features",
        needed_for="judging whether a run was limited by the processor, by its own processes alone",
        advice=advice,
    )
    filters = {0: "off", 1: "strict", 2: "a filter"}.get(facts.seccomp, str(facts.seccomp))
    profile = facts.apparmor or "not in this kernel"
    confined = facts.seccomp != 0 or (facts.apparmor not in ("", "unconfined"))
    works = facts.attempts.get("namespaces", Attempt(None)).worked is True
    yield _check_result(
        "confinement",
        "features",
        not confined or works,
        value=f"seccomp {filters}, AppArmor {profile}",
        needed_for="nothing: it may refuse namespaces and mounts",
        advice="docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
    )


def _room(facts: Facts) -> Iterator[CheckResult]:
    cores = facts.cores
    limit = f", control group's limit {cores.quota:g}" if cores.quota is not None else ""
    yield _check_result(
        "cores",
        "results",
        cores.effective >= LEAST_CORES,
        value=f"{cores.usable} cores{limit}",
        needed_for="presets as they are; with fewer, runs are marked as limited by the processor",
        advice="give the machine or container 2 cores, or scale the spec's rates down",
    )
    yield _check_result(
        "memory",
        "results",
        facts.memory_available >= LEAST_MEMORY,
        value=f"{facts.memory_available / 2**30:.1f} GiB available",
        needed_for=f"the demo: {LEAST_MEMORY / 2**30:g} GiB",
        advice="end other programs, or give the machine more memory",
    )
    yield _check_result(
        "disk",
        "results",
        facts.results_free >= LEAST_DISK,
        value=f"{facts.results_free / 2**30:.1f} GiB free in {facts.results_directory}",
        needed_for=f"results and logs: {LEAST_DISK / 2**20:g} MiB",
        advice="free some, or choose another directory: --results DIRECTORY",
    )


def _benchmarks(facts: Facts) -> Iterator[CheckResult]:
    for attempt, name, needed_for, advice in (
        ("tbf", "tbf", "`bench agent` at an access rate", _KERNEL.format("sch_tbf")),
        (
            "nftables",
            "nftables",
            "losing packets in `bench agent`",
            f"apt-get install nftables; {_KERNEL.format('nf_tables')}",
        ),
    ):
        yield _tried(facts, attempt, name, "benchmarks", needed_for=needed_for, advice=advice)


def _others(facts: Facts) -> Iterator[CheckResult]:
    for key, name, part, needed_for, advice in _VERSIONS:
        answer = facts.versions.get(key, Attempt(False, "not asked"))
        good = answer.worked is True
        if key == "node":
            good = good and _builds_the_page(_version(answer.said))
        yield _check_result(
            name,
            part,
            good,
            value=answer.said or ("works" if good else "not here"),
            needed_for=needed_for,
            advice=advice,
        )


_VERSIONS: Final[tuple[tuple[str, str, Part, str, str], ...]] = (
    (
        "openvswitch",
        "Open vSwitch",
        "lab",
        "switches",
        "./capstan demo installs it on Debian and Ubuntu; by hand: apt-get install openvswitch-switch",
    ),
    (
        "mininet",
        "Mininet",
        "lab",
        "hosts and links",
        "./capstan demo installs it on Debian and Ubuntu; by hand: apt-get install mininet",
    ),
    (
        "docker",
        "Docker engine",
        "containers",
        "docker-compose up; nothing else",
        "install Docker and start its engine; a lab on this machine needs none",
    ),
    (
        "compose",
        "Docker compose",
        "containers",
        "docker-compose up; nothing else",
        "install docker-compose or Docker's compose plugin",
    ),
    (
        "chromium",
        "Chromium",
        "tests",
        "tests of the dashboard, `bench webui`",
        "./capstan test installs it; by hand: apt-get install chromium",
    ),
    (
        "node",
        "Node",
        "tests",
        "building the dashboard (^20.19, or 22.12 or newer)",
        "the launcher installs its own where this one is too old or missing",
    ),
)


def _builds_the_page(node: tuple[int, ...]) -> bool:
    """Return whether this version of Node does, as `setup/webui` asks for it."""
    return node >= (22, 12) or (20, 19) <= node < (21,)


def _version(text: str) -> tuple[int, ...]:
    """Return the numbers of `v20.19.1`; none where the text is no version."""
    words = text.removeprefix("v").split(".")
    return tuple(int(word) for word in words[:2]) if all(word.isdecimal() for word in words[:2]) else ()
