"""Experiments from the page: begun, watched, cancelled and compared, on a real controller whose worker runs them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.appearances import SIZES, Photographer, each_appearance, said_by_place, violations
from tests.e2e.browser_network import BrowserNetwork
from tests.e2e.conftest import PATIENCE_MS
from tests.lab.engine_server import Server

pytestmark = pytest.mark.timeout(1200)
RUN_MS = 240_000
"""A lab has to come up and go away again, on a machine that has other things to do."""
_TOO_WIDE = """() => [...document.images]
  .filter(one => one.clientWidth > 1.2 * one.naturalWidth)
  .map(one => `${one.src}: ${one.clientWidth} of ${one.naturalWidth} px`)"""
"""Pictures that are drawn larger than they are: their letters would be, too."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a controller with a queue, at all addresses: so it asks for a token."""
    made = Server(tmp_path_factory.mktemp("experiments"), "--api-without-tls")
    made.api = "0.0.0.0:0"
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def page(server: Server, browser: Browser, network: BrowserNetwork) -> Iterator[Page]:
    port = int(server.api.rpartition(":")[2])
    network.let_through(port)
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, base_url=f"http://127.0.0.1:{port}"
    )
    context.set_default_timeout(PATIENCE_MS)
    context.set_default_navigation_timeout(2 * PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    yield context.new_page()
    context.close()


def enter(page: Page, server: Server, token: str) -> None:
    """Come in with the token of a file."""
    page.context.clear_cookies()
    page.goto("/compare")
    page.get_by_label("Token", exact=True).fill((server.data / token).read_text().strip())
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_test_id("connection")).to_have_text(re.compile("● live"))


def begin(page: Page, flows: str, kind: str = "experiment", flows_per_s: str = "12") -> None:
    """Submit `small` with ECMP alone and so many flows, on switches or as a simulation."""
    page.goto("/compare")
    if kind == "simulation":
        page.get_by_label("Runs", exact=True).select_option(kind)
    for scheme in ("rps", "caps"):
        page.get_by_label(scheme, exact=True).uncheck()
    fields = {"workload.flows.count": flows, "workload.flows.arrivals.rate_per_s": flows_per_s}
    for index, (field, value) in enumerate(fields.items()):
        page.get_by_role("button", name="Change another field").click()
        page.get_by_role("combobox", name="Field", exact=True).nth(index).fill(field)
        page.get_by_label("Value", exact=True).nth(index).fill(value)
    expect(page.get_by_text(re.compile("✓ 1 run, about"))).to_be_visible()
    page.get_by_role("button", name="Begin").click()
    expect(page).to_have_url(re.compile(r"/compare/\d+$"))


def finished(page: Page) -> None:
    expect(page.locator("[data-state=finished]").first).to_be_visible(timeout=RUN_MS)


def test_who_may_only_look_gets_the_reason_why_nothing_can_be_begun(page: Page, server: Server) -> None:
    enter(page, server, "api-read-token")
    expect(page.get_by_text("Your token is for reading only")).to_be_visible()
    expect(page.get_by_role("button", name="Begin")).to_have_count(0)
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Token", exact=True)).to_be_visible()
    page.goto("/compare")
    expect(page.get_by_label("Token", exact=True)).to_be_visible()
    enter(page, server, "api-token")
    expect(page.get_by_role("button", name="Begin")).to_be_visible()


def test_a_token_is_sent_again_while_the_controller_does_not_answer(page: Page, server: Server) -> None:
    page.context.clear_cookies()
    page.goto("/compare")
    page.get_by_label("Token", exact=True).fill((server.data / "api-token").read_text().strip())
    page.route("**/api/v1/session", lambda route: route.abort(), times=1)
    page.get_by_role("button", name="Enter").click()
    expect(page.get_by_test_id("connection")).to_have_text(re.compile("● live"))


