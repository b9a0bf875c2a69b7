"""The tour in a real browser, from a controller without a fabric: six steps by keys, and free of what axe finds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.appearances import SIZES, Photographer, each_appearance, said_by_place, violations
from tests.e2e.browser_network import BrowserNetwork
from tests.e2e.conftest import PATIENCE_MS

pytestmark = pytest.mark.timeout(1200)
ROOT = Path(__file__).resolve().parents[2]
OVERFULL = "[...document.querySelectorAll('main section')].filter(each => each.scrollWidth > each.clientWidth).length"
"""How many panels have something in them that is wider."""
ROWS_OF = """
(selector => {
    const places = [...document.querySelectorAll(selector)].map(each => each.getBoundingClientRect());
    return 1 + places.filter(place => place.top > places[0].bottom).length;
})"""
ROWS_OF_HEADER = f"{ROWS_OF}('header > div:first-child > *')"
ROWS_OF_STEPS = f"{ROWS_OF}('nav[aria-label=Steps] a')"
"""How many rows they take: 1, and one more for each that is below the first."""
TITLES = (
    "ECMP collides",
    "Spraying reorders",
    "Coding repairs",
    "Long flows step aside",
    "What it costs",
    "Your turn",
)


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the API's address of a controller that no switch has called."""
    data = tmp_path_factory.mktemp("tour") / "data"
    words = ["serve", "--data", str(data), "--openflow", "127.0.0.1:0", "--api", "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "cli", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        address: str = json.loads((data / "endpoints.json").read_text())["api"]
        yield address
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def page(controller: str, browser: Browser, network: BrowserNetwork) -> Iterator[Page]:
    network.let_through(int(controller.rpartition(":")[2]))
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=controller)
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    yield context.new_page()
    context.close()


def heading(page: Page, number: int) -> None:
    """Wait until a step is there."""
    expect(page.get_by_role("heading", name=f"{number} of 6: {TITLES[number - 1]}")).to_be_visible()


def test_six_steps_by_arrow_keys(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_role("link", name="Tour", exact=True)).to_be_visible()  # keys have effect from then on
    page.keyboard.press("t")
    for number in range(1, 7):
        heading(page, number)
        expect(page.get_by_role("img", name=re.compile("packets? on links"))).to_be_visible()
        page.keyboard.press("ArrowRight")
    heading(page, 6)  # the last step stays
    expect(page).to_have_url(re.compile(r"/tour\?step=6$"))
    page.keyboard.press("ArrowLeft")
    heading(page, 5)
    page.reload()
    heading(page, 5)


def test_arrow_keys_change_a_choice_that_has_the_focus(page: Page) -> None:
    page.goto("/tour?step=6")
    heading(page, 6)
    recordings = page.get_by_role("radiogroup", name="Recording").get_by_role("radio")
    recordings.nth(1).focus()
    page.keyboard.press("ArrowLeft")
    expect(recordings.nth(0)).to_be_checked()
    heading(page, 6)


def test_a_step_plays_and_pauses(page: Page) -> None:
    page.goto("/tour?step=4")
    heading(page, 4)
    clock = page.locator("output")
    first = clock.inner_text()
    expect(clock).not_to_have_text(first)
    page.keyboard.press("k")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    paused = clock.inner_text()
    page.get_by_role("button", name="Play").click()
    expect(clock).not_to_have_text(paused)


def test_what_was_counted_is_what_the_step_says(page: Page) -> None:
    page.goto("/tour?step=1")
    heading(page, 1)
    cells = page.get_by_role("row", name=re.compile("long flows' data by")).get_by_role("cell")
    expect(cells).to_have_count(4)
    assert sum(text.strip() == "0 B" for text in cells.all_inner_texts()) == 3


@pytest.mark.parametrize("number", range(1, 7))
def test_every_step_is_free_of_what_axe_finds(page: Page, photograph: Photographer, number: int) -> None:
    page.emulate_media(reduced_motion="reduce")  # steps show the moment that they speak of
    page.goto(f"/tour?step={number}")
    heading(page, number)
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    found = {}
    for appearance in each_appearance(page):
        for width, height in reversed(SIZES):
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate(OVERFULL) == 0
            assert page.evaluate(ROWS_OF_HEADER) == 1
            assert page.evaluate(ROWS_OF_STEPS) == 1
        photograph(page, f"tour-{number}-{appearance}")
        found[appearance] = violations(page)
    assert not any(found.values()), said_by_place(found)
    page.emulate_media(reduced_motion="no-preference")


def test_the_header_has_room_for_the_fabric_and_log_out_in_every_window(page: Page) -> None:
    session = {"role": "operate", "until": time.time() + 3600}
    page.route("**/api/v1/session", lambda route: route.fulfill(json=session))
    page.goto("/tour")
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    fabric = page.get_by_text("no fabric", exact=True)
    expect(fabric).to_be_visible()
    for appearance in each_appearance(page):
        for width in (1000, 1100, 1200, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (appearance, width)
            assert fabric.evaluate("each => each.scrollWidth <= each.clientWidth"), (appearance, width)
    page.unroute("**/api/v1/session")
