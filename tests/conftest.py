"""How hypothesis searches: without deadlines, for the machine may be busy; anew each time, but the same in CI."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)  # what lands must not depend on luck
settings.load_profile("ci" if "CAPSTAN_CI_RUN" in os.environ else "here")
