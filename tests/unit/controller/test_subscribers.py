"""Subscriptions: what each callback gets, and in which order."""

from __future__ import annotations

import pytest

from controller.subscribers import Subscribers


def test_no_subscriber_replaces_another() -> None:
    event, called = Subscribers[[str, int]](), []
    event.notify("before", 0)
    event.subscribe(lambda name, number: called.append(("first", name, number)))
    event.subscribe(lambda name, number: called.append(("second", name, number)))
    event.notify("link", 3)
    assert called == [("first", "link", 3), ("second", "link", 3)]


def test_what_a_callback_raises_reaches_the_notifier() -> None:
    event = Subscribers[[int]]()
    event.subscribe(lambda number: [][number])
    with pytest.raises(IndexError):
        event.notify(1)
