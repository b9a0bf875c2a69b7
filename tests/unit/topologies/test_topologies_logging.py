"""Mininet's import leaves the loggers of others alone."""

import subprocess
import sys

PROGRAM = """
import logging
import topologies.nodes
logger = logging.getLogger("capstan.made-later")
print(type(logger) is logging.Logger, logger.level, logger.handlers)
"""


def test_a_logger_that_is_made_after_mininets_import_is_an_ordinary_logger() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "True 0 []\n"
