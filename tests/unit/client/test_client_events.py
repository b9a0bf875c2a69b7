"""A stream of events as the client reads it: whatever text is in it, and however it is cut into pieces."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from capstan_client.http import lines_of, parse_events
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
