"""What is kept of experiments: tables, as SQLAlchemy 2 models. Changes need a migration (`migrations/`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Integer, UniqueConstraint, false, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship, validates

NEWEST: Final = "0008"
"""The migration that leads to these tables; an empty database gets them without any."""
WHOLE: Final = BigInteger().with_variant(Integer(), "sqlite")
"""64 bits everywhere: SQLite's INTEGER has them, PostgreSQL's has 32, fewer than seeds and byte counts need."""


_COLUMN_TYPES: Final[dict[Any, Any]] = {
    int: WHOLE,
    dict[str, Any]: JSON,
    dict[str, int]: JSON,
    list[str]: JSON,
    list[Any]: JSON,
}


class Base(DeclarativeBase):
    """All tables."""

    type_annotation_map = _COLUMN_TYPES


class Experiment(Base):
    """One experiment: what was asked, with what, and how it ended. Times are Unix seconds.

    simulated: packet by packet (docs/simulator.md), not in a lab.
    """

    __tablename__ = "experiments"
    __table_args__ = (Index("experiments_by_state", "state", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    seed: Mapped[int]
    spec: Mapped[dict[str, Any]]
    versions: Mapped[dict[str, Any]]
    machine: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(default="running")
    error: Mapped[str] = mapped_column(default="")
    summary: Mapped[dict[str, Any] | None] = mapped_column(default=None)
    created_at: Mapped[float]
    finished_at: Mapped[float | None] = mapped_column(default=None)
    simulated: Mapped[bool] = mapped_column(default=False, server_default=false())
    runs: Mapped[list[Run]] = relationship(order_by="Run.id")
    compared: Mapped[Compared | None] = relationship(cascade="all, delete-orphan")

    @validates("summary")
    def _keep_compared(self, _: str, summary: dict[str, Any] | None) -> dict[str, Any] | None:
        part = compared_part(summary)
        if part is None:
            self.compared = None
        elif self.compared is None:
            self.compared = Compared(part=part)
        else:
            self.compared.part = part
        return summary


class Compared(Base):
    """What lists show of an experiment's summary, which may be a thousand times as long."""

    __tablename__ = "compared"

    experiment_id: Mapped[int] = mapped_column(ForeignKey("experiments.id"), primary_key=True)
    part: Mapped[dict[str, Any]]


COMPARED: Final = ("schemes", "cpu_limited", "disturbed", "baseline")
"""Parts of a summary that lists show."""
MOST_COMPARED_BYTES: Final = 256 << 10
"""Of each of them, as JSON: all schemes have some 80 KiB."""


