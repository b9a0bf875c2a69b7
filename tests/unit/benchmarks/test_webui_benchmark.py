"""What the page's benchmark sends a controller, and how it says that a tool is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import browser
from benchmarks.figures import ToolError
from benchmarks.reported_flows import ADDRESSES, active_flows, report_flows
from controller.live.flows import LiveFlows
from protocol.control import FlowEntry
from tests.unit.agents_channel import TOKEN, served
from tests.waiting import eventually


@pytest.mark.slow
def test_reported_flows_are_as_many_flows_in_the_table() -> None:
    flows = LiveFlows()
    for first in range(0, 50_000, 5_000):
        flows.take("named", active_flows(first, 5_000, "10.128.1.1"), 1e9, {"10.128.1.1": "h1"})
    flows.step(1e9)
    found = [shown for _, shown in flows.looked_at() if shown is not None]
    assert len(found) == 50_000
    assert {(one["source"], one["destination"]) for one in found} == {("named", "h1")}
    assert all(one["bytes"] >= 1_500 and one["last_at"] <= 1e9 for one in found)
    assert len({(one["source_port"], one["destination_port"]) for one in found}) == 50_000
    assert ADDRESSES[1] not in {one["source"] for one in found}, "named by its host"


def test_agents_report_all_flows_when_they_are_asked(tmp_path: Path) -> None:
    with served(tmp_path) as at:
        got: list[FlowEntry] = []
        at.server.active_flows.subscribe(lambda host, said: got.extend(said.flows))
        at.server.watch_flows(0.05, 32)
        report_flows(at.socket_path, TOKEN, count=5000, peer="10.128.1.1")
        eventually(lambda: len(got) == 5000, "all flows")
    assert len({(one.source_port, one.first_s) for one in got}) == 5000


def test_without_chromium_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ToolError, match="capstan test tests/e2e"):
        browser.program()


def test_without_playwright_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "playwright.sync_api", None)
    with pytest.raises(ToolError, match="Playwright is missing"), browser.chromium("http://127.0.0.1:1"):
        raise AssertionError("a browser was started")