def test_what_is_wrong_is_said_at_its_field_and_at_its_line(page: Page) -> None:
    page.goto("/compare")
    page.get_by_role("button", name="Change another field").click()
    page.get_by_role("combobox", name="Field", exact=True).fill("workload.flows.count")
    page.get_by_label("Value", exact=True).fill("nonsense")
    expect(page.get_by_test_id("problems")).to_contain_text("workload.flows.count")
    expect(page.get_by_role("combobox", name="Field", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Begin")).to_be_disabled()
    page.get_by_text("Edit the whole spec as YAML").click()
    text = page.get_by_label("Spec as YAML", exact=True)
    spec = text.input_value()
    line = next(number for number, one in enumerate(spec.splitlines(), 1) if one.startswith("baseline"))
    text.fill(spec.replace("baseline: ecmp", "baseline: ecmpp"))
    expect(page.get_by_test_id("problems")).to_contain_text(f"line {line}")
    expect(page.get_by_test_id("wrong-line")).to_have_text(re.compile(rf"✕ {line}\b"))
    page.get_by_role("button", name=f"Go to line {line}").click()
    selected = "one => one.value.slice(one.selectionStart, one.selectionEnd)"
    assert text.evaluate(selected) == "baseline: ecmpp"
    text.fill(spec)
    expect(page.get_by_text(re.compile("✓ 3 runs, about"))).to_be_visible()
    text.fill(f"# mine\n{spec}")
    box = page.get_by_text("Edit the whole spec as YAML")
    box.click()
    expect(text).to_have_count(0)
    box.click()
    expect(text).to_have_value(f"# mine\n{spec}")
    preset = page.get_by_label("Preset", exact=True)
    preset.select_option("demo")
    expect(text).to_have_count(0)
    preset.select_option("small")
    expect(text).to_have_value(f"# mine\n{spec}")


def test_an_experiment_is_begun_and_watched_to_its_end(page: Page) -> None:
    begin(page, "4")
    expect(page.get_by_role("progressbar", name="Progress")).to_be_attached()
    finished(page)
    expect(page.get_by_role("img", name=re.compile("mean completion time: ecmp [0-9.]+ ms"))).to_be_visible()
    expect(page.get_by_role("table").first).to_contain_text("ecmp")
    with page.expect_download() as saved:
        page.get_by_role("link", name="All flows (CSV)").click()
    assert len(saved.value.path().read_text().splitlines()) > 4
    with page.expect_download() as saved:
        page.get_by_role("link", name="PNG", exact=True).first.click()
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    page.get_by_role("link", name="Compare", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="small").first).to_contain_text("finished")


def test_a_window_of_a_finished_simulation_is_played_again(page: Page) -> None:
    begin(page, "20", "simulation")
    finished(page)
    page.get_by_label("from", exact=True).fill("300")
    page.get_by_label("for", exact=True).fill("200")
    page.get_by_role("group", name="Play again").get_by_role("link", name="ecmp").click()
    expect(page.get_by_role("img", name=re.compile("packets? on links"))).to_be_visible()
    expect(page.locator("output")).to_have_text("300.0000 ms")
    expect(page.get_by_text("200 ms from 300.000 ms on")).to_be_visible()


def test_an_experiment_is_cancelled(page: Page, photograph: Photographer) -> None:
    begin(page, "5000")
    expect(page.get_by_text(re.compile(r"run 1 of 1"))).to_be_visible(timeout=RUN_MS)
    # The fabric of the run is on the experiment's own page, live, by way of this controller.
    expect(page.locator("[data-link] [data-step]:not([data-step='0'])").first).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_test_id("class-short").locator("li").first).to_be_visible()
    photograph.keep(page, "experiments-running")
    expect(page.get_by_test_id("scheme")).to_have_text(re.compile(r"^experiment \d+:\s+ecmp$"))
    page.goto("/operate/flows")  # those of the run, too
    expect(page.get_by_test_id("flow-body").get_by_role("row").first).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-state=cancelled]")).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_role("button", name="Run what is missing")).to_be_visible()


def test_a_simulation_is_watched_while_it_goes_on(page: Page, photograph: Photographer) -> None:
    begin(page, "20000", "simulation", flows_per_s="0.02")  # minutes, for the long flow fills its path
    experiments_page = page.url
    expect(page.get_by_text(re.compile(r"run 1 of 1"))).to_be_visible(timeout=RUN_MS)
    for place in (experiments_page, "/watch"):
        page.goto(place)
        loaded = page.locator("[data-link] [data-step]:not([data-step='0'])").first
        expect(loaded).to_be_visible(timeout=RUN_MS)
        expect(page.get_by_text(re.compile(r"^At [0-9.]+ .*s of the run’s time"))).to_be_visible()
    photograph(page, "watch-simulation")
    page.locator("[data-link='l1-s1']").press("Enter")
    link = page.get_by_role("region", name="Link l1-s1")
    expect(link.get_by_text("carries 5.00 Mbit/s each way")).to_be_visible()
    expect(link.locator("figure").first).to_be_visible()
    assert violations(page) == []
    photograph.keep(page, "watch-simulation-link")
    link.get_by_role("button", name="Close").click()
    expect(link).to_have_count(0)
    page.goto(experiments_page)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-state=cancelled]")).to_be_visible(timeout=RUN_MS)
    expect(page.get_by_text("of the run’s time")).to_have_count(0)


