"""How many cores there are: one count for all that is sized by it, and the control group's limit is part of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figures import machine as benchmark_machine
from cli.sizing import notice, words
from experiments.results.document import machine as result_machine
from experiments.spec.check import find_spec
from experiments.spec.fitting import fit
from experiments.spec.load import CARRIED_SHARE, REFERENCE
from experiments.spec.spec import spec_from_dict
from plain.yaml_source import read
from topologies.cores import Cores, own_cores, quota

ROOT = Path(__file__).resolve().parents[3]
V1 = {
    "/proc/self/cgroup": "4:memory:/m\n3:cpu,cpuacct:/a\n0::/\n",
    "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "25000\n",
    "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
    "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
}
V2 = {"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "25000 100000\n"}


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {}, None),
        ("0::/\n", {"/sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ("0::/\n", {"/sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        (
            "0::/a/b\n",
            {"/sys/fs/cgroup/a/cpu.max": "50000 100000", "/sys/fs/cgroup/a/b/cpu.max": "max 1"},
            0.5,
        ),
        ("0::/../x\n", {"/sys/fs/cgroup/x/cpu.max": "200000 100000"}, 2.0),
        (V1["/proc/self/cgroup"], V1, 0.25),
    ],
)
def test_the_least_limit_of_the_control_groups_counts(
    groups: str, files: dict[str, str], expected: float | None
) -> None:
    assert quota(groups, lambda path: files.get(path, "")) == expected


@pytest.mark.parametrize("files", [V1, V2], ids=["v1", "v2"])
def test_a_limit_of_a_quarter_is_all_there_is_of_the_affinity(files: dict[str, str]) -> None:
    found = own_cores(lambda path: files.get(path, ""))
    assert found == Cores(len(os.sched_getaffinity(0)), 0.25)
    assert found.effective == 0.25
    assert found.workers() == 1


@given(st.integers(1, 256), st.none() | st.floats(0.01, 512), st.floats(0.1, 1.0))
def test_workers_never_need_more_than_there_is_except_for_the_first(
    usable: int, limit: float | None, share: float
) -> None:
    found = Cores(usable, limit)
    assert found.effective <= usable
    assert limit is None or found.effective <= limit
    room = found.effective * share
    assert found.workers(share) == 1 or room - 1 < found.workers(share) <= room


def test_an_experiment_is_sized_and_described_by_a_fraction_of_a_core() -> None:
    path = find_spec("demo")
    spec = spec_from_dict(read(path.read_text(encoding="utf-8"), str(path)).data)
    two, fraction = fit(spec, 2, REFERENCE, paths_first=True), fit(spec, 1.25, REFERENCE, paths_first=True)
    assert fraction.load.cores < two.load.cores
    assert fraction.load.share(1.25) <= CARRIED_SHARE
    assert any(" of 1.25 cores (" in line for line in words(fraction, None, 1.25))
    assert notice(fraction, 1.25)[0].startswith("sized for 1.25 cores: ")


def test_all_that_name_the_number_of_cores_name_the_same() -> None:
    asked = own_cores()
    assert result_machine()["cores"] == benchmark_machine()["cores"] == asked.effective
    printed = subprocess.run(
        [sys.executable, "-m", "topologies.cores"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(printed.stdout) == asked.workers()


def test_cores_are_counted_in_one_place() -> None:
    """A count of the affinity alone, or of the machine's processors, is wrong in a container with a limit."""
    counts = re.compile(r"len\(os\.sched_getaffinity|cpu_count\(|numprocesses=(auto|logical)")
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["packages"]
    sources = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    found = {str(path.relative_to(ROOT)) for path in sources if counts.search(path.read_text())}
    assert found == {"topologies/cores.py"}
