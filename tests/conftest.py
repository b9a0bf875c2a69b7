"""How hypothesis searches (without a look at a clock, for the machine may be busy; anew each time, but the same in CI),
in which order several processes take the tests, and where Python looks for garbage.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from plain.imports import imports_to_keep
from tests.longest_first import longest_first

# Both measure how long examples take: a busy machine would fail what is right.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# What lands must not depend on luck.
settings.register_profile("ci", settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if "CAPSTAN_CI_RUN" in os.environ else "here")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--screenshots",
        action="store_true",
        help="Keep pictures of the pages that tests/e2e opens, in tests/e2e/screenshots.",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have several processes begin with the files that take longest; one process goes by name."""
    if hasattr(config, "workerinput"):
        items[:] = [items[index] for index in longest_first([item.path for item in items])]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while modules load, nor later in them and in the tests, which stay to the end."""
    with imports_to_keep():
        return (yield)
