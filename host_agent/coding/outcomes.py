"""What became of units, and what follows from it: the door to `native/agent/src/coding/outcomes.rs`."""

from __future__ import annotations

from typing import Final

from host_agent.coding.native import Margin, Outcomes, SentUnit

MOST: Final = Margin.MOST
"""Bound of the margin, in logits: the odds of pB are off by a factor of 20 at most."""

__all__ = ["MOST", "Margin", "Outcomes", "SentUnit"]
