"""`bench capton` measures real decisions: with the load that it states, of both schedulers."""

from __future__ import annotations

import capstan_native

from benchmarks.capton import measure


def test_both_are_asked_the_same_and_many_decisions_change_rates() -> None:
    ours = measure(capstan_native.CaptonScheduler, 32, 100, 50)
    plain = measure(capstan_native.CaptonPlain, 32, 100, 50)
    assert [sorted(one) for one in ours.decisions] == [sorted(one) for one in plain.decisions]
    assert len(ours.times_us) == len(ours.decisions) >= 100
    assert ours.times_us.min() > 0
    assert sum(bool(one) for one in ours.decisions) >= 50  # every end at least is one
