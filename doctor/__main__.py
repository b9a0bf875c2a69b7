"""`./capstan doctor`: run by the system's Python, before anything is installed; by `python -m cli` it is the same."""

from __future__ import annotations

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main() -> None:
    """End with exit code 0 if a lab can be built here, 1 if not, 2 for an option that is not known."""
    if sys.version_info < (3, 11):  # noqa: UP036 - on an older one this file is all that can be read
        version = ".".join(map(str, sys.version_info[:2]))
        sys.exit(
            f"capstan: Python 3.11 or newer is needed, {sys.executable} is {version}: "
            "Debian 12, Ubuntu 24.04 or newer have it"
        )
    from doctor.command import run

    sys.exit(run())


if __name__ == "__main__":
    sys.path[0] = ROOT
    main()
