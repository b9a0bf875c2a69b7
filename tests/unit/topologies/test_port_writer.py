"""The thread that gives ports their queues goes on, whatever fails meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ovsdb.port_queues import Applied, PortQueues
from ovsdb.session import Tables
from tests.waiting import eventually
from topologies.port_trees import PortTrees
from topologies.port_writer import PortWriter

NO_ROWS: Tables = {"Open_vSwitch": {}, "Port": {}, "QoS": {}}


class Trees:
    """Counts what it is asked; *fails*: no process can be made."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = False

    def set_queues(self, wanted: Mapping[str, PortQueues], check: bool = False) -> dict[str, Applied]:
        self.asked += 1
        if self.fails:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return {}


def test_a_link_that_changes_while_no_process_can_be_made_does_not_end_it() -> None:
    trees = Trees()
    writer = PortWriter(cast(PortTrees, trees), {})
    writer.start()
    try:
        writer._watcher.post(lambda: writer._on_tables("l1", NO_ROWS))
        eventually(lambda: trees.asked == 1)
        for fails in (True, False):
            trees.fails = fails
            before = trees.asked
            writer.reshaped("l1")
            eventually(lambda before=before: trees.asked == before + 1, "its thread looks at the ports")
    finally:
        writer.stop()
