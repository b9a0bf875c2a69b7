"""A stream of events as the client reads it: whatever text is in it, and however it is cut into pieces."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capstan_client.controller import ControllerClient
from capstan_client.errors import ControllerError
from capstan_client.http import Connection, lines_of, parse_events
from controller.live.topics import frame

texts = st.text(
    st.characters(codec="utf-8") | st.sampled_from("\u2028\u2029\x85\x0b\x0c\x1c\r\n"), max_size=20
)


@given(st.lists(st.dictionaries(texts, texts, max_size=3), max_size=4), st.data())
def test_events_arrive_as_they_were_sent(events: list[dict[str, Any]], data: st.DataObject) -> None:
    frames = [frame("fabric", event | {"kind": "x"}, str(number)) for number, event in enumerate(events)]
    sent = b"".join(frames).decode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(sent)))))
    pieces = [sent[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    read = list(parse_events(lines_of(iter(pieces))))
    assert [event for _, event in read] == [{"topic": "fabric", **event, "kind": "x"} for event in events]


class Logged(ControllerClient):
    """A controller that has logged so many events."""

    def __init__(self, number: int) -> None:
        super().__init__("http://127.0.0.1:9")
        self.asked = 0
        self._number = number

    def _ask(self, method: str, path: str, *_: Any, query: Any = None, **__: Any) -> dict[str, Any]:
        self.asked += 1
        assert (method, path) == ("GET", "/events")
        last = min(self._number, query["since"] + query["limit"])
        events = [{"cursor": cursor} for cursor in range(query["since"] + 1, last + 1)]
        return {"events": events, "cursor": last}


@pytest.mark.parametrize(("number", "asked"), [(3, 1), (9_999, 1), (10_000, 2), (20_000, 3), (20_001, 3)])
def test_all_events_are_more_than_a_page(number: int, asked: int) -> None:
    with Logged(number) as client:
        assert [event["cursor"] for event in client.all_events(2)] == list(range(3, number + 1))
    assert client.asked <= asked


@pytest.mark.parametrize(
    ("statuses", "ends"), [([502, 503], "hello"), ([503] * 40, "no room"), ([404], "no room")]
)
def test_a_stream_comes_again_where_a_proxy_waits_for_its_controller(
    monkeypatch: pytest.MonkeyPatch, statuses: list[int], ends: str
) -> None:
    monkeypatch.setattr("capstan_client.http.AGAIN_S", 0.005)
    monkeypatch.setattr("capstan_client.http.SILENCE_S", 0.1)
    left = list(statuses)

    def answer(request: httpx.Request) -> httpx.Response:
        if left:
            return httpx.Response(left.pop(0), json={"detail": "no room"})
        return httpx.Response(200, content=b"event: hello\ndata: {}\n\n")

    connection = Connection("http://127.0.0.1:9", None, 1.0)
    connection._http = httpx.Client(transport=httpx.MockTransport(answer))
    if ends == "hello":
        assert next(connection.events("experiments"))["topic"] == "hello"
    else:
        with pytest.raises(ControllerError, match=ends):
            next(connection.events("experiments"))
        assert len(statuses) - len(left) in (1, 21), "at once, or after 20 more"
