"""What the dashboard costs the one who looks at it: Chromium on a real controller, 64 links and 2000 flows.

Eight leaves and eight spines carry 2000 TCP flows that all send, while a browser shows each live view in turn; what the
kernel counted for the page's main thread is compared with the time that passed. Then a table of 100 000 flows is
scrolled. Lighthouse judges every view (`benchmarks.accessibility`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from benchmarks import accessibility
from benchmarks.browser import SIZE, Watched, chromium
from benchmarks.figures import BenchmarkError, Figure, document, percentile
from benchmarks.reported_flows import report_flows
from benchmarks.unused_workload import UNUSED_WORKLOAD
from controller.live.past_flows import KEPT_PAST
from experiments.run.deployment import ROOT, Deployment
from experiments.spec.spec import Spec, spec_from_dict

SIDE: Final = 8
"""Leaves, and spines: 64 links between them."""
FLOWS: Final = 2_000
OPENED: Final = 2_080
"""So many are opened: with only a few, a host's agent may report none for a long time."""
PORT: Final = 7000
ROWS: Final = 100_000
SHARE_GOAL: Final = 0.20
FRAME_MS: Final = 16.7
FRAME_P95_GOAL_MS: Final = 33.4
"""Two frames at 60 Hz: one that is dropped now and then is not seen."""
LIVE_VIEWS: Final = {"watch": 60.0, "watch/paths": 20.0, "watch/times": 20.0, "operate/flows": 20.0}
"""Seconds that each is looked at, after SETTLE_S."""
SETTLE_S: Final = 4.0
SCROLL_S: Final = 10.0
WHEEL_PX: Final = 240
PATIENCE_S: Final = 90.0
_SCROLL: Final = """({wheel, milliseconds}) => {
  const frame = document.querySelector("[data-testid=flow-frame]");
  const until = performance.now() + milliseconds;
  const step = () => {
    frame.scrollTop += wheel;
    if (performance.now() < until) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}"""
_JUMP: Final = """async share => {
  const frame = document.querySelector("[data-testid=flow-frame]");
  const began = performance.now();
  frame.scrollTop = share * (frame.scrollHeight - frame.clientHeight);
  const shown = () => [...document.querySelectorAll("[data-testid=flow-body] [role=row]")].some(row => {
    const box = row.getBoundingClientRect(), around = frame.getBoundingClientRect();
    return box.top < around.bottom && box.bottom > around.top + around.height / 2;
  });
  do await new Promise(requestAnimationFrame); while (!shown());
  return performance.now() - began;
}"""


def run(views: Mapping[str, float] = LIVE_VIEWS, rows: int = ROWS, score: bool = True) -> dict[str, Any]:
    """Return all figures. Takes about five minutes."""
    figures: dict[str, Figure] = {}
    with Deployment(_spec()) as lab, chromium(lab.client.url) as watched:
        with _traffic(lab):
            notes = [_seen(lab)]
            for view, seconds in views.items():
                figures |= _looked_at(watched, view, seconds)
        if score:
            judged = accessibility.scores(lab.client.url)
            figures |= {
                f"accessibility_{view.replace('/', '_')}": Figure(
                    value, "of 100", accessibility.GOAL, "higher"
                )
                for view, value in judged.items()
            }
            notes.append(f"accessibility by Lighthouse {accessibility.version()}")
        _fill(lab, rows)
        figures |= _table(watched, rows)
    notes += [
        f"a window of {SIZE['width']} x {SIZE['height']} px, drawn without a graphics processor",
        "processor time as the kernel counts it for the main thread of the page's process",
    ]
    return document(figures, tuple(notes))


def _spec() -> Spec:
    return spec_from_dict(
        {
            "name": "webui",
            "title": "64 links to look at",
            "fabric": {
                "leaves": SIDE,
                "spines": SIDE,
                "hosts_per_leaf": 1,
                "link": {"rate_mbps": 5, "buffer_packets": 256},
                "access": {"rate_mbps": 20, "buffer_packets": 256},
            },
            "schemes": ["ecmp"],
            "workload": UNUSED_WORKLOAD,
        }
    )


