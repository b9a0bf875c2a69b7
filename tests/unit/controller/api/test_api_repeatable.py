"""A repeated request gets the response that it had; a client that gets none says why in plain words."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from capstan_client.controller import ControllerClient
from capstan_client.errors import ControllerError
from controller.api.repeatable import Repeatable
from tests.unit.api_world import api_world, obedient_agent
from tests.waiting import PATIENCE_S, eventually


def test_the_same_request_has_one_response_and_old_responses_go() -> None:
    numbers, responses = count(), Repeatable[int](most=2)

    def work() -> int:
        return next(numbers)

    assert [responses.respond(number, work) for number in (7, 7, 8, 7, 9)] == [0, 0, 1, 0, 2]
    assert responses.respond(7, work) == 3, "two other requests came since"
    assert responses.respond(None, work) != responses.respond(None, work)


def test_a_duplicate_waits_for_the_response_to_the_first_request() -> None:
    responses, go_on, asked = Repeatable[int](), threading.Event(), []

    def work() -> int:
        asked.append(1)
        assert go_on.wait(PATIENCE_S)
        return 5

    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(responses.respond, 1, work) for _ in range(4)]
        eventually(lambda: bool(asked), "one is at work")
        go_on.set()
        assert [one.result(PATIENCE_S) for one in answers] == [5] * 4
    assert asked == [1]


def test_what_failed_is_no_response() -> None:
    responses = Repeatable[int]()

    def fail() -> int:
        raise KeyError("h9")

    with pytest.raises(KeyError):
        responses.respond(1, fail)
    assert responses.respond(1, lambda: 4) == 4


def test_a_report_that_is_asked_for_again_is_the_same_report(tmp_path: Path) -> None:
    with api_world(tmp_path) as world:
        body = {"forget": True, "question": 4711}
        first = world.ask("POST", "/flows/report", json=body)
        assert first["hosts"] == {}
        with obedient_agent(world):
            assert world.ask("POST", "/flows/report", json=body) == first
            assert (
                len(world.ask("POST", "/flows/report", json={**body, "question": 4712})["hosts"]["h1"]) == 1
            )
        problem = world.ask("POST", "/flows/report", 422, json={"question": -1})
        assert problem["field"] == "body.question"


def test_a_controller_that_does_not_answer_is_reported_in_words_of_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert "nothing came within 0.2 s" in _error(url, 0.2), "no server accepts"
        server.accept()[0].close()
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        assert "connection" in _error(url)
    assert "connection refused" in _error(url)
    assert "no machine of that name is known" in _error("http://nowhere.invalid:1")
    assert "such as http://192.0.2.1:8080" in _error("192.0.2.1")


def _error(url: str, timeout_s: float = PATIENCE_S) -> str:
    with ControllerClient(url) as client, pytest.raises(ControllerError) as raised:
        client.health(timeout_s=timeout_s)
    text = str(raised.value)
    assert url in text
    assert not [
        word for word in ("urllib3", "HTTPConnection", "Caused by", "Max retries", "'", "(") if word in text
    ]
    return text
