"""How a page looks: in which appearances and sizes, whether all of it fits, and what axe finds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from playwright.sync_api import Page

HERE: Final = Path(__file__).parent
SCREENSHOTS: Final = HERE / "screenshots"
AXE: Final = HERE.parents[1] / "webui" / "node_modules" / "axe-core" / "axe.min.js"
APPEARANCES: Final = ("light", "dark", "projector")
SIZES: Final = ((1280, 800), (1920, 1080))
"""Of the window, px: a small projector's, and a desk's."""


_SHOWN: Final = """name => document.documentElement.dataset.appearance === name &&
  document.getAnimations().every(animation => !(animation instanceof CSSTransition))"""
"""Colours fade from one appearance into the next."""
_CHARTS_IN_OTHER_COLOURS: Final = """() => {
  const rule = getComputedStyle(document.documentElement).getPropertyValue("--rule").trim();
  const channels = [1, 3, 5].map(at => parseInt(rule.slice(at, at + 2), 16));
  return [...document.querySelectorAll(".uplot")].filter(chart => {
    const canvas = chart.querySelector("canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let pixels = 0;
    for (let at = 0; at < data.length; at += 4) pixels += channels.every((value, of) => data[at + of] === value);
    return pixels < 100;
  }).map(chart => chart.closest("figure").textContent);
}"""
"""Each appearance has its own colour for the lines behind a chart."""


class Photographer:
    """Keeps pictures of pages in a directory, if there is one."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def __call__(self, page: Page, name: str) -> None:
        """Hold that nothing is wider than the window, at each of its sizes, with a picture of each."""
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
                f"{name} at {width} px"
            )
            self.keep(page, f"{name}-{width}")

    def keep(self, page: Page, name: str) -> None:
        """Keep a picture of all of the page as it is."""
        if self._directory is not None:
            self._directory.mkdir(exist_ok=True)
            page.screenshot(path=self._directory / f"{name}.png", full_page=True)


def each_appearance(page: Page) -> Iterator[str]:
    """Show the page that is open in each appearance in turn, hold that its charts have changed, too, and yield that."""
    for appearance in APPEARANCES:
        page.get_by_role("radiogroup", name="Appearance").get_by_text(appearance.capitalize()).click()
        page.wait_for_function(_SHOWN, arg=appearance)
        assert page.evaluate(_CHARTS_IN_OTHER_COLOURS) == [], appearance
        yield appearance


def violations(page: Page) -> list[dict[str, str]]:
    """Return what axe finds: rule, what it asks for, and the first element that breaks it."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(done => done.violations)")
    return [
        {"rule": rule["id"], "help": rule["help"], "first": rule["nodes"][0]["html"][:200]} for rule in found
    ]


def said_by_place(found: dict[str, list[dict[str, str]]]) -> str:
    """Return violations by the place where they are, for a failed test's message."""
    return json.dumps({place: rules for place, rules in found.items() if rules}, indent=1)