@contextmanager
def _traffic(lab: Deployment) -> Iterator[None]:
    """Run FLOWS flows, from every host to all others, until the block ends."""
    overlay = {host["name"]: host["overlay"][0] for host in lab.client.fabric()["hosts"]}
    programs: list[subprocess.Popen[str]] = []
    try:
        for host in lab.lab.hosts:
            peers = [address for name, address in overlay.items() if name != host]
            argv = [sys.executable, "-m", "benchmarks.page_traffic", str(PORT), str(OPENED // SIDE), *peers]
            programs.append(lab.lab.popen(host, argv, stdin=-1, stdout=-1, text=True, cwd=ROOT))
        for program in programs:
            assert program.stdout is not None
            if program.stdout.readline().strip() != "open":
                raise BenchmarkError("a host could not open its flows (benchmarks/page_traffic.py)")
        yield
    finally:
        for program in programs:
            program.terminate()
            program.wait()


def _looked_at(watched: Watched, view: str, seconds: float) -> dict[str, Figure]:
    """Return what *view* takes of a core while it is shown."""
    watched.page.goto(f"/{view}")
    watched.page.get_by_test_id("connection").get_by_text("live").wait_for()
    time.sleep(SETTLE_S)
    began, main, whole = time.monotonic(), watched.main_thread_s(), watched.processes_s()
    time.sleep(seconds)
    passed = time.monotonic() - began
    name = view.replace("/", "_")
    return {
        f"main_thread_{name}": Figure((watched.main_thread_s() - main) / passed, "cores", SHARE_GOAL),
        f"process_{name}": Figure((watched.processes_s() - whole) / passed, "cores"),
    }


def _seen(lab: Deployment) -> str:
    """Wait until the controller knows every flow. Return what there is to see, in words.

    Raises:
        BenchmarkError: it is not what was meant.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        flows = [flow for flow in _flows(lab) if flow["destination_port"] == PORT]
        if len(flows) >= FLOWS:
            break
        if time.monotonic() > deadline:
            raise BenchmarkError(
                f"the controller knows {len(flows)} flows after {PATIENCE_S:g} s, not {FLOWS}"
            )
        time.sleep(1.0)
    links = [link for link in lab.client.fabric()["links"] if link["up"]]
    active = sum(flow["state"] == "active" for flow in flows)
    return f"{len(links)} links; {len(flows)} flows in the table, {active} of them reported in the last 3 s"


def _flows(lab: Deployment) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = []
    before: int | None = None
    while True:
        page = lab.client.flows(before)
        listed += page["flows"]
        if page["next"] is None:
            return listed
        before = page["next"]


def _fill(lab: Deployment, rows: int) -> None:
    """Have the controller know of *rows* flows and more."""
    if rows > KEPT_PAST:
        raise BenchmarkError(f"a controller keeps {KEPT_PAST} flows, not {rows}")
    peer = lab.client.fabric()["hosts"][0]["overlay"][0]
    run_dir = lab.lab.run_dir
    token = (run_dir / "agents-token").read_text(encoding="utf-8").strip()
    report_flows(run_dir / "agents.sock", token, count=rows, peer=peer)


def _table(watched: Watched, rows: int) -> dict[str, Figure]:
    """Return frame times while the table of all flows is scrolled, and the time of a jump to its middle."""
    page = watched.page
    began = time.monotonic()
    page.goto("/operate/flows")
    page.wait_for_function(
        """least => +document.querySelector("[role=table]")?.getAttribute("aria-rowcount") > least""",
        arg=rows * 0.95,
        timeout=PATIENCE_S * 1e3,
    )
    loaded = time.monotonic() - began
    time.sleep(SETTLE_S)
    main, since = watched.main_thread_s(), time.monotonic()
    page.evaluate(_SCROLL, {"wheel": WHEEL_PX, "milliseconds": SCROLL_S * 1e3})
    frames = watched.frame_times_ms(SCROLL_S)
    busy = watched.main_thread_s() - main
    passed = time.monotonic() - since
    jumps: Sequence[float] = [page.evaluate(_JUMP, share) for share in (0.5, 0.1, 0.9, 0.3, 0.7)]
    return {
        f"rows_{rows}_shown_after": Figure(loaded, "s"),
        f"rows_{rows}_frame_p95": Figure(percentile(frames, 95), "ms", FRAME_P95_GOAL_MS),
        f"rows_{rows}_frame_longest": Figure(max(frames), "ms"),
        f"rows_{rows}_frames": Figure(len(frames) / SCROLL_S, "frames/s"),
        f"rows_{rows}_main_thread": Figure(busy / passed, "cores"),
        f"rows_{rows}_main_thread_a_frame": Figure(
            busy / len(frames) * 1e3, "ms of processor time", FRAME_MS
        ),
        f"rows_{rows}_jump_longest": Figure(max(jumps), "ms", 250.0),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
