"""Works the queue of a database off: two runs of 50 flows each experiment, and says what the store has returned."""

from __future__ import annotations

import sys

from controller.store.database import open_database
from controller.store.experiments import ExperimentStore
from controller.store.queue import ExperimentQueue
from tests.unit.experiments_store import flow_row, run_row


def work_off(url: str) -> None:
    """Run experiments until nothing is left."""
    engine = open_database(url)
    queue, store = ExperimentQueue(engine), ExperimentStore(engine)
    while (found := queue.claim("program")) is not None:
        claimed, _ = found
        kept = {repeat for _, repeat, _ in claimed.kept}
        for repeat in sorted({0, 1} - kept):
            flows = [flow_row(number) for number in range(50)]
            run = store.add_run(claimed.experiment, run_row(repeat), flows, [], attempt=claimed.attempt)
            print("run", run["id"], flush=True)
        queue.end(claimed.experiment, claimed.attempt, "finished", summary={"done": True})
        print("finished", claimed.experiment, flush=True)


if __name__ == "__main__":
    work_off(sys.argv[1])
