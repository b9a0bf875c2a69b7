"""One page while a demo repeats: the tour, and experiments begun on its fabric and on another, live and afterwards."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.appearances import Photographer
from tests.e2e.begun_on_page import RUN_MS, begin, finished, is_live, played_again
from tests.e2e.browser_network import BrowserNetwork
from tests.e2e.conftest import PATIENCE_MS
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(1200)
ROOT = Path(__file__).resolve().parents[2]
SPINES = 4
"""Of the preset `small`."""
MANY_FLOWS = "5000"
"""They take minutes, for the page says only meanwhile whose run it is; once that is seen they are cancelled."""
FEW_FLOWS = "60"
FEWEST_FLOWS = "12"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the file with what `capstan show small` writes to its error output, while it runs."""
    directory = tmp_path_factory.mktemp("show")
    log = directory / "errors"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [ROOT / "capstan", "show", "small", "--results", directory / "results"],
            stdout=subprocess.DEVNULL,
            stderr=errors,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    yield log
    process.send_signal(signal.SIGINT)
    assert process.wait(120) == 130, log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def page(said: Path, browser: Browser, network: BrowserNetwork) -> Iterator[Page]:
    url = eventually(
        lambda: re.search(r"^page (\S+)/watch ", said.read_text(), re.MULTILINE), said.read_text, 120
    )[1]
    network.let_through(int(url.rpartition(":")[2]))
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=url)
    context.set_default_timeout(PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def ours() -> list[int]:
    """Return a list, empty at first, for the numbers of the experiments that are begun here."""
    return []


def cancel(page: Page) -> None:
    """Cancel the experiment whose page is open."""
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-state=cancelled]")).to_be_visible(timeout=RUN_MS)


def goes_on_after(said: Path, words: str) -> bool:
    """Return whether a round of the demo, with its three runs, has begun since *words*."""
    return "run 1 of 3" in said.read_text().partition(words)[2]


def spines_seen(page: Page, number: int) -> None:
    expect(page.locator("[data-switch^=s]")).to_have_count(number, timeout=RUN_MS)


def test_the_page_opens_on_the_tour(page: Page) -> None:
    page.goto("/")
    expect(page).to_have_url(re.compile(r"/tour$"))
    expect(page.get_by_role("heading", name=re.compile("1 of 6"))).to_be_visible()


def test_an_experiment_runs_on_the_demos_own_fabric_is_watched_and_played_again(
    page: Page, ours: list[int], photograph: Photographer
) -> None:
    ours.append(number := begin(page, {"workload.flows.count": MANY_FLOWS}))
    expect(page.get_by_text(re.compile("run 1 of 1"))).to_be_visible(timeout=RUN_MS)
    is_live(page)
    expect(page.get_by_test_id("class-short").locator("li").first).to_be_visible()
    spines_seen(page, SPINES)
    page.goto("/watch")
    expect(page.get_by_text(f"This is the run of experiment {number}")).to_be_visible()
    page.goto(f"/compare/{number}")
    cancel(page)
    ours.append(number := begin(page, {"workload.flows.count": FEW_FLOWS}, record=True))
    finished(page)
    photograph.keep(page, "recorded-run")
    played_again(page, number)
    photograph.keep(page, "recorded-run-played")


def test_a_step_of_the_tour_runs_live_on_that_fabric(page: Page) -> None:
    page.goto("/tour?step=1")
    page.get_by_role("button", name="Run ECMP live on switches").click()
    expect(page.get_by_role("heading", name="1 of 6")).to_be_focused()
    expect(page).to_have_url(re.compile(r"/tour\?step=1&live=\d+$"))
    is_live(page)
    spines_seen(page, SPINES)
    page.keyboard.press("ArrowRight")  # the steps stay, and the run beside them
    expect(page.get_by_role("heading", name="2 of 6")).to_be_visible()
    spines_seen(page, SPINES)
    page.get_by_role("link", name=re.compile(r"experiment \d+$")).last.click()
    expect(page).to_have_url(re.compile(r"/compare/\d+$"))
    finished(page)


def test_one_that_needs_another_fabric_is_watched_on_it_and_the_demo_goes_on(
    page: Page, ours: list[int], said: Path
) -> None:
    ours.append(number := begin(page, {"workload.flows.count": MANY_FLOWS, "fabric.spines": "2"}))
    expect(page.get_by_text(re.compile("run 1 of 1"))).to_be_visible(timeout=RUN_MS)
    page.goto("/watch")
    spines_seen(page, 2)
    expect(page.get_by_text(f"This is the run of experiment {number}")).to_be_visible()
    page.goto(f"/compare/{number}")
    cancel(page)
    ours.append(number := begin(page, {"workload.flows.count": FEWEST_FLOWS, "fabric.spines": "2"}))
    finished(page)
    page.goto("/watch")
    spines_seen(page, SPINES)
    ended = f"experiment {number} (small) has finished"
    eventually(lambda: goes_on_after(said, ended), said.read_text, 120)


def test_what_gave_way_is_listed_as_cancelled(page: Page, ours: list[int]) -> None:
    page.goto("/compare")
    begun_here = re.compile(rf"\b({'|'.join(map(str, ours))}): ")
    row = page.get_by_role("row").filter(has_text="cancelled", has_not_text=begun_here).first
    expect(row).to_contain_text("small")


def test_one_that_is_cancelled_gives_the_fabric_back(page: Page, ours: list[int], said: Path) -> None:
    ours.append(number := begin(page, {"workload.flows.count": MANY_FLOWS}))
    expect(page.get_by_text(re.compile("run 1 of 1"))).to_be_visible(timeout=RUN_MS)
    cancel(page)
    stopped = f"experiment {number} (small) was stopped"
    eventually(lambda: goes_on_after(said, stopped), said.read_text, 120)
