"""The order of the files that several processes share: the longest first, so that none is left with one at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

SECONDS: Final = {
    "test_experiments.py": 140,
    "test_schemes_on_switches.py": 135,
    "test_classroom_on_switches.py": 127,
    "test_run_experiment.py": 126,
    "test_held_lab.py": 123,
    "test_engine_database.py": 85,
    "test_cli_run.py": 76,
    "test_engine.py": 75,
    "test_lab_cleanup.py": 71,
    "test_notebooks.py": 65,
    "test_dashboard.py": 65,
    "test_api_contract.py": 60,
    "test_engine_docs.py": 55,
    "test_openflow_takeover.py": 45,
    "test_path_policies.py": 45,
    "test_agent_overlay.py": 45,
    "test_engine_dask.py": 35,
    "test_priority_queues.py": 30,
    "test_coding_policies.py": 25,
    "test_capton_on_switches.py": 28,
    "test_capton_compositions.py": 27,
    "test_classroom_batch.py": 26,
    "test_supervised_lab.py": 25,
    "test_lab_limits.py": 25,
    "test_live_view.py": 25,
    "test_begun_meanwhile.py": 24,
    "test_capton_three_tiers.py": 22,
    "test_lab_fabric.py": 20,
    "test_doctor.py": 20,
    "test_own_fabric.py": 20,
    "test_agent_benchmark.py": 20,
    "test_models_command.py": 20,
    "test_agent_integrity.py": 15,
    "test_experiments_drawing.py": 15,
    "test_experiments_report.py": 15,
    "test_replay.py": 13,
    "test_tour.py": 11,
    "test_api_exports.py": 10,
    "test_experiments_fitting.py": 10,
    "test_chaos.py": 10,
}
"""What a file took on two cores, as `--durations=0` says; those that are missing take less than all of these."""


def longest_first(paths: Sequence[PurePath]) -> list[int]:
    """Return the indices of *paths* (of a test each) in the order of their files' times; those of a file stay together.

    Files of the same time keep their order.
    """
    return sorted(range(len(paths)), key=lambda index: -SECONDS.get(paths[index].name, 0))
