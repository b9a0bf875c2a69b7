"""Keeping records of finished flows over restarts: batches of one host each, bounded in number and age.

Several controllers may share a database, at a time or one after the other: each goes on with the records of its own
fabric only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from sqlalchemy import Engine, delete, func, select
from sqlalchemy.orm import Session

from controller.store.models import FinishedFlowBatch
from controller.tpfs.records import RECORD, Names, Records

_AT_ONCE: Final = 64
"""Batches that are deleted before it is looked again whose turn it is."""
ABANDONED_S: Final = 86400.0
"""Records of other fabrics that are older go, too: a lab's controller never comes back for its own."""


class FinishedFlowStore:
    """Over one engine, of one *fabric* (any text that only its controller has); safe to call from any thread.

    Times are Unix seconds.
    """

    def __init__(self, engine: Engine, fabric: str) -> None:
        self._engine = engine
        self._fabric = fabric
        self._own = FinishedFlowBatch.fabric == fabric

    def add(self, host: str, records: Records, addresses: Sequence[str]) -> None:
        """Keep *records* of *host* as one batch. addresses: what the numbers in them stand for."""
        used, numbers = np.unique(
            np.concatenate((records["source"], records["destination"])), return_inverse=True
        )
        own = records.copy()
        own["source"], own["destination"] = np.split(numbers, 2)
        own["host"] = 0
        with Session(self._engine) as session, session.begin():
            session.add(
                FinishedFlowBatch(
                    host=host,
                    count=len(own),
                    ended_at=float(own["end"].max()),
                    addresses=[addresses[number] for number in used],
                    records=own.tobytes(),
                    fabric=self._fabric,
                )
            )

    def load(self, since: float, hosts: Names, addresses: Names) -> Iterator[Records]:
        """Yield the batches with records that ended after *since*, oldest first, with numbers of *hosts* and
        *addresses*."""
        with Session(self._engine) as session:
            wanted = select(FinishedFlowBatch).where(self._own, FinishedFlowBatch.ended_at >= since)
            for batch in session.scalars(wanted.order_by(FinishedFlowBatch.ended_at, FinishedFlowBatch.id)):
                if len(batch.records) % RECORD.itemsize:
                    continue  # of a Capstan with other records
                records = np.frombuffer(batch.records, dtype=RECORD).copy()
                numbers = np.array([addresses.number(text) for text in batch.addresses], dtype=np.int32)
                if max(records["source"].max(), records["destination"].max()) >= len(numbers):
                    continue
                records["host"] = hosts.number(batch.host)
                for field in ("source", "destination"):
                    records[field] = numbers[records[field]]
                yield records

    def count(self) -> int:
        """Return how many records there are."""
        with Session(self._engine) as session:
            return int(session.scalar(select(func.sum(FinishedFlowBatch.count)).where(self._own)) or 0)

    def forget(self) -> None:
        """Delete all of them."""
        with Session(self._engine) as session, session.begin():
            session.execute(delete(FinishedFlowBatch).where(self._own))

    def prune(self, since: float, most: int) -> None:
        """Delete what ended before *since*, then oldest batches of whichever host has most, until *most* are left."""
        with self._engine.connect().execution_options(capstan_begin="IMMEDIATE") as connection:
            with connection.begin():
                connection.execute(
                    delete(FinishedFlowBatch).where(self._own, FinishedFlowBatch.ended_at < since)
                )
                connection.execute(
                    delete(FinishedFlowBatch).where(FinishedFlowBatch.ended_at < since - ABANDONED_S)
                )
            while True:
                with connection.begin():
                    totals = connection.execute(
                        select(FinishedFlowBatch.host, func.sum(FinishedFlowBatch.count).label("total"))
                        .where(self._own)
                        .group_by(FinishedFlowBatch.host)
                        .order_by(func.sum(FinishedFlowBatch.count).desc())
                    ).all()
                    excess = sum(int(total) for _, total in totals) - most
                    if excess <= 0:
                        return
                    host, own = totals[0]
                    next_most = int(totals[1][1]) if len(totals) > 1 else 0
                    oldest = connection.execute(
                        select(FinishedFlowBatch.id, FinishedFlowBatch.count)
                        .where(self._own, FinishedFlowBatch.host == host)
                        .order_by(FinishedFlowBatch.ended_at, FinishedFlowBatch.id)
                        .limit(_AT_ONCE)
                    ).all()
                    going, gone = [], 0
                    for number, count in oldest:
                        going.append(number)
                        gone += int(count)
                        if gone >= excess or int(own) - gone < next_most:
                            break
                    connection.execute(delete(FinishedFlowBatch).where(FinishedFlowBatch.id.in_(going)))