def test_a_sweep_is_begun_and_its_points_are_shown(page: Page) -> None:
    page.goto("/compare")
    page.get_by_label("rps", exact=True).uncheck()
    page.get_by_role("button", name="Change another field").click()
    page.get_by_role("combobox", name="Field", exact=True).fill("workload.flows.count")
    page.get_by_label("Value", exact=True).fill("4")
    page.get_by_role("button", name="Try a field at several values").click()
    page.get_by_role("combobox", name="Field to sweep").fill("workload.flows.arrivals.load")
    page.get_by_label("Values, with commas between").fill("0.2, 0.3")
    expect(page.get_by_text(re.compile("✓ 4 runs at 2 points, about"))).to_be_visible()
    page.get_by_role("button", name="Begin").click()
    expect(page).to_have_url(re.compile(r"/compare/\d+$"))
    points = page.get_by_role("region", name="Points of the sweep")
    expect(points.get_by_text("load = 0.2")).to_be_visible()
    expect(points.locator("[data-state=finished]")).to_have_count(2, timeout=RUN_MS)
    finished(page)
    row = points.get_by_role("row").filter(has_text="load = 0.3")
    expect(row).to_have_text(re.compile(r"finished[0-9.]+ ms .* Mbit/s[0-9.]+ ms .* Mbit/s"))
    for measure, unit in {
        "Short flows: mean completion time": "ms",
        "Long flows: goodput together": "Mbit.s",
    }.items():
        drawn = page.get_by_role(
            "img", name=re.compile(rf"{measure} over load. ecmp: load = 0.2: ecmp [0-9.]+ {unit}")
        )
        expect(drawn).to_be_visible()
        expect(drawn).to_have_accessible_name(re.compile(r"caps: load = 0.2: .* load = 0.3: "))
    assert page.locator("main img").count() == 0, "what is drawn for print are files"
    with page.expect_download() as saved:
        page.get_by_role("link", name="Figure for print (SVG)").click()
    assert b"<svg" in saved.value.path().read_bytes()


def open_compared(page: Page) -> None:
    """Open a point of the sweep, which has ECMP and CAPS, beside the first experiment, of ECMP alone."""
    page.goto("/compare")
    page.get_by_role("link", name=re.compile(r"^\d+: small")).first.click()
    page.get_by_role("region", name="Points of the sweep").get_by_role("link", name="load = 0.2").click()
    others = page.get_by_label("Compare with")
    others.select_option(others.locator("option").last.get_attribute("value"))


def test_another_experiment_is_chosen_and_stands_beside_it(page: Page) -> None:
    open_compared(page)
    expect(page).to_have_url(re.compile(r"/compare/\d+\?with=\d+$"))
    mine, other = re.findall(r"\d+", page.url.rpartition("/")[2])
    both = page.get_by_role("region", name=f"Experiment {mine} beside {other}")
    row = both.get_by_role("row").filter(has_text="Short flows: mean completion time, ms")
    expect(row).to_have_text(re.compile(r"^ ?ecmp.*ms[0-9.]+ .*[0-9.]+"))
    bars = rf"mean completion time: ecmp · {mine} [0-9.]+ ms.*, ecmp · {other} [0-9.]+ ms"
    expect(both.get_by_role("img", name=re.compile(bars))).to_be_visible()
    curves = both.locator("figure[data-curves='2']")
    expect(curves).to_contain_text(f"ecmp · {mine}")
    expect(curves).to_contain_text(f"ecmp · {other}")


@pytest.mark.parametrize("name", ["form", "sweep", "result", "compared"])
def test_its_pages_are_free_of_what_axe_finds_at_both_sizes(
    page: Page, photograph: Photographer, name: str
) -> None:
    page.goto("/compare")
    if name == "sweep":
        page.get_by_role("link", name=re.compile(r"^\d+: small")).first.click()
    if name == "result":
        page.get_by_role("row").filter(has_text="finished").get_by_role("link").last.click()
    if name == "compared":
        open_compared(page)
        expect(page.locator("figure[data-curves]").first).to_be_visible()
    if name not in ("form", "compared"):
        expect(page).to_have_url(re.compile(r"/compare/\d+$"))
    expect(page.get_by_text(re.compile("^(Asking for|Loading)"))).to_have_count(0)
    expect(page.get_by_role("heading", level=2).first).to_be_visible()
    found = {}
    for appearance in each_appearance(page):
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_function(
            "() => [...document.images].every(one => one.complete && one.naturalWidth > 0)"
        )
        page.evaluate("scrollTo(0, 0)")
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            found[f"{appearance}, {width} px"] = violations(page)
            assert page.evaluate(_TOO_WIDE) == [], f"{appearance}, {width} px"
        photograph(page, f"experiments-{name}-{appearance}")
    assert not any(found.values()), said_by_place(found)
