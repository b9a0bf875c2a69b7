"""How large the fabrics of a submission may be, which is found before any is laid out: a check takes a thread of the
API's, and the command line has no such limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from experiments.spec.fabric_links import links_of
from experiments.spec.spec import ALL_SCHEMES

MOST_LINKS: Final = 10_000
"""Of one fabric: the largest fat tree that a spec may have (k = 22, 2662 hosts) has 7986, the paper's 144 hosts 288."""
MOST_POINT_LINKS: Final = 100_000
"""Of the fabrics of all points together."""
MOST_SCHEME_LINKS: Final = 150_000
"""Of a simulation: links of all points, each as often as schemes run there."""


class SizeBudget:
    """What the points of one submission have together. schemes: that "all" stands for; simulated: or run in a lab."""

    def __init__(self, schemes: int, simulated: bool) -> None:
        self._schemes = schemes
        self._simulated = simulated
        self._points = self._links = self._largest = 0
        self.scheme_links = 0
        """Links, each as often as schemes run at its point."""

    def add(self, data: Mapping[str, Any]) -> None:
        """Count a point's plain data, which nothing has checked: what cannot be is refused later."""
        links = links_of(data.get("fabric"))
        self._points += 1
        self._links += links
        self._largest = max(self._largest, links)
        self.scheme_links += links * self._schemes_of(data.get("schemes"))

    def problem(self) -> str:
        """Return what is too large, by which limit, and what to do; empty: nothing is."""
        if self._largest > MOST_LINKS:
            return (
                f"a fabric of {self._largest} links is more than the API takes, {MOST_LINKS}: take fewer leaves, "
                "spines or hosts, or simulate it by ./capstan simulate SPEC"
            )
        if self._links > MOST_POINT_LINKS:
            return (
                f"the fabrics of {self._points} points have {self._links} links together, more than the API takes, "
                f"{MOST_POINT_LINKS}: take fewer points or smaller fabrics, or use the command line"
            )
        if self._simulated and self.scheme_links > MOST_SCHEME_LINKS:
            return (
                f"links x points x schemes are {self.scheme_links}, more than the API takes for a simulation, "
                f"{MOST_SCHEME_LINKS}: take fewer schemes or points or smaller fabrics, or simulate it by "
                "./capstan simulate SPEC"
            )
        return ""

    def _schemes_of(self, given: Any) -> int:
        if not isinstance(given, list):
            return 1
        return sum(self._schemes if _name_of(item) == ALL_SCHEMES else 1 for item in given)


def _name_of(item: Any) -> Any:
    return item.get("name") if isinstance(item, Mapping) else item
