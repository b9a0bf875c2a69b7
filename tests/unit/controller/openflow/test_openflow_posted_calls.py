"""Calls into the OpenFlow thread that it does not get to in time."""

from __future__ import annotations

import pytest

from controller.openflow.posted_calls import PostedCalls


def test_what_is_to_be_in_time_is_not_done_late() -> None:
    posted = PostedCalls(lambda result: None)
    done: list[str] = []
    with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
        posted.call(lambda: done.append("in time"), 0.05, in_time=True)
    with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
        posted.call(lambda: done.append("at some time"), 0.05)
    for work in posted.pending():
        work()
    assert done == ["at some time"]
