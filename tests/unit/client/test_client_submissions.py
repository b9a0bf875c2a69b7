"""Submissions by the client: what it sends for them, and how it follows them to their end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from capstan_client.client import Capstan


@pytest.mark.parametrize(
    ("record", "sent"), [(None, None), (False, None), (True, {}), ({"from_ms": 400}, {"from_ms": 400})]
)
def test_a_check_asks_of_what_a_submission_of_the_same_arguments_is(
    record: Mapping[str, float] | bool | None, sent: dict[str, float] | None
) -> None:
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json={"id": 7})

    with Capstan("http://127.0.0.1:9") as capstan:
        capstan._connection._http = httpx.Client(transport=httpx.MockTransport(answer))
        capstan.submit("small", repeats=2, record=record)
        capstan.check("small", repeats=2, record=record)
    wanted = {"preset": "small", "repeats": 2} | ({} if sent is None else {"record": sent})
    assert bodies == [wanted, wanted]
