"""Demotion thresholds of PIAS: how many bytes a flow may send from each of K strict-priority queues.

A flow begins in queue 1 (highest) and leaves queue l for queue l + 1 when it has sent a_l bytes; the last queue
keeps it. (W. Bai et al.: Information-Agnostic Flow Scheduling for Commodity Data Centers, NSDI 2015, section 4.)
These are not the optimum of the paper's model as we read it, which tests solve: they have 1.3 to 1.9 times its cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SEGMENT: Final = 1460
PUBLISHED: Final[Mapping[str, Mapping[float, tuple[int, ...]]]] = {
    name: {load: tuple(_SEGMENT * segments for segments in row) for load, row in rows.items()}
    for name, rows in {
        "websearch": {
            0.5: (1059, 1412, 1643, 1869, 2008, 2115, 2184),
            0.6: (956, 1381, 1718, 2028, 2297, 2551, 2660),
            0.7: (999, 1305, 1564, 1763, 1956, 2149, 2309),
            0.8: (909, 1329, 1648, 1960, 2143, 2337, 2484),
            0.9: (759, 1132, 1456, 1737, 2010, 2199, 2325),
        },
        "datamining": {
            0.5: (805, 1106, 1401, 10693, 11970, 21162, 22272),
            0.6: (840, 1232, 1617, 11950, 12238, 21494, 25720),
            0.7: (907, 1301, 1619, 12166, 12915, 21313, 26374),
            0.8: (745, 1083, 1391, 13689, 14936, 21149, 27245),
            0.9: (750, 1083, 1416, 13705, 14952, 21125, 28253),
        },
    }.items()
}
"""By table and load: thresholds in bytes for 8 queues, as in the public simulation scripts of the paper's authors."""
