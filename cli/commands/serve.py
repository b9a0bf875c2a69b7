"""``capstan serve`` and ``capstan agent``: controller and host agent alone, as their own rooms define them."""

from controller.__main__ import serve_command
from host_agent.__main__ import agent_command

__all__ = ["agent_command", "serve_command"]
