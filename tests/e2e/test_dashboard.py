"""The dashboard in a real browser, on a real fabric with real traffic."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from experiments.run.deployment import Deployment
from tests.e2e.conftest import HOSTS, LEAVES, PATIENCE_MS, SPINES

pytestmark = pytest.mark.timeout(600)
HERE = Path(__file__).parent
SCREENSHOTS = HERE / "screenshots"
AXE = HERE.parents[1] / "webui" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = ("fabric", "paths", "fct", "flows", "experiments", "control", "queues", "tpfs", "capton")
LIVE = re.compile("● live")
DRAWN = {
    "fabric": """() => [...document.querySelectorAll("path.line")].some(
        one => one.getAttribute("d").split("L").length > 3)""",
    "paths": "() => document.querySelectorAll('.path-strip .cell').length > 4",
    "fct": "() => document.querySelectorAll('.scheme-curve .scheme-shape').length > 4",
}
"""When charts have some points, for the picture."""


def until(page: Page, condition: str, argument: object = None) -> None:
    page.wait_for_function(condition, arg=argument, timeout=PATIENCE_MS)


def test_the_whole_fabric_is_seen_and_lives(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_test_id("connection")).to_have_text(LIVE)
    expect(page.locator(".fabric-map .switch")).to_have_count(LEAVES + SPINES)
    expect(page.locator(".fabric-map .link")).to_have_count(LEAVES * SPINES + LEAVES * HOSTS)
    expect(page.locator(".fabric-map .host")).to_have_count(LEAVES * HOSTS)
    expect(page.locator("header .scheme-mark")).to_have_text("caps")
    expect(page.locator("[data-leaf=l1][data-mode=on]")).to_be_visible()
    # The long flow's and the short ones' way into the fabric carry something.
    for link in ("h1-l1", "h2-l1"):
        expect(page.locator(f"[data-link={link}] .load:not(.u0)").first).to_be_visible()


def test_short_flows_are_on_all_paths_and_the_long_one_on_one(page: Page) -> None:
    page.goto("/paths")
    expect(page.get_by_test_id("class-short").locator("li")).to_have_count(SPINES)
    # Short flows' packets are on every path, and the long flow keeps to one while short ones are there.
    apart = """spines => {
      const of = name => document.querySelector(`[data-testid=class-${name}]`);
      const shares = name => [...of(name).querySelectorAll("li")].map(one => +one.dataset.share);
      return +of("short").dataset.packets > 500 && +of("long").dataset.packets > 500 &&
        Math.min(...shares("short")) > 0.5 / spines && Math.max(...shares("short")) < 2 / spines &&
        Math.max(...shares("long")) > 0.9;
    }"""
    until(page, apart, SPINES)
    # Its own panel says the same: one row of the strip is dark.
    expect(page.locator("[data-class=long][data-state=active]")).to_be_visible()
    expect(page.locator("[data-class=short] .path-diagram")).to_be_visible()


def test_a_link_that_is_taken_down_is_seen_and_comes_back(page: Page) -> None:
    page.goto("/fabric")
    link = page.locator("[data-link=l1-s2]")
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("link=l1-s2"))
    panel = page.get_by_role("region", name="Link l1-s2")
    expect(panel.get_by_text("carries 5.00 Mbit/s")).to_be_visible()
    page.get_by_role("button", name="Take the link down").click()
    expect(page.locator(".link.down[data-link=l1-s2]")).to_have_count(1)
    expect(page.get_by_role("region", name="Recent events")).to_contain_text("link l1-s2 is down")
    page.get_by_role("button", name="Bring the link up again").click()
    expect(page.locator(".link.down[data-link=l1-s2]")).to_have_count(0)


def test_the_scheme_is_switched_for_all_to_see(page: Page, lab: Deployment) -> None:
    page.goto("/control")
    for scheme in ("ecmp", "caps"):
        page.get_by_role("combobox", name="Scheme").select_option(scheme)
        page.get_by_role("button", name="Switch to it").click()
        expect(page.locator("header .scheme-mark")).to_have_text(scheme)
        expect(page.get_by_text(f"{scheme} is in force: all switches and agents confirmed")).to_be_visible()
        assert lab.client.scheme()["base"] == scheme


def test_flows_are_filtered_by_the_address_and_opened(page: Page) -> None:
    page.goto("/flows?class=long&q=h1>h3")
    row = page.get_by_role("table", name="Flows").locator(".flow-body .flow-row")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("h3")
    row.get_by_role("button").click()
    expect(page).to_have_url(re.compile(r"flow=\d+"))
    expect(page.locator(".path-strip")).to_be_visible()
    page.get_by_label("Class").select_option("short")
    page.get_by_role("searchbox").fill("h2>h4")
    until(page, "() => document.querySelectorAll('.flow-body .flow-row').length > 5")
    page.get_by_role("button", name="sent", exact=True).click()
    expect(page).to_have_url(re.compile("sort=-bytes"))


def test_keys_lead_to_the_views_and_help_names_them(page: Page) -> None:
    page.goto("/fabric")
    expect(page.locator(".fabric-map")).to_be_visible()
    page.keyboard.press("p")
    expect(page).to_have_url(re.compile("/paths$"))
    page.keyboard.press("/")
    expect(page.get_by_role("dialog", name="Help")).to_contain_text("Live paths")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("f")
    expect(page).to_have_url(re.compile("/fabric$"))


def test_old_data_is_called_old_and_news_end_that(page: Page, lab: Deployment) -> None:
    page.goto("/fabric")
    state = page.get_by_test_id("connection")
    expect(state).to_have_text(LIVE)
    controller = json.loads((lab.lab.run_dir / "controller" / "endpoints.json").read_text())["pid"]
    os.kill(controller, signal.SIGSTOP)
    try:
        expect(state).to_have_text(re.compile("no updates, data .* old"))
    finally:
        os.kill(controller, signal.SIGCONT)
    expect(state).to_have_text(LIVE)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_is_free_of_what_axe_finds(page: Page, theme: str) -> None:
    SCREENSHOTS.mkdir(exist_ok=True)
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    found = {}
    for view in VIEWS:
        page.goto(f"/{view}{'?link=l1-s1' if view == 'fabric' else ''}")
        expect(page.get_by_test_id("connection")).to_have_text(LIVE)
        expect(page.locator("main h1")).to_have_count(1)
        expect(page.get_by_text(re.compile("^(Asking for|Loading)"))).to_have_count(0)
        if view in DRAWN:
            until(page, DRAWN[view])
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
            f"{view} is wider than the window"
        )
        page.screenshot(path=SCREENSHOTS / f"{view}-{theme}.png", full_page=True)
        page.evaluate(AXE.read_text())
        violations = page.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(done => done.violations)"
        )
        if violations:
            found[view] = [(one["id"], one["help"], one["nodes"][0]["html"][:200]) for one in violations]
    assert not found, json.dumps(found, indent=1)
