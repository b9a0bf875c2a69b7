"""HyLine's thresholds, and what leaves unscheduled under them and under CAPTON, as the CAPTON paper prints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class HylineRow:
    """A row of Table 4: loads in percent, thresholds in MB by access and by core load."""

    access_load: float
    core_load: float
    websearch_by_access: float
    datamining_by_access: float
    websearch_by_core: float
    datamining_by_core: float


TABLE_4: Final = (
    HylineRow(18.2, 50, 9.18, 35.1, 5.72, 20.9),
    HylineRow(21.8, 60, 7.45, 28.05, 5.2, 18.82),
    HylineRow(25.5, 70, 7.45, 28.05, 4.8, 17.21),
    HylineRow(29.1, 80, 7.45, 28.05, 4.47, 15.93),
    HylineRow(32.7, 90, 6.42, 23.77, 4.2, 14.88),
    HylineRow(36.4, 100, 6.42, 23.77, 4.2, 14.88),
)
UNSCHEDULED_WEBSEARCH: Final = (
    (92.8, 89.5),
    (91.4, 88.9),
    (91.4, 88.3),
    (91.4, 87.8),
    (90.4, 87.3),
    (90.4, 87.3),
)
"""Table 5: percent of flows that leave unscheduled under HyLine, by access and by core load, row by row of Table 4."""
UNSCHEDULED_DATAMINING: Final = (
    (97.9, 97.4),
    (97.7, 97.3),
    (97.7, 97.2),
    (97.7, 97.1),
    (97.5, 97.0),
    (97.5, 97.0),
)
"""Table 6."""
CAPTON_SEGMENTS: Final = 10
"""CAPTON's fixed threshold, in segments: 17.9 % (web search) and 80.2 % (data mining) of flows leave unscheduled."""
