"""The replay of a recording in a real browser: played, stepped, linked to, and free of what axe finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Page, expect

from cli.app import capstan
from tests.e2e.appearances import Photographer, each_appearance, said_by_place, violations

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("replay")
    window = ["--trace-from", "700", "--trace-for", "100"]
    done = CliRunner().invoke(
        capstan,
        [
            "simulate",
            "small",
            "--scheme",
            "caps",
            "--results",
            str(place),
            "--trace",
            str(place / "caps.trace"),
            *window,
        ],
    )
    assert done.exit_code == 0, done.output
    return place / "caps.trace"


def test_a_recording_is_played_stepped_and_linked_to(page: Page, recording: Path) -> None:
    page.goto("/watch/replay?at=750")
    expect(page.get_by_text("The link is to 750 ms of the run")).to_be_visible()
    page.locator("input[type=file]").set_input_files(recording)
    clock = page.locator("output")
    expect(clock).to_have_text("750.0000 ms")
    expect(page.get_by_role("img", name=re.compile("packets? on links"))).to_be_visible()
    page.keyboard.press(".")
    expect(clock).not_to_have_text("750.0000 ms")
    stepped = clock.inner_text().removesuffix(" ms")
    expect(page).to_have_url(re.compile(rf"at={re.escape(stepped[:-2])}"))
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(clock).not_to_have_text(f"{stepped} ms")
    page.get_by_role("button", name="Pause").click()


def test_a_file_that_is_opened_takes_the_place_of_a_run_in_the_address(page: Page, recording: Path) -> None:
    page.goto("/watch/replay?experiment=999&scheme=caps&from=5&at=6")
    expect(page.get_by_role("alert")).to_be_visible()
    page.locator("input[type=file]").set_input_files(recording)
    expect(page.locator("output")).to_have_text("700.0000 ms")
    expect(page).not_to_have_url(re.compile("experiment=|scheme=|from="))


def test_a_file_that_is_none_is_refused_in_words(page: Page, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("no recording")
    page.goto("/watch/replay")
    page.locator("input[type=file]").set_input_files(tmp_path / "other")
    expect(page.get_by_role("alert")).to_contain_text("it is not gzip")


def test_the_replay_is_free_of_what_axe_finds(page: Page, recording: Path, photograph: Photographer) -> None:
    page.goto("/watch/replay?at=760")
    page.locator("input[type=file]").set_input_files(recording)
    expect(page.locator("output")).to_have_text("760.0000 ms")
    found = {}
    for appearance in each_appearance(page):
        photograph(page, f"replay-{appearance}")
        found[appearance] = violations(page)
    assert not any(found.values()), said_by_place(found)
