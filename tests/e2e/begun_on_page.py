"""What a person does with an experiment on the page: begin it, watch it, see its result, compare it with another."""

from __future__ import annotations

import re
from collections.abc import Mapping

from playwright.sync_api import Page, expect

RUN_MS = 240_000


def begin(page: Page, fields: Mapping[str, str]) -> int:
    """Begin `small` with ECMP alone and these fields changed; return its number."""
    page.goto("/compare")
    for scheme in ("rps", "caps"):
        page.get_by_label(scheme, exact=True).uncheck()
    for index, (field, value) in enumerate(fields.items()):
        page.get_by_role("button", name="Change another field").click()
        page.get_by_role("combobox", name="Field", exact=True).nth(index).fill(field)
        page.get_by_label("Value", exact=True).nth(index).fill(value)
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


def compare(page: Page, number: int, other: int) -> None:
    """Choose another experiment beside the finished one whose page is open, and see measures of both."""
    page.get_by_label("Compare with").select_option(str(other))
    expect(page.get_by_text(f"Experiment {number} beside {other}", exact=True)).to_be_visible()
    for one in (number, other):
        expect(page.get_by_role("columnheader", name=f"experiment {one}", exact=True)).to_be_visible()
    table = page.get_by_role("table", name="Measures of both")
    expect(table.get_by_role("row").filter(has_text="ecmp").first).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/compare/{number}\?(.*&)?with={other}\b"))
