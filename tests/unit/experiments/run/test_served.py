"""A controller that runs already, as its data directory says: what a lab can use, and what is said of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.run.served import NotServedError, ServedController

OPENFLOW = {"address": "0.0.0.0", "port": 6653, "tls": False}
AGENTS = {"socket": "/run/agents.sock", "tcp": None}


@pytest.mark.parametrize(
    ("endpoints", "said"),
    [
        (
            {"openflow": None, "agents": AGENTS},
            "serves the page alone, without switches: start `capstan serve",
        ),
        (
            {"openflow": OPENFLOW | {"address": "127.0.0.1"}, "agents": AGENTS},
            "start it with --openflow 0.0.0.0",
        ),
        ({"openflow": OPENFLOW | {"tls": True}, "agents": AGENTS}, "with --openflow-without-tls"),
        ({"openflow": OPENFLOW, "agents": AGENTS | {"socket": None}}, "start it with --agents-socket PATH"),
    ],
)
def test_a_controller_that_no_lab_can_use_says_why(
    tmp_path: Path, endpoints: dict[str, Any], said: str
) -> None:
    (tmp_path / "endpoints.json").write_text(json.dumps(endpoints | {"api": "http://127.0.0.1:8080"}))
    with pytest.raises(NotServedError, match=said):
        ServedController.find(tmp_path)
