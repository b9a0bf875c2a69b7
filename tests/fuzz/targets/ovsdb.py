"""An OVSDB server's messages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ovsdb.session import OvsdbError, OvsdbSession
from tests.fuzz.target import Target


class Ovsdb(Target):
    """An OVSDB server's side: OvsdbError or tables."""

    samples = tuple(
        json.dumps(one).encode()
        for one in (
            {"id": "monitor", "error": None, "result": {"Port": {"p1": {"new": {"name": "a\"{", "qos": ["set", []]}}}}},
            {"id": None, "method": "update", "params": ["monitor", {"Port": {"p1": {"old": {"name": "a"}}}}]},
            {"id": 1, "error": None, "result": [{"count": 1}, {}]},
            {"id": 2, "error": "constraint violation", "result": []},
            {"id": "x", "method": "echo", "params": []},
            {"id": "monitor", "error": None, "result": {"Port": {"p2": {"new": {"q": ["map", [["a", "1"]]]}}}}},
        )
    )  # fmt: skip

    def run(self, messages: Sequence[bytes]) -> None:
        session = OvsdbSession({"Port": ("name", "qos", "other_config")}, 0.0)
        session.transact([])
        for number, data in enumerate(messages):
            try:
                session.receive(data, float(number))
                session.timer(float(number))
            except OvsdbError:
                return
            session.data_to_send()
