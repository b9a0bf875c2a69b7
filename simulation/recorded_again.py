"""A window of a run that was simulated before: the same spec and seed give the same run, so it is made again."""

from __future__ import annotations

from experiments.results.packet_trace import PacketTrace
from experiments.spec.spec import Spec
from simulation.batch import prepare
from simulation.fabrics import SettingsError
from simulation.packet_trace import Recorder
from simulation.spec_run import simulate_run


def record_again(spec: Spec, label: str, *, repeat: int, from_ms: float, for_ms: float) -> PacketTrace:
    """Return the window from `from_ms` on, for `for_ms` milliseconds, of the run of `label` and `repeat` (from 1 on).

    Raises:
        SettingsError: there is no such run, it cannot be simulated, or nothing happened in the window.
    """
    case = prepare(spec)
    chosen = [pair for pair in case.schemes if pair[0].label == label]
    if not chosen or not 1 <= repeat <= spec.repeats:
        labels = ", ".join(choice.label for choice, _ in case.schemes)
        raise SettingsError(
            f"there is no repeat {repeat} of scheme {label!r}: repeats are 1 to {spec.repeats}, schemes {labels}"
        )
    choice, scheme = chosen[0]
    recorder = Recorder(from_ms, for_ms)
    plan = spec.plan(repeat - 1)
    simulate_run(case.setting, choice, scheme, repeat - 1, plan=plan, recorder=recorder)
    assert recorder.trace is not None, "a recorder that nothing was recorded by raises"
    return recorder.trace
