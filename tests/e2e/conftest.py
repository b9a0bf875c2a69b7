"""A lab with traffic, and a browser that looks at it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from experiments.run.deployment import Deployment
from experiments.spec.spec import spec_from_dict
from tests.e2e.appearances import SCREENSHOTS, Photographer
from tests.e2e.browser_network import BrowserNetwork, browser_network
from tests.e2e.live_traffic import LONG, SHORT, SINK
from tests.lab.conftest import nothing_left  # noqa: F401

PORT = 7000
PATIENCE_MS = 180_000
MAY_BE_REFUSED = (
    "status of 401", "/figures/by-size.svg", "/runs/current/", "/experiments/5", "/experiments/999/",
    "ERR_FAILED",
)  # fmt: skip
"""The first question where the controller wants a token; a figure that a few flows are not enough for; a run
that has just ended; experiments that an old address names and that are not there; what a test itself intercepts."""
SPINES, LEAVES, HOSTS = 4, 2, 2
SPEC = {
    "name": "dashboard",
    "title": "A fabric to look at",
    "fabric": {
        "leaves": LEAVES,
        "spines": SPINES,
        "hosts_per_leaf": HOSTS,
        "link": {"rate_mbps": 2.5, "buffer_packets": 256},
        "access": {"rate_mbps": 7.5, "buffer_packets": 256},
    },
    "schemes": ["caps"],
    "workload": {
        "flows": {
            "count": 1,
            "sizes": {"kind": "fixed", "bytes": 1000},
            "arrivals": {"kind": "poisson", "rate_per_s": 1},
            "pattern": "left-to-right",
        }
    },
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Deployment]:
    """Yield a lab under CAPS: h2 sends short flows to h4 all the time, then h1 one long flow to h3."""
    with Deployment(spec_from_dict(SPEC)) as made:
        for host in ("h3", "h4"):
            sink = start(made, host, SINK, PORT)
            assert sink.stdout is not None
            assert "listening" in sink.stdout.readline()
        start(made, "h2", SHORT, address(made, "h4"), PORT)
        start(made, "h1", LONG, address(made, "h3"), PORT)
        yield made


def start(lab: Deployment, host: str, program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-S", "-c", program, *map(str, arguments)]
    return lab.lab.popen(host, command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def address(lab: Deployment, host: str) -> str:
    """Return the overlay address of *host*."""
    hosts = lab.client.fabric()["hosts"]
    found: str = next(one["overlay"][0] for one in hosts if one["name"] == host)
    return found


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserNetwork]:
    with browser_network(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture(scope="module")
def browser(network: BrowserNetwork) -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    assert chromium is not None, "no chromium here: ./capstan test installs it (setup/packages)"
    with sync_playwright() as playwright:
        # Tests are root, for their labs, and Chromium's own sandbox does not work as root.
        browser = playwright.chromium.launch(executable_path=network.program(chromium), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(lab: Deployment, browser: Browser, network: BrowserNetwork) -> Iterator[Page]:
    """Yield the dashboard in a window of a small projector's size; errors on its console fail the test that ends."""
    assert (Path(__file__).parents[2] / "webui" / "dist" / "index.html").exists(), (
        "./capstan test builds the page"
    )
    network.let_through(int(lab.client.url.rpartition(":")[2]))
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=lab.client.url)
    context.set_default_timeout(PATIENCE_MS)
    context.set_default_navigation_timeout(2 * PATIENCE_MS)
    expect.set_options(timeout=PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def photograph(pytestconfig: pytest.Config) -> Photographer:
    return Photographer(SCREENSHOTS if pytestconfig.getoption("screenshots") else None)


@pytest.fixture(autouse=True)
def no_errors_on_the_console(page: Page) -> Iterator[None]:
    """Fail the test if a view logs an error, but for what may be refused."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on(
        "console",
        lambda said: errors.append(f"{said.text} {said.location['url']}") if said.type == "error" else None,
    )
    yield
    unexpected = [one for one in errors if not any(known in one for known in MAY_BE_REFUSED)]
    assert not unexpected, json.dumps(unexpected, indent=1)
