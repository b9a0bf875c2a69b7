"""Submissions by the client: what it sends for them, and how it follows them to their end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from capstan_client.client import Capstan
from capstan_client.errors import ControllerError
from controller.api.exporting import DRAW_S, MOST_WAITING

RUNNING = {
    "state": "running",
    "stage": "",
    "runs_done": 1,
    "runs": 2,
    "points_done": 0,
    "points": 0,
    "flows_finished": 0,
    "flows_failed": 0,
    "flows": 0,
    "elapsed_s": 1.0,
    "left_s": 1.0,
    "queue_position": None,
}


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


def test_what_follows_an_experiment_asks_where_its_end_may_have_been_lost() -> None:
    """A slow reader gets `gap` in place of the oldest events, `experiment-ended` perhaps among them."""
    left = [RUNNING, RUNNING | {"state": "finished", "left_s": None}]
    streams: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/progress"):
            return httpx.Response(200, json=left.pop(0))
        streams.append(request.url.path)
        return httpx.Response(200, content=b'event: hello\ndata: {}\n\nevent: gap\ndata: {"lost": 3}\n\n')

    with Capstan("http://127.0.0.1:9") as capstan:
        capstan._connection._http = httpx.Client(transport=httpx.MockTransport(answer))
        states = [now.state for now in capstan.experiment(7).follow()]
    assert states == ["running", "finished"]
    assert len(streams) == 1, "not only when the stream begins again"


@pytest.mark.parametrize(
    ("statuses", "ends"), [([503, 502], "finished"), ([503] * 400, "no room"), ([404], "no room")]
)
def test_what_follows_an_experiment_asks_again_where_there_is_no_answer_just_now(
    monkeypatch: pytest.MonkeyPatch, statuses: list[int], ends: str
) -> None:
    """It ended with an error by one 503, which the stream itself waits for the end of."""
    monkeypatch.setattr("capstan_client.http.AGAIN_S", 0.005)
    monkeypatch.setattr("capstan_client.http.SILENCE_S", 1.0)
    left = list(statuses)

    def answer(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/progress"):
            return httpx.Response(200, content=b"event: hello\ndata: {}\n\n")
        if left:
            return httpx.Response(left.pop(0), json={"detail": "no room"})
        return httpx.Response(200, json=RUNNING | {"state": "finished", "left_s": None})

    with Capstan("http://127.0.0.1:9") as capstan:
        capstan._connection._http = httpx.Client(transport=httpx.MockTransport(answer))
        following = capstan.experiment(7).follow()
        if ends == "finished":
            assert [now.state for now in following] == [ends]
        else:
            with pytest.raises(ControllerError, match=ends):
                next(following)
            assert left or statuses == [404], "not for ever"


def test_what_the_controller_does_aside_has_time() -> None:
    """Else a submission is not answered that is taken all the same, once it has been tried out."""
    waits: dict[str, float] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        waits[request.url.path.rpartition("/")[2]] = request.extensions["timeout"]["read"]
        return httpx.Response(200, json={"id": 7})

    with Capstan("http://127.0.0.1:9") as capstan:
        capstan._connection._http = httpx.Client(transport=httpx.MockTransport(answer))
        capstan.check("small", kind="simulation")
        capstan.submit("small", kind="simulation").recording("caps")
        capstan.health()
    assert waits.pop("health") == 30.0
    assert waits.keys() == {"check", "experiments", "recording"}
    assert min(waits.values()) > MOST_WAITING * DRAW_S
