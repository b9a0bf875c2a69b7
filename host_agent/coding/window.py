"""The congestion window as the sender's agent sees it: the door to `native/agent/src/coding/window.rs`."""

from __future__ import annotations

from typing import Final

from host_agent.coding.native import WindowEstimate

INITIAL_WINDOW: Final = WindowEstimate.INITIAL_WINDOW
"""Packets, before the first round trip is over (RFC 6928)."""

__all__ = ["INITIAL_WINDOW", "WindowEstimate"]
