"""Where a process's control group is, and what may be made and removed there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from topologies.cgroup import dissolve, enter, lab_of_group, own_directories, place_for

UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
HYBRID = (
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    + UNIFIED
    + "23 1 0:21 / /proc rw - proc proc rw\n"
)


def mounted(root: str, place: str) -> str:
    return f"29 23 0:26 {root} {place} ro,nosuid shared:4 - cgroup2 cgroup rw,nsdelegate\n"


@pytest.mark.parametrize(
    ("mountinfo", "cgroup", "found"),
    [
        (HYBRID, "3:cpuset:/a\n1:cpu:/b\n0::/\n", ["/sys/fs/cgroup/unified"]),
        (mounted("/", "/sys/fs/cgroup"), "0::/user.slice/x.scope\n", ["/sys/fs/cgroup/user.slice/x.scope"]),
        (mounted("/docker/ab", "/sys/fs/cgroup"), "0::/docker/ab\n", ["/sys/fs/cgroup"]),
        (mounted("/docker/ab", "/sys/fs/cgroup"), "0::/docker/ab/init\n", ["/sys/fs/cgroup/init"]),
        (mounted("/docker/ab", "/sys/fs/cgroup"), "0::/docker/abc\n", []),
        (mounted("/", "/sys/fs/cgroup"), "0::/../other\n", []),
        (mounted("/../..", "/sys/fs/cgroup"), "0::/\n", []),
        (mounted("/", r"/with\040space"), "0::/a\n", ["/with space/a"]),
        (mounted("/", "/one") + mounted("/a", "/two"), "0::/a/b\n", ["/one/a/b", "/two/b"]),
        (mounted("/", "/sys/fs/cgroup"), "1:cpu:/\n", []),
        ("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "0::/\n", []),
    ],
    ids=[
        *("hybrid", "systemd", "container", "below", "sibling", "outside", "hidden"),
        *("escaped", "two", "v1", "nowhere"),
    ],
)
def test_the_group_is_found_where_it_is_mounted(mountinfo: str, cgroup: str, found: list[str]) -> None:
    assert own_directories(mountinfo, cgroup) == [Path(path) for path in found]


def test_a_labs_group_is_known_by_its_name() -> None:
    assert lab_of_group("capstan-a1b2c3-0123abcd") == "a1b2c3"
    for name in (
        "capstan-a1b2c3",
        "capstan--0123abcd",
        "a1b2c3-0123abcd",
        "capstan-a1-0123abcd.scope",
        "user.slice",
    ):
        assert lab_of_group(name) is None


def test_only_groups_of_labs_are_removed(tmp_path: Path) -> None:
    other = tmp_path / "system.slice"
    other.mkdir()
    assert not dissolve(other, 0.0)
    assert other.is_dir()
    assert dissolve(tmp_path / "capstan-a1b2c3-0123abcd", 0.0), "what is not there is gone"


def test_places_differ_and_are_beside_one_another() -> None:
    first, second = place_for("abc"), place_for("abc")
    if first is None:  # no cgroup2, or none that this user may change
        assert second is None
        return
    assert second is not None
    assert first != second
    assert first.parent == second.parent
    assert os.access(first.parent, os.W_OK)


def test_a_kernel_that_refuses_leaves_nothing(tmp_path: Path) -> None:
    assert not enter(tmp_path / "missing" / "capstan-a1b2c3-0123abcd")
    assert list(tmp_path.iterdir()) == []


PROGRAM = """
import subprocess, sys
from pathlib import Path
from topologies.cgroup import born_in, dissolve, enter, members, place_for

first, second = place_for("one"), place_for("two")
if first is None or not enter(first):
    print("no cgroup2 here")
    sys.exit()
again = place_for("two")
assert again.parent == first.parent, "never inside another lab's group"
assert enter(second)
children = []
for group in (first, second, first):
    with born_in(group):
        children.append(subprocess.Popen(["sleep", "60"]))
    assert children[-1].pid in members(group), group
own = Path("/proc/self/cgroup").read_text()
assert dissolve(first) and dissolve(second)
assert not first.exists() and not second.exists()
left = {Path(f"/proc/{child.pid}/cgroup").read_text() for child in children}
assert left == {Path("/proc/self/cgroup").read_text()} != {own}, "all are where this process began"
with born_in(first):
    children.append(subprocess.Popen(["sleep", "60"]))
for child in children:
    child.kill()
    child.wait()
print("done")
"""


def test_children_are_born_in_their_labs_group_and_outlive_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("done", "no cgroup2 here")
