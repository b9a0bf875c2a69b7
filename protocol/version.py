"""Capstan's version: of the command line, the controller, host agents and the page.

Files that cannot import it (pyproject.toml, images, the client's package) repeat it; a test holds them to this one.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.2.0"
