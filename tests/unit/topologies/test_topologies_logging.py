"""Mininet's import leaves the loggers of others alone, and loads no installer."""

import subprocess
import sys

import pytest

PROGRAM = """
import logging, sys
import topologies.nodes
logger = logging.getLogger("capstan.made-later")
print(type(logger) is logging.Logger, logger.level, logger.handlers)
print("setuptools" in sys.modules)
"""


def seen() -> list[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_logger_that_is_made_after_mininets_import_is_an_ordinary_logger() -> None:
    assert seen()[0] == "True 0 []"


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="setuptools alone has distutils")
def test_mininets_import_loads_no_setuptools() -> None:
    """It takes longer than all else that a lab imports."""
    assert seen()[1] == "False"
