"""A Chromium whose main thread is measured by the kernel: processor time, not time between its own clock readings."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.figures import ToolError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
SIZE: Final = {"width": 1920, "height": 1080}
_FRAMES: Final = """async ({milliseconds}) => {
  const gaps = [];
  let last = await new Promise(requestAnimationFrame);
  const until = last + milliseconds;
  while (last < until) {
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  return gaps;
}"""


class BrowserError(ToolError):
    """There is no Chromium, or nothing that steers it; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A browser with one page. (Of its processes that draw pages others may wait in reserve: they do nothing.)"""

    page: Page
    browser: Browser

    def main_thread_s(self) -> float:
        """Return the processor time of the page's main thread, in seconds: what matters is how much it grows."""
        return sum(_seconds(f"/proc/{process}/task/{process}/stat") for process in self._drawing())

    def processes_s(self) -> float:
        """Return the same of all threads of the page's process."""
        return sum(_seconds(f"/proc/{process}/stat") for process in self._drawing())

    def _drawing(self) -> list[int]:
        answer: dict[str, Any] = self.browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
        renderers = [int(process["id"]) for process in answer["processInfo"] if process["type"] == "renderer"]
        if not renderers:
            raise BrowserError("Chromium names no process that draws pages")
        return renderers

    def frame_times_ms(self, seconds: float) -> list[float]:
        """Return milliseconds from each frame to the next."""
        times: list[float] = self.page.evaluate(_FRAMES, {"milliseconds": seconds * 1e3})
        # Timestamps have tenths of a millisecond; a difference of two floats may be 33.400000000000546 ms.
        return [round(time, 1) for time in times]


@contextmanager
def chromium(url: str) -> Iterator[Watched]:
    """Open a window of SIZE at *url*, headless.

    Raises:
        BrowserError: no Chromium, or no Playwright.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise BrowserError("Playwright is missing: `./capstan test tests/e2e` installs it") from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        page = browser.new_context(viewport=SIZE, base_url=url).new_page()  # type: ignore[arg-type]
        page.goto("/")
        yield Watched(page, browser)
        browser.close()


def program() -> str:
    """Return path of Chromium. Raises BrowserError."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise BrowserError("no Chromium here: `./capstan test tests/e2e` installs it")
    return path


def _seconds(stat: str) -> float:
    with open(stat, encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
