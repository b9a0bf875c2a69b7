"""`capstan doctor`: what facts mean, how they are read, and that it runs where nothing is installed."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doctor.facts import NO_PRESSURE, Attempt, Facts
from doctor.judgement import LEAST_DISK, LEAST_MEMORY, DoctorReport, judge, lines
from doctor.probes import (
    apparmor_profile,
    congestion_available,
    examine,
    memory_available,
    nearest_directory,
    seccomp_mode,
    version_of,
)
from doctor.throwaway import TRIALS
from topologies.cores import Cores, own_cores
from topologies.machine import (
    CAPABILITIES,
    NEEDED_CAPABILITIES,
    PROGRAMS,
    effective_capabilities,
    missing_programs,
    namespace_advice,
)

ROOT = Path(__file__).resolve().parents[3]
SYSTEM_PYTHON = "/usr/bin/python3"
ATTEMPTS = ("namespaces", *TRIALS, "ovs datapath", "cgroup v2")
NEEDED_ATTEMPTS = {"namespaces", "veth", "htb", "pfifo", "tun", "packet sockets"}
VERSIONS = ("mininet", "openvswitch", "docker", "compose", "chromium", "node")
NEEDED_VERSIONS = {"mininet", "openvswitch"}
WORKS = Attempt(True, "")
GOOD = Facts(
    python=(3, 11),
    user_id=0,
    capabilities=frozenset(CAPABILITIES),
    attempts=dict.fromkeys(ATTEMPTS, WORKS),
    cores=Cores(2),
    memory_available=LEAST_MEMORY,
    results_directory="/somewhere",
    results_free=LEAST_DISK,
    congestion_default="cubic",
    congestion_available=("reno", "cubic"),
    versions={name: Attempt(True, "v20.19.0") for name in VERSIONS},
)


def states(report: DoctorReport) -> dict[str, str]:
    return {finding.name: finding.state for finding in report.findings}


def test_a_machine_that_has_everything_lacks_nothing() -> None:
    report = judge(GOOD)
    assert report.lab
    assert report.wrong == ()
    assert len(states(report)) == len(report.findings), "no name twice"
    assert all(finding.advice == "" and finding.needed_for and finding.value for finding in report.findings)


@given(
    attempts=st.sets(st.sampled_from(ATTEMPTS)),
    capabilities=st.sets(st.sampled_from(sorted(CAPABILITIES))),
    versions=st.sets(st.sampled_from(VERSIONS)),
    programs=st.sets(st.sampled_from(sorted(PROGRAMS))),
    python=st.sampled_from([(3, 9), (3, 11), (3, 13)]),
    cubic=st.booleans(),
    root=st.booleans(),
)
def test_a_lab_can_be_built_exactly_where_nothing_that_it_needs_is_lacking(
    attempts: set[str],
    capabilities: set[str],
    versions: set[str],
    programs: set[str],
    python: tuple[int, int],
    cubic: bool,
    root: bool,
) -> None:
    report = judge(
        dataclasses.replace(
            GOOD,
            python=python,
            user_id=0 if root else 1000,
            capabilities=GOOD.capabilities - capabilities,
            missing_programs={name: PROGRAMS[name] for name in programs},
            attempts={name: Attempt(False, "no") if name in attempts else WORKS for name in ATTEMPTS},
            versions={
                name: Attempt(False, "no") if name in versions else Attempt(True, "v22.12")
                for name in VERSIONS
            },
            congestion_available=("cubic",) if cubic else ("reno",),
        )
    )
    lacking = (
        attempts & NEEDED_ATTEMPTS
        or capabilities & set(NEEDED_CAPABILITIES)
        or versions & NEEDED_VERSIONS
        or programs
        or python < (3, 11)
        or not cubic
        or not root
    )
    assert report.lab == (not lacking)
    for finding in report.wrong:
        assert finding.advice, finding
        needs_root = finding.name == "cubic" and not root
        bad = "lacks" if finding.part == "lab" else "limited"
        assert finding.state == ("unknown" if needs_root else bad)
    text = "\n".join(lines(report.wrong))
    assert all(finding.value in text and finding.advice in text for finding in report.wrong)


def test_what_was_not_tried_is_neither_good_nor_bad_and_promises_no_lab() -> None:
    report = judge(dataclasses.replace(GOOD, attempts={**GOOD.attempts, "htb": Attempt(None, "not tried")}))
    assert states(report)["htb"] == "unknown"
    assert not report.lab


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"cores": Cores(1)}, "cores"),
        ({"cores": Cores(8, quota=1.5)}, "cores"),
        ({"memory_available": LEAST_MEMORY - 1}, "memory"),
        ({"results_free": LEAST_DISK - 1}, "disk"),
        ({"attempts": {**GOOD.attempts, "cgroup v2": Attempt(False, "none")}}, "cgroup v2"),
        ({"environment": False}, "environment"),
        *(
            ({"versions": {**GOOD.versions, "node": Attempt(True, version)}}, "Node")
            for version in ("v20.18.3", "v21.7.3", "v22.0.0", "v22.11.0", "strange")
        ),
    ],
)
def test_a_limit_is_named_and_a_lab_can_still_be_built(change: dict[str, object], name: str) -> None:
    report = judge(dataclasses.replace(GOOD, **change))  # type: ignore[arg-type]
    assert [(finding.name, finding.state) for finding in report.wrong] == [(name, "limited")]
    assert report.lab


@pytest.mark.parametrize("version", ["v20.19.0", "v20.30.1", "v22.12.0", "v23.0.0", "v24.1.0"])
def test_what_builds_the_page_is_good(version: str) -> None:
    versions = {**GOOD.versions, "node": Attempt(True, version)}
    assert judge(dataclasses.replace(GOOD, versions=versions)).wrong == ()


@pytest.mark.parametrize(("seccomp", "apparmor"), [(2, ""), (0, "docker-default (enforce)")])
def test_confinement_counts_where_namespaces_are_refused_only(seccomp: int, apparmor: str) -> None:
    confined = dataclasses.replace(GOOD, seccomp=seccomp, apparmor=apparmor)
    assert judge(confined).wrong == ()
    refused = {**GOOD.attempts, "namespaces": Attempt(False, "unshare: Operation not permitted")}
    wrong = states(DoctorReport(judge(dataclasses.replace(confined, attempts=refused)).wrong))
    assert wrong == {"network namespaces": "lacks", "confinement": "limited"}


def test_advice_on_namespaces_names_the_capability_or_else_the_other_causes() -> None:
    advice = namespace_advice(frozenset(CAPABILITIES) - {"CAP_SYS_ADMIN"})
    assert "needs CAP_SYS_ADMIN:" in advice
    assert "--cap-add SYS_ADMIN" in advice
    assert "seccomp=unconfined" in namespace_advice(frozenset(CAPABILITIES))


@pytest.mark.parametrize(
    ("found", "advice"),
    [
        (NO_PRESSURE, "add psi=1 to the kernel's command line"),
        (Attempt(False, "no cgroup2 file system in which this process may make a group"), "mount cgroup2"),
    ],
)
def test_advice_on_control_groups_is_of_what_is_missing(found: Attempt, advice: str) -> None:
    facts = dataclasses.replace(GOOD, attempts={**GOOD.attempts, "cgroup v2": found})
    (wrong,) = judge(facts).wrong
    assert wrong.advice.startswith(advice)


@given(st.sets(st.sampled_from(sorted(CAPABILITIES))))
def test_capabilities_are_read_from_the_kernels_bits(names: set[str]) -> None:
    bits = sum(1 << CAPABILITIES[name] for name in names) | 1 << 40
    status = f"Name:\tx\nCapInh:\t{2**41 - 1:016x}\nCapEff:\t{bits:016x}\nCapBnd:\t{2**41 - 1:016x}\n"
    assert effective_capabilities(status) == names
    assert effective_capabilities("Name:\tx\n") == frozenset()


def test_what_the_kernel_reports_is_read() -> None:
    assert memory_available("MemTotal: 9 kB\nMemAvailable:   2048 kB\n") == 2 << 20
    assert memory_available("") == 0
    assert seccomp_mode("NoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n") == 2
    assert seccomp_mode("") == 0
    assert isinstance(apparmor_profile(), str)


def test_a_congestion_control_is_loaded_before_the_kernel_is_asked_what_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = ["reno"]

    def load(_socket: object, *option: object) -> None:
        assert option[-1] == b"cubic"
        loaded.append("cubic")

    monkeypatch.setattr("socket.socket.setsockopt", load)
    monkeypatch.setattr("doctor.probes.read_file", lambda _path: " ".join(loaded) + "\n")
    assert congestion_available() == ("reno", "cubic")


def test_free_space_is_that_of_the_nearest_directory_there_is(tmp_path: Path) -> None:
    assert nearest_directory(tmp_path / "no" / "such") == tmp_path
    assert nearest_directory(tmp_path) == tmp_path
    assert nearest_directory(tmp_path / ("x" * 300) / "below") == tmp_path, "the kernel refuses to look"


def test_a_program_that_is_missing_or_fails_says_so(tmp_path: Path) -> None:
    assert version_of("/no/such/program") == Attempt(False, "/no/such/program is not installed")
    assert version_of("sh", "-c", "echo one; echo two") == Attempt(True, "one")
    assert version_of("sh", "-c", "echo no >&2; exit 3") == Attempt(False, "no")


def test_missing_programs_come_with_their_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_programs() == PROGRAMS
    for program in ("ip", "tc", "genl"):
        (tmp_path / program).touch(mode=0o755)
    assert set(missing_programs()) == set(PROGRAMS) - {"ip", "tc", "genl"}
    assert set(missing_programs().values()) >= {"mininet", "openvswitch-switch"}


def test_this_machine_is_examined_without_root_too() -> None:
    facts = examine(ROOT, everything=False)
    assert facts.user_id == os.geteuid()
    assert facts.cores == own_cores()
    assert set(facts.attempts) == set(ATTEMPTS)
    assert (facts.attempts["htb"].worked is None) == (os.geteuid() != 0)
    assert facts.versions == {}


def test_what_needs_root_is_not_judged_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    facts = examine(ROOT, everything=False)
    assert {name for name, attempt in facts.attempts.items() if attempt.worked is None} == {
        *("namespaces", *TRIALS, "cgroup v2")
    }
    found = {finding.name: finding for finding in judge(facts).findings}
    assert (found["cgroup v2"].state, found["cgroup v2"].advice) == (
        "unknown",
        "sudo ./capstan doctor tries it",
    )


def doctor(program: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        program,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def test_a_fresh_machine_is_examined_and_nothing_is_installed(tmp_path: Path) -> None:
    """Only the launcher and two rooms are there, and no program but the shell's own: it runs, and names packages."""
    tree = tmp_path / "tree"
    for room in ("doctor", "topologies", "capstan_client"):
        shutil.copytree(ROOT / room, tree / room, ignore=shutil.ignore_patterns("__pycache__"))
    launcher = (ROOT / "capstan").read_text().replace(":/usr/sbin:/sbin", "", 1)
    (tree / "capstan").write_text(launcher)
    (tree / "capstan").chmod(0o755)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "env", "readlink"):
        (programs / name).symlink_to(shutil.which(name) or "")
    before = sorted(tree.rglob("*"))
    done = doctor([str(tree / "capstan"), "doctor", "--json", "-"], PATH=str(programs))
    assert done.stderr == ""
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["lab"] is False
    found = {finding["name"]: finding for finding in report["findings"]}
    assert found["programs"]["state"] == "lacks"
    assert "mnexec" in found["programs"]["value"]
    assert "openvswitch-switch" in found["programs"]["advice"]
    assert found["environment"]["state"] == "limited"
    assert sorted(tree.rglob("*")) == before, "nothing is set up or left"


def test_the_exit_code_is_the_document_and_the_text_agrees(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    done = doctor([SYSTEM_PYTHON, str(ROOT / "doctor"), "--json", str(file)], PATH=path)
    report = json.loads(file.read_text())
    assert done.returncode == (0 if report["lab"] else 1), done.stderr
    for finding in report["findings"]:
        assert f"{finding['state']:<8} {finding['name']}" in done.stdout
        assert finding["value"] in done.stdout
    assert ("A lab can be built here" in done.stdout) == report["lab"]


def test_a_wrong_option_and_a_file_that_cannot_be_written_are_said_first(tmp_path: Path) -> None:
    path = os.environ["PATH"]
    assert doctor([SYSTEM_PYTHON, str(ROOT / "doctor"), "--nonsense"], PATH=path).returncode == 2
    for file in ("/no/such/file", str(tmp_path)):
        done = doctor([SYSTEM_PYTHON, str(ROOT / "doctor"), "--json", file], PATH=path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "cannot be written" in done.stderr


def test_a_python_that_is_too_old_can_read_what_says_so() -> None:
    ast.parse((ROOT / "doctor" / "__main__.py").read_text(), feature_version=(3, 7))
