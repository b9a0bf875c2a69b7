"""How hypothesis searches: without looking at a clock, for the machine may be busy; anew each time, the same in CI."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Both measure how long examples take: a busy machine would fail what is right.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", settings.get_profile("here"), derandomize=True
)  # what lands must not depend on luck
settings.load_profile("ci" if "CAPSTAN_CI_RUN" in os.environ else "here")
