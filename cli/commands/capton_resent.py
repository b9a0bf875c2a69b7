"""The tables of ``capstan capton --resent``: what TCP has retransmitted under CAPTON, and why."""

from __future__ import annotations

from typing import Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from protocol.sent_again import STATES, TRIGGERS, VERDICTS

MOST_EPISODES: Final = 20


def resent_tables(view: dict[str, Any]) -> Group:
    """Return tables: bytes by cause, what the words mean, and the newest retransmission episodes."""
    if not view["episodes"]:
        return Group(Text("Nothing was retransmitted since the controller's start."))
    return Group(_causes(view), _words(view), _episodes(view))


def _causes(view: dict[str, Any]) -> Table:
    table = Table(title=f"{view['bytes']} B retransmitted, by cause", title_justify="left")
    for name in ("flow was", "trigger", "what became of it first", "B"):
        table.add_column(name, justify="right" if name == "B" else "left")
    for cause in view["by_cause"]:
        table.add_row(cause["state"], cause["trigger"], cause["verdict"], str(cause["bytes"]))
    return table


def _words(view: dict[str, Any]) -> Text:
    lines = []
    for field, words in (("state", STATES), ("trigger", TRIGGERS), ("verdict", VERDICTS)):
        used = {cause[field] for cause in view["by_cause"]}
        lines += [f"{word}: {text}" for word, text in words.items() if word in used]
    return Text("\n".join(lines))


def _episodes(view: dict[str, Any]) -> Table:
    table = Table(title="the newest", title_justify="left")
    numbers = ("s ago", "B", "needless", "queue", "in flight B", "quiet ms", "late ms", "lasted ms")
    for name in ("host", "connection", "flow was", "trigger", *numbers):
        table.add_column(name, justify="right" if name in numbers else "left")
    for episode in view["newest"][:MOST_EPISODES]:
        ends = f"{episode['source']}:{episode['source_port']} to {episode['destination']}:{episode['destination_port']}"
        table.add_row(
            episode["host"],
            ends,
            episode["state"],
            episode["trigger"],
            f"{episode['s_ago']:.1f}",
            str(episode["bytes"]),
            str(episode["needless_bytes"]),
            str(episode["queue_bytes"]),
            str(episode["in_flight_bytes"]),
            f"{1e3 * episode['quiet_s']:.0f}",
            f"{1e3 * episode['late_s']:.0f}",
            f"{1e3 * episode['lasted_s']:.0f}",
        )
    more = view["episodes"] - MOST_EPISODES
    if more > 0:
        table.caption = f"and {more} more"
    return table
