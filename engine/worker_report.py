"""What a worker reports of its experiment: a module of its own, since a worker has no database to import."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.run.progress import RunProgress
from simulation.link_samples import LinkSample


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReportBody(RunProgress):
    """What a worker says of its run, and who it is.

    lab: id of its lab; api: where its lab's controller listens, once that is up; secret: that makes that address
    believed. here: its lab is the fabric of the controller that it reports to. links: a new sample of a simulated run.
    """

    attempt: int
    worker: str
    lab: str | None = None
    api: str | None = None
    here: bool = False
    secret: str = ""
    links: LinkSample | None = None
