"""Records of finished flows in memory and in the store: what agents say, checked, bounded and kept over restarts."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from controller.rare_log import RareLog
from controller.schemes.scheme import Prediction
from controller.tpfs.records import Names, Records, RecordsError, RecordWindow, checked
from protocol import control

_LOG: Final = logging.getLogger("capstan.tpfs")
KEEP_EVERY_S: Final = 5.0
"""How often records go into the store."""


class RecordStore(Protocol):
    """Keeps records over restarts, in batches of one host each. Times are Unix seconds."""

    def add(self, host: str, records: Records, addresses: Sequence[str]) -> None:
        """Keep *records* of *host* as one batch. addresses: what the numbers in them stand for."""

    def load(self, since: float, hosts: Names, addresses: Names) -> Iterable[Records]:
        """Return batches with records that ended after *since*, oldest first, numbered by *hosts* and *addresses*."""

    def forget(self) -> None:
        """Drop all records."""

    def prune(self, since: float, most: int) -> None:
        """Drop records that ended before *since*, and old ones beyond *most*."""


def steady_clock() -> Callable[[], float]:
    """Return a clock of Unix seconds that takes no steps: the wall's as it is now, and the time since.

    By a wall clock that is set forward, all records would be too old at once, here and in the store; by one that is set
    back, new ones would be of before the last time that all were forgotten.
    """
    ahead = time.time() - time.monotonic()
    return lambda: time.monotonic() + ahead


class StoredRecords:
    """Of one thread; what is public may be read by others. store: None keeps nothing over restarts.

    refused: records that could not be true, by host and reason. since: Unix seconds; flows that ended before do not
    count.
    """

    def __init__(self, store: RecordStore | None) -> None:
        self._store = store
        self._hosts, self.addresses = Names(), Names()
        self.window = RecordWindow()
        self.refused: dict[str, Counter[str]] = {}
        self.since = 0.0
        self._unsaved: list[Records] = []
        self._saved_at = 0.0
        self._refusals = RareLog(_LOG)
        self.now: Final = steady_clock()
        """Gives the time of records, Unix seconds."""

    def bound(self, prediction: Prediction) -> None:
        """Keep as many records, and as old ones, as *prediction* says."""
        self.window.most_records, self.window.most_age_s = prediction.most_records, prediction.most_age_s

    def restore(self) -> None:
        """Load what the store has."""
        if self._store is None:
            return
        for records in self._store.load(self.now() - self.window.most_age_s, self._hosts, self.addresses):
            self.window.add(records, self.now())

    def take(self, host: str, owners: Mapping[str, str], report: control.FinishedFlows) -> None:
        """Check and add the records of *host*; owners: the host of each overlay address."""
        now = self.now()
        try:
            records, refused = checked(
                report,
                host,
                owners=owners,
                hosts=self._hosts,
                addresses=self.addresses,
                now=now,
            )
        except RecordsError as error:
            self._refusals.say(f"records of {host} refused: {error}")
            self.refused.setdefault(host, Counter()).update({"malformed": 1})
            return
        if refused:
            self.refused.setdefault(host, Counter()).update(refused)
        records = records[records["end"] >= self.since]
        if len(records):
            self.window.add(records, now)
            self._unsaved.append(records)

    def forget(self, since: float) -> None:
        """Delete flows that ended before *since*, and of those that are reported later."""
        self.since = since
        before = self.window
        self.window = RecordWindow(before.most_records, before.most_age_s)
        self._unsaved.clear()
        for chunk in before.chunks():
            later = chunk[chunk["end"] >= since]
            if len(later):
                self.window.add(later, self.now())
                self._unsaved.append(later)
        if self._store is not None:
            try:
                self._store.forget()
            except Exception as error:  # a full disk must not end learning
                _LOG.error("records of finished flows stay in the database: %s", error)

    def keep(self, always: bool = False) -> None:
        """Put new records into the store, now and then."""
        now = time.monotonic()
        if self._store is None or not (always or now >= self._saved_at + KEEP_EVERY_S):
            return
        self._saved_at = now
        unsaved, self._unsaved = self._unsaved, []
        of_host: dict[int, list[Records]] = {}
        for records in unsaved:
            of_host.setdefault(int(records["host"][0]), []).append(records)
        try:
            for number, some in of_host.items():
                self._store.add(self._hosts.texts[number], np.concatenate(some), self.addresses.texts)
            if of_host:
                self._store.prune(self.now() - self.window.most_age_s, self.window.most_records)
        except Exception as error:
            _LOG.error("records of finished flows are not stored: %s", error)
