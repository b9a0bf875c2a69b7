"""The dashboard in a real browser, on a real fabric with real traffic."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from experiments.run.deployment import Deployment
from experiments.spec.spec import SchemeChoice
from tests.e2e.appearances import HERE, Photographer, each_appearance, said_by_place, violations
from tests.e2e.conftest import HOSTS, LEAVES, PATIENCE_MS, PORT, SPINES, address, start
from tests.e2e.live_traffic import ANNOUNCED, SINK, SMALL
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(1200)
VIEWS = (
    "watch",
    "watch?link=l1-s1",
    "watch/paths",
    "watch/times",
    "watch/queues",
    "compare",
    "understand/caps",
    "understand/tpfs",
    "understand/capton",
    "operate",
    "operate/flows",
)
PLAIN = str.maketrans("/?=", "---")
LIVE = re.compile("● live")
DRAWN = {
    "watch?link=l1-s1": "() => document.querySelectorAll('figure canvas').length > 0",
    "watch/paths": "() => document.querySelectorAll('[data-cell]').length > 4",
    "watch/times": "() => document.querySelectorAll('[data-curves] canvas').length > 0",
}
"""When charts have some points, for the picture."""


def until(page: Page, condition: str, argument: object = None) -> None:
    page.wait_for_function(condition, arg=argument, timeout=PATIENCE_MS)


def holds_in_each_appearance(page: Page, photograph: Photographer, name: str) -> None:
    """Hold that all fits and axe finds nothing, with a picture of each size."""
    found = {}
    for appearance in each_appearance(page):
        photograph(page, f"{name}-{appearance}")
        found[appearance] = violations(page)
    assert not any(found.values()), said_by_place(found)


def test_the_whole_fabric_is_seen_and_lives(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_test_id("connection")).to_have_text(LIVE)
    expect(page).to_have_title("Fabric · Capstan")
    expect(page.locator("[data-switch]")).to_have_count(LEAVES + SPINES)
    expect(page.locator("[data-link]")).to_have_count(LEAVES * SPINES + LEAVES * HOSTS)
    expect(page.locator("[data-host]")).to_have_count(LEAVES * HOSTS)
    expect(page.get_by_test_id("scheme")).to_have_text(re.compile("caps"))
    expect(page.locator("[data-leaf=l1][data-mode=on]")).to_be_visible()
    # The long flow's and the short ones' way into the fabric carry something.
    for link in ("h1-l1", "h2-l1"):
        expect(page.locator(f"[data-link={link}] [data-step]:not([data-step='0'])").first).to_be_visible()


def test_short_flows_are_on_all_paths_and_the_long_one_on_one(page: Page) -> None:
    page.goto("/paths")  # an address of an earlier version
    expect(page).to_have_url(re.compile("/watch/paths$"))
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
    expect(page.locator("[data-class=short]").get_by_test_id("path-diagram")).to_be_visible()


def test_a_link_that_is_taken_down_is_seen_and_comes_back(page: Page) -> None:
    page.goto("/watch")
    link = page.locator("[data-link=l1-s2]")
    link.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("link=l1-s2"))
    panel = page.get_by_role("region", name="Link l1-s2")
    expect(panel.get_by_text("carries 2.50 Mbit/s")).to_be_visible()
    heading = panel.get_by_role("heading", name="Link l1-s2")
    page.get_by_role("button", name="Take the link down").click()
    expect(heading).to_be_focused()
    expect(page.locator("[data-link=l1-s2][data-state=down]")).to_have_count(1)
    expect(page.get_by_role("region", name="Recent events")).to_contain_text("link l1-s2 is down")
    expect(panel.locator("canvas").first).to_be_visible()
    page.get_by_role("button", name="Bring the link up again").click()
    expect(heading).to_be_focused()
    expect(page.locator("[data-link=l1-s2][data-state=down]")).to_have_count(0)
    panel.get_by_role("button", name="Close this panel").click()
    expect(panel).to_have_count(0)
    expect(link).to_be_focused()


def test_the_scheme_is_switched_for_all_to_see(page: Page, lab: Deployment) -> None:
    page.goto("/operate")
    for scheme in ("ecmp", "caps"):
        page.get_by_role("combobox", name="Scheme").select_option(scheme)
        page.get_by_role("button", name="Switch to it").click()
        expect(page.get_by_role("heading", name="Scheme", exact=True)).to_be_focused()
        expect(page.get_by_test_id("scheme").locator("[data-scheme]")).to_have_attribute(
            "data-scheme", scheme
        )
        expect(page.get_by_text(f"{scheme} is in force: all switches and agents confirmed")).to_be_visible()
        assert lab.client.scheme()["base"] == scheme


def test_flows_are_filtered_by_the_address_and_opened(page: Page) -> None:
    page.goto("/operate/flows?class=long&q=h1>h3")
    row = page.get_by_test_id("flow-body").get_by_role("row")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("h3")
    row.get_by_role("button").click()
    expect(page).to_have_url(re.compile(r"flow=\d+"))
    expect(page.get_by_test_id("path-strip")).to_be_visible()
    page.get_by_label("Class").select_option("short")
    page.get_by_role("searchbox").fill("h2>h4")
    until(page, "() => document.querySelectorAll('[data-testid=flow-body] [role=row]').length > 5")
    page.get_by_role("button", name="sent", exact=True).click()
    expect(page).to_have_url(re.compile("sort=-bytes"))


def test_keys_lead_to_the_views_and_help_names_them(page: Page) -> None:
    page.goto("/watch")
    expect(page.get_by_test_id("fabric-map")).to_be_visible()
    page.keyboard.press("2")
    expect(page).to_have_url(re.compile("/watch/paths$"))
    for key, view in {"c": "compare", "u": "understand", "o": "operate"}.items():
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(f"/{view}$"))
    page.keyboard.press("/")
    expect(page.get_by_role("dialog", name="Help")).to_contain_text("Watch: Paths")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("w")
    expect(page).to_have_url(re.compile("/watch$"))


@pytest.mark.parametrize(
    ("before", "now"),
    {
        "/fabric?link=l1-s1": "/watch?link=l1-s1",
        "/fct": "/watch/times",
        "/queues": "/watch/queues",
        "/experiments/5": "/compare/5",
        "/control": "/operate",
        "/flows?class=long": "/operate/flows?class=long",
        "/tpfs": "/understand/tpfs",
        "/capton": "/understand/capton",
    }.items(),
)
def test_addresses_of_an_earlier_version_lead_to_what_they_named(page: Page, before: str, now: str) -> None:
    page.goto(before)
    expect(page).to_have_url(re.compile(re.escape(now) + "$"))


def test_a_scheme_is_explained_by_its_paths_and_its_file(page: Page) -> None:
    page.goto("/understand")
    expect(page.get_by_role("region", name=re.compile("^caps: "))).to_contain_text("in force")
    page.get_by_role("link", name=re.compile("^letflow")).click()
    expect(page).to_have_url(re.compile("/understand/letflow$"))
    expect(page.get_by_label("letflow.yaml")).to_contain_text("name: letflow")
    paths = page.get_by_role("region", name="Paths of packets")
    expect(paths.get_by_role("img")).to_have_count(2)
    expect(paths).to_contain_text("a new path after a pause in the flow")


def test_old_data_is_called_old_and_new_data_end_that(page: Page, lab: Deployment) -> None:
    page.goto("/watch")
    state = page.get_by_test_id("connection")
    expect(state).to_have_text(LIVE)
    controller = json.loads((lab.lab.run_dir / "controller" / "endpoints.json").read_text())["pid"]
    os.kill(controller, signal.SIGSTOP)
    try:
        expect(state).to_have_text(re.compile("no updates, data .* old"))
    finally:
        os.kill(controller, signal.SIGCONT)
    expect(state).to_have_text(LIVE)


def test_panels_fill_their_rows_and_bars_begin_at_one_place(page: Page) -> None:
    def box(panel: Locator) -> FloatRect:
        expect(panel).to_be_visible()
        found = panel.bounding_box()
        assert found is not None
        return found

    page.set_viewport_size({"width": 1920, "height": 1080})
    page.goto("/operate")
    switches, agents = (page.get_by_role("region", name=name) for name in ("Switches", "Host agents"))
    expect(agents.get_by_text("h4")).to_be_visible()
    # what is above them may come between the two looks
    eventually(lambda: box(switches)["y"] == box(agents)["y"], "both begin at one height")
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/understand/caps")
    expect(page.get_by_label("caps.yaml")).to_contain_text("name: caps")
    file, panel = box(page.get_by_label("caps.yaml")), box(page.get_by_role("region", name="Its file"))
    assert file["height"] > 0.8 * panel["height"]
    page.goto("/watch/queues")
    until(page, "() => document.querySelectorAll('td .mantine-Progress-root').length >= 8")
    edges = "all => [...new Set(all.map(one => Math.round(one.getBoundingClientRect().left)))]"
    assert len(page.locator("td .mantine-Progress-root").evaluate_all(edges)) == 1


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_free_of_what_axe_finds(page: Page, photograph: Photographer, view: str) -> None:
    page.goto(f"/{view}")
    expect(page.get_by_test_id("connection")).to_have_text(LIVE)
    expect(page.locator("main h1")).to_have_count(1)
    expect(page.get_by_text(re.compile("^(Asking for|Loading)"))).to_have_count(0)
    if view in DRAWN:
        until(page, DRAWN[view])
    holds_in_each_appearance(page, photograph, view.translate(PLAIN))


def test_an_appearance_stays_on_pages_that_are_opened_later(page: Page) -> None:
    page.goto("/watch")
    for appearance in each_appearance(page):
        page.goto("/operate")
        assert page.evaluate("document.documentElement.dataset.appearance") == appearance


def test_grants_are_shown_under_capton(page: Page, lab: Deployment, photograph: Photographer) -> None:
    lab.set_scheme(SchemeChoice("capton", "capton", {}))
    flow = start(lab, "h1", ANNOUNCED, address(lab, "h3"), PORT, address(lab, "h1"), HERE.parents[1])
    page.goto("/understand/capton")
    grants = page.get_by_role("region", name="Grants now")
    expect(
        grants.get_by_text(re.compile(r"[1-9]\d* flows? may send, [0-9.]+ [kM]bit/s together"))
    ).to_be_visible()
    expect(grants.get_by_role("img", name=re.compile(r" [1-9]\d* of them may send now"))).to_be_visible()
    links = page.get_by_role("region", name="Shares of links").get_by_role("row")
    expect(links.filter(has_text="h3 down")).to_have_text(re.compile(r"[1-9]\d* %$"))
    holds_in_each_appearance(page, photograph, "understand-capton-grants")
    flow.kill()


def test_types_that_were_learnt_are_shown_under_tpfs(
    page: Page, lab: Deployment, photograph: Photographer
) -> None:
    thresholds = {"queues.number": 3, "priority.thresholds_bytes": [20_000, 40_000]}
    choice = SchemeChoice("tpfs", "tpfs", {**thresholds, "priority.prediction.interval_s": 0.5})
    lab.set_scheme(choice)
    sink = start(lab, "h3", SINK, PORT + 1)
    assert sink.stdout is not None
    assert "listening" in sink.stdout.readline()
    # Flows of 60 kB from h2 end all the time: these are of another kind.
    assert start(lab, "h1", SMALL, address(lab, "h3"), PORT + 1).wait(120) == 0
    page.goto("/understand/tpfs")
    types = page.get_by_role("region", name="Types", exact=True)
    expect(types.get_by_role("row").nth(2)).to_contain_text(
        re.compile(r"[0-9.]+ k?B")
    )  # below head and first
    expect(
        page.get_by_role("img", name=re.compile("^Thresholds. default: 20.0 kB, 40.0 kB; type 0: "))
    ).to_be_visible()
    until(page, "() => document.querySelectorAll('[data-curves] canvas').length > 0")
    holds_in_each_appearance(page, photograph, "understand-tpfs-types")
