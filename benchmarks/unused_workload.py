"""The workload of fabrics on which a benchmark sends by itself: a spec has to have one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

UNUSED_WORKLOAD: Final[Mapping[str, Any]] = {
    "flows": {
        "count": 1,
        "sizes": {"kind": "fixed", "bytes": 1000},
        "arrivals": {"kind": "poisson", "rate_per_s": 1},
        "pattern": "left-to-right",
    }
}
