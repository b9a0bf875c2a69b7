"""Round robin per flowcell of 64 KB over named paths: Presto.

K. He, E. Rozner, K. Agarwal, W. Felter, J. Carter, A. Akella: "Presto: Edge-based Load Balancing for Fast
Datacenter Networks", ACM SIGCOMM 2015, section 3.1, Algorithm 1: a packet that no longer fits the cell begins the
next one, on the next label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from host_agent.paths.base import Flow, PathPolicy, Route, flow_entropy

FLOWCELL_BYTES: Final = 65536
"""The largest segment that TCP hands down (TSO), section 2.1."""


@dataclass(slots=True)
class _Cell:
    labels: tuple[int, ...]
    turn: int
    port: int
    left: int
    """Bytes that still fit."""


class Flowcell(PathPolicy):
    """A flow's first path follows from its hash. Where no path has a name, each cell has an entropy value of its own.

    flowcell_bytes: most bytes of inner packets in one cell; a larger packet is a cell of its own.
    """

    def __init__(self, flowcell_bytes: int = FLOWCELL_BYTES) -> None:
        self._bytes = flowcell_bytes
        self._cells: dict[int, _Cell] = {}

    def entropy(self, flow: Flow, route: Route, size: int, now: float) -> int:
        cell = self._cells.get(flow.id)
        if cell is None or cell.labels is not route.labels:
            cell = self._adapted(cell, flow, route)
        if cell.left < size and cell.left < self._bytes:
            self._turn(cell, cell.turn + 1, flow)
        cell.left -= size
        return cell.port

    def entropies(self, flow: Flow, route: Route, size: int, count: int, last: int, now: float) -> list[int]:
        ports: list[int] = []
        while (left := count - 1 - len(ports)) > 0:
            port = self.entropy(flow, route, size, now)
            cell = self._cells[flow.id]
            more = max(0, min(left - 1, cell.left // size))
            cell.left -= more * size
            ports += [port] * (more + 1)
        ports.append(self.entropy(flow, route, last, now))
        return ports

    def forget(self, flow: int) -> None:
        self._cells.pop(flow, None)

    def _adapted(self, cell: _Cell | None, flow: Flow, route: Route) -> _Cell:
        """The flow's cell among labels that are new to it; it goes on if its path is still there."""
        if cell is None:
            cell = self._cells[flow.id] = _Cell(route.labels, 0, 0, 0)
            self._turn(cell, flow.hash % max(1, len(route.labels)), flow)
        elif cell.port in route.labels:
            cell.labels, cell.turn = route.labels, route.labels.index(cell.port)
        else:
            cell.labels = route.labels
            self._turn(cell, cell.turn, flow)
        return cell

    def _turn(self, cell: _Cell, turn: int, flow: Flow) -> None:
        if cell.labels:
            cell.turn = turn % len(cell.labels)
            cell.port = cell.labels[cell.turn]
        else:
            cell.turn = turn
            cell.port = flow_entropy(flow, turn)
        cell.left = self._bytes
