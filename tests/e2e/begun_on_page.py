"""What a person does with an experiment on the page: begin it, watch it, see its result, compare it with another."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping

from playwright.sync_api import Page, expect

from experiments.results.packet_trace import OUTCOMES, parse_trace

RUN_MS = 240_000


def begin(page: Page, fields: Mapping[str, str], *, record: bool = False) -> int:
    """Begin `small` with ECMP alone and these fields changed; return its number. record: packets of the whole run."""
    page.goto("/compare")
    for scheme in ("rps", "caps"):
        page.get_by_label(scheme, exact=True).uncheck()
    for index, (field, value) in enumerate(fields.items()):
        page.get_by_role("button", name="Change another field").click()
        page.get_by_role("combobox", name="Field", exact=True).nth(index).fill(field)
        page.get_by_label("Value", exact=True).nth(index).fill(value)
    if record:
        page.get_by_label("Record packets").check()
        window = page.get_by_role("group", name="Window to record")
        window.get_by_label("from", exact=True).fill("0")
        window.get_by_label("for", exact=True).fill("600000")
    expect(page.get_by_text(re.compile("✓ 1 run, about"))).to_be_visible()
    page.get_by_role("button", name="Begin").click()
    expect(page).to_have_url(re.compile(r"/compare/\d+$"))
    return int(page.url.rpartition("/")[2])


def is_live(page: Page) -> None:
    """Wait until the fabric of the open page shows load on a link."""
    expect(page.locator("[data-link] [data-step]:not([data-step='0'])").first).to_be_visible(timeout=RUN_MS)


def finished(page: Page) -> None:
    """Wait for the result of the experiment whose page is open."""
    expect(page.locator("[data-state=finished]").first).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_role("img", name=re.compile("mean completion time: ecmp [0-9.]+ ms"))).to_be_visible()


def played_again(page: Page, number: int) -> None:
    """Play the recorded run of the experiment whose page is open, and compare its packets with what agents counted."""
    page.get_by_role("group", name="Play again").get_by_role("link", name="ecmp").click()
    expect(page.get_by_role("img", name=re.compile("packets? on links"))).to_be_visible()
    trace = parse_trace(page.request.get(f"/api/v1/experiments/{number}/recording?scheme=ecmp").body())
    hops, packets = len(trace.hops["packet"]), len(trace.packets["flow"])
    expect(page.get_by_text(f"{hops:,} hops of {packets:,} packets")).to_be_visible()
    lines = page.request.get(f"/api/v1/experiments/{number}/flows.csv").text().splitlines()
    counted = {int(row["flow"]): row for row in csv.DictReader(lines)}
    assert {int(flow) for flow in trace.flows["id"]} == set(counted)
    sizes = ["" if size is None else str(size) for size in trace.flows["bytes"]]
    assert [counted[flow]["size_bytes"] for flow in trace.flows["id"]] == sizes
    arrived: Counter[int] = Counter()
    for packet, link, outcome in zip(
        *(trace.hops[name] for name in ("packet", "link", "outcome")), strict=True
    ):
        row, end = trace.packets["flow"][packet], trace.packets["destination"][packet]
        there = OUTCOMES[outcome] == "sent" and trace.links["to"][link] == trace.hosts[end]
        if there and row >= 0 and end == trace.flows["destination"][row]:
            arrived[int(trace.flows["id"][row])] += 1
    whole = {flow: int(row["packets"]) for flow, row in counted.items() if row["state"] == "finished"}
    assert whole, "those of the background are cut off at the run's end"
    assert {flow: arrived[flow] for flow in whole} == whole
    page.get_by_role("button", name="Step to the next packet").click()
    expect(page.locator("output")).not_to_have_text("0.0000 ms")
    longest = max(whole, key=lambda flow: whole[flow])
    page.get_by_label("Flow", exact=True).select_option(str(longest))
    expect(page).to_have_url(re.compile(rf"flow={longest}\b"))


def compare(page: Page, number: int, other: int) -> None:
    """Choose another experiment beside the finished one whose page is open, and see measures of both."""
    page.get_by_label("Compare with").select_option(str(other))
    expect(page.get_by_text(f"Experiment {number} beside {other}", exact=True)).to_be_visible()
    for one in (number, other):
        expect(page.get_by_role("columnheader", name=f"experiment {one}", exact=True)).to_be_visible()
    table = page.get_by_role("table", name="Measures of both")
    expect(table.get_by_role("row").filter(has_text="ecmp").first).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/compare/{number}\?(.*&)?with={other}\b"))
