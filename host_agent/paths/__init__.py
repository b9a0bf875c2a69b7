"""Path policies: which entropy value or path label a packet carries. Compiled, a small file each in
native/agent/src/paths; one of the operator's own in Python (`own`)."""

from __future__ import annotations

from capstan_native import CompiledPathPolicy

from host_agent.paths.base import Flow, Load, PathPolicy, Report, Route

__all__ = ["CompiledPathPolicy", "Flow", "Load", "PathPolicy", "Report", "Route"]

PathPolicy.register(CompiledPathPolicy)
