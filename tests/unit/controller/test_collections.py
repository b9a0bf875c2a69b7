"""Python's collector stops every thread while it looks at all objects: not each time that switches join."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import gc, sys
from controller.__main__ import COLLECTIONS
from controller.control_plane import ControlPlane
from controller.fabric.switch_data import Port

gc.collect()
gc.freeze()
if sys.argv[1] == "ours":
    gc.set_threshold(*COLLECTIONS)
before = gc.get_stats()[2]["collections"]
planes = [ControlPlane(bytes(32)) for _ in range(4)]  # one takes 16 384 ports of switches without links
for plane in planes:
    now = 100.0
    for dpid in range(1, 5):
        ports = [Port(n, f"p{n}", "02:00:00:00:00:02", True) for n in range(1, 4001)]
        plane.switch_connected(dpid, ports, None, now)
        for _ in range(100):
            now += 0.01
            plane.tick(now)
known = sum(len(plane.snapshot().switches) for plane in planes)
print(known, gc.get_stats()[2]["collections"] - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("thresholds", "collections"), [("python's", True), ("ours", False)])
def test_switches_with_many_ports_join_without_a_look_at_all_objects(
    thresholds: str, collections: bool
) -> None:
    argv = [sys.executable, "-c", PROGRAM, thresholds]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    switches, full = map(int, done.stdout.split())
    assert switches == 16
    assert (full > 0) is collections
