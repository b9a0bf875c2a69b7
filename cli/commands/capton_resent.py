"""The tables of ``capstan capton --resent``: what TCP has sent again under CAPTON, and why."""

from __future__ import annotations

from typing import Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from protocol.sent_again import STATES, TRIGGERS, VERDICTS

MOST_STORIES: Final = 20


def resent_tables(view: dict[str, Any]) -> Group:
    """Bytes by cause, what the words mean, and the newest stories."""
    if not view["told"]:
        return Group(Text("Nothing was sent again since the controller's start."))
    return Group(_causes(view), _words(view), _stories(view))


def _causes(view: dict[str, Any]) -> Table:
    table = Table(title=f"{view['bytes']} B sent again, by cause", title_justify="left")
    for name in ("flow was", "trigger", "what became of it first", "B"):
        table.add_column(name, justify="right" if name == "B" else "left")
    for one in view["by_cause"]:
        table.add_row(one["state"], one["trigger"], one["verdict"], str(one["bytes"]))
    return table


def _words(view: dict[str, Any]) -> Text:
    lines = []
    for field, words in (("state", STATES), ("trigger", TRIGGERS), ("verdict", VERDICTS)):
        used = {one[field] for one in view["by_cause"]}
        lines += [f"{word}: {text}" for word, text in words.items() if word in used]
    return Text("\n".join(lines))


def _stories(view: dict[str, Any]) -> Table:
    table = Table(title="the newest", title_justify="left")
    numbers = ("s ago", "B", "needless", "queue", "in flight B", "quiet ms", "late ms", "lasted ms")
    for name in ("host", "connection", "flow was", "trigger", *numbers):
        table.add_column(name, justify="right" if name in numbers else "left")
    for one in view["newest"][:MOST_STORIES]:
        ends = f"{one['source']}:{one['source_port']} to {one['destination']}:{one['destination_port']}"
        table.add_row(
            one["host"],
            ends,
            one["state"],
            one["trigger"],
            f"{one['s_ago']:.1f}",
            str(one["bytes"]),
            str(one["needless_bytes"]),
            str(one["queue_bytes"]),
            str(one["in_flight_bytes"]),
            f"{1e3 * one['quiet_s']:.0f}",
            f"{1e3 * one['late_s']:.0f}",
            f"{1e3 * one['lasted_s']:.0f}",
        )
    more = view["told"] - MOST_STORIES
    if more > 0:
        table.caption = f"and {more} more"
    return table
