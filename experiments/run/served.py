"""A controller that runs already, as `capstan serve` does: where a deployment finds what it needs of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from capstan_client.controller import ControllerClient
from capstan_client.errors import CapstanError


class NotServedError(CapstanError, RuntimeError):
    """No controller that a lab could use runs with that directory; the text says what to do."""


@dataclass(frozen=True, slots=True)
class ServedController:
    """A controller in this network namespace; it stays when the deployment ends.

    token: of its API, None where it asks for none. openflow_port: on all addresses, for switches come by one of
    the lab's own.
    """

    directory: Path
    api: str
    token: str | None
    openflow_port: int
    agents_socket: Path
    token_file: Path

    @classmethod
    def find(cls, directory: Path) -> Self:
        """Return the controller with this data directory (`capstan serve --data`). Raises NotServedError, OSError."""
        path = directory / "endpoints.json"
        try:
            endpoints = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise NotServedError(
                f"{path} is not there: start `capstan serve --data {directory}` first"
            ) from None
        openflow, socket = endpoints["openflow"], endpoints["agents"]["socket"]
        if openflow is None:
            raise NotServedError(
                f"the controller of {directory} serves the page alone, without switches: start "
                "`capstan serve --data DIRECTORY` with another directory, and give that"
            )
        if openflow["address"] != "0.0.0.0":
            raise NotServedError(
                f"the controller of {directory} listens for switches at {openflow['address']} only; a lab's "
                "switches come by an address of their own: start it with --openflow 0.0.0.0:PORT --openflow-without-tls"
            )
        if openflow.get("tls"):
            raise NotServedError(
                f"the controller of {directory} takes switches by TLS only, and a lab's have no certificates: start it "
                "without --switch-authority, with --openflow-without-tls"
            )
        if socket is None:
            raise NotServedError(
                f"the controller of {directory} has no Unix socket for agents: start it with --agents-socket PATH"
            )
        asks = endpoints.get("token_needed", True)
        return cls(
            directory=directory,
            api=str(endpoints["api"]),
            token=(directory / "api-token").read_text(encoding="ascii").strip() if asks else None,
            openflow_port=int(openflow["port"]),
            agents_socket=Path(socket),
            token_file=directory / "agents-token",
        )

    def client(self) -> ControllerClient:
        """Return a client of its API."""
        return ControllerClient(self.api, self.token)
