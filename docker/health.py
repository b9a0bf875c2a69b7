"""Whether a container does its work: `controller` answers, `lab` has a fabric that is whole. Exit code 0 or 1."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

URL = os.environ.get("CAPSTAN_HEALTH_URL", "http://127.0.0.1:8080/api/v1/health")
TOKEN = Path(os.environ.get("CAPSTAN_DATA", "/var/lib/capstan")) / "api-read-token"
"""There is none where the API asks for none."""


def main(who: str) -> None:
    """Check health. Raises OSError while no controller answers."""
    request = urllib.request.Request(URL)
    with suppress(FileNotFoundError):
        request.add_header("Authorization", f"Bearer {TOKEN.read_text().strip()}")
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=3) as answer:
        health = json.load(answer)
    if who == "lab" and not (health["ready"] and health["agents"] and health["switches"]):
        sys.exit(f"the fabric is not whole: {'; '.join(health['reasons']) or 'no agents yet'}")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(f"the controller does not answer: {error}")