def compared_part(summary: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what lists show of a summary; None of none."""
    if summary is None:
        return None
    parts = {name: summary[name] for name in COMPARED if name in summary}
    return {name: part for name, part in parts.items() if len(json.dumps(part)) <= MOST_COMPARED_BYTES}


class Run(Base):
    """One scheme, one repeat."""

    __tablename__ = "runs"
    __table_args__ = (UniqueConstraint("experiment_id", "label", "repeat"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    experiment_id: Mapped[int] = mapped_column(ForeignKey("experiments.id"))
    scheme: Mapped[str]
    label: Mapped[str]
    repeat: Mapped[int]
    seed: Mapped[int]
    started_at: Mapped[float]
    finished_at: Mapped[float]
    cpu_limited: Mapped[bool]
    cpu: Mapped[dict[str, Any]]
    measures: Mapped[dict[str, Any]]
    mode_events_complete: Mapped[bool]


class Recording(Base):
    """A window of a run on switches, packet by packet; ``file`` as docs/packet-traces.md describes it.

    from_ms, for_ms: the window, in ms of the run; cut: it ends where the recording was full.
    """

    __tablename__ = "recordings"

    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True, autoincrement=False)
    from_ms: Mapped[float]
    for_ms: Mapped[float]
    hops: Mapped[int]
    cut: Mapped[bool]
    file: Mapped[bytes]


class FlowRecord(Base):
    """One flow of a run. Field meanings: docs/api.md."""

    __tablename__ = "flows"
    __table_args__ = (Index("flows_by_run", "run_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    flow: Mapped[int]
    source: Mapped[str]
    destination: Mapped[str]
    traffic_class: Mapped[str]
    state: Mapped[str]
    error: Mapped[str] = mapped_column(default="")
    size_bytes: Mapped[int | None]
    source_port: Mapped[int | None]
    destination_port: Mapped[int | None]
    planned_s: Mapped[float | None]
    started_s: Mapped[float | None]
    finished_s: Mapped[float | None]
    fct_s: Mapped[float | None]
    bytes_acked: Mapped[int | None]
    window_bytes: Mapped[int | None]
    window_s: Mapped[float | None]
    retransmissions: Mapped[int | None]
    bytes_retransmitted: Mapped[int | None]
    reordering_events: Mapped[int | None]
    duplicates_reported: Mapped[int | None]
    rtt_ms: Mapped[float | None]
    min_rtt_ms: Mapped[float | None]
    out_of_order: Mapped[int | None]
    packets: Mapped[int | None]
    repairs: Mapped[int | None]
    recovered: Mapped[int | None]
    lost: Mapped[int | None]
    reordered: Mapped[int | None]
    held: Mapped[int | None]
    release_timeouts: Mapped[int | None]
    paths: Mapped[dict[str, int]]


class ModeEvent(Base):
    """A mode change of a leaf during a run; ``at_s`` from the run's start."""

    __tablename__ = "mode_events"
    __table_args__ = (Index("mode_events_by_run", "run_id", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    at_s: Mapped[float]
    leaf: Mapped[str]
    mode: Mapped[str]
    cause: Mapped[str]


class Job(Base):
    """How an experiment that was submitted stands in the queue; one that its runner only recorded has none.

    kind: ``experiment``, ``sweep`` or ``point`` (of the sweep ``parent``, ``point`` in its grid from 0, at which its
    axes show ``at``). text: the spec as it was submitted. runs, estimated_s: all that are to be done, and how long
    that may take. fabric: equal for points that one lab can serve. attempt: how often it was begun. record: the window
    in which the first run of each scheme is recorded packet by packet, ``from_ms`` and ``for_ms``; None: none is.
    """

    __tablename__ = "jobs"
    __table_args__ = (Index("jobs_by_parent", "parent", "point"),)

    experiment_id: Mapped[int] = mapped_column(ForeignKey("experiments.id"), primary_key=True)
    kind: Mapped[str]
    title: Mapped[str]
    text: Mapped[str]
    parent: Mapped[int | None] = mapped_column(ForeignKey("experiments.id"))
    point: Mapped[int | None]
    at: Mapped[list[Any] | None]
    words: Mapped[str]
    points: Mapped[int]
    runs: Mapped[int]
    estimated_s: Mapped[float]
    fabric: Mapped[str]
    queued_at: Mapped[float]
    started_at: Mapped[float | None]
    attempt: Mapped[int]
    worker: Mapped[str]
    record: Mapped[dict[str, Any] | None] = mapped_column(default=None)


class FinishedFlowBatch(Base):
    """Records of finished flows of one host: ``records`` holds ``count`` of them (`controller.store.finished_flows`).

    ``ended_at``: when the last one ended, Unix seconds; ``addresses``: what the numbers in the records stand for;
    ``fabric``: whose they are, "" for those of older versions, which have no fabric.
    """

    __tablename__ = "finished_flows"
    __table_args__ = (Index("finished_flows_by_end", "ended_at", "id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    host: Mapped[str]
    count: Mapped[int]
    ended_at: Mapped[float]
    addresses: Mapped[list[str]]
    records: Mapped[bytes]
    fabric: Mapped[str] = mapped_column(server_default=text("''"))
