"""One controller."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from capstan_client.errors import NoTextError
from capstan_client.experiment import Experiment
from capstan_client.http import Connected, Connection


class Capstan(Connected):
    """A controller's API. url: as ``http://127.0.0.1:8080``; token: needed on addresses other than loopback.

    authority: what the certificate of an https URL is checked by, PEM; None: the machine's authorities.

    timeout_s: for an answer. Checks and submissions, of which large simulations are tried out, and recordings get
    more.

    Whatever it refuses is a CapstanError that says why.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        token: str | None = None,
        timeout_s: float = 30.0,
        authority: Path | None = None,
    ) -> None:
        self._connection = Connection(url, token, timeout_s, authority)

    def health(self) -> dict[str, Any]:
        """Return the state of the fabric that it controls."""
        answer: dict[str, Any] = self._connection.get("/health")
        return answer

    def fabric(self) -> dict[str, Any]:
        """Return switches, links and hosts."""
        answer: dict[str, Any] = self._connection.get("/fabric")
        return answer

    def schemes(self) -> list[str]:
        """Return names of the schemes that it has."""
        return [scheme["name"] for scheme in self._connection.get("/schemes")["schemes"]]

    def presets(self) -> list[dict[str, Any]]:
        """Return experiments that come with it: name, title, description, points, runs, schemes, estimated_s, text."""
        answer: list[dict[str, Any]] = self._connection.get("/specs")["presets"]
        return answer

    def check(self, preset: str | None = None, **arguments: Any) -> dict[str, Any]:
        """Return what `submit` would do with the same arguments: ok, problems, points, runs, estimated_s."""
        body = _body({"preset": preset, **arguments})
        wait_s = self._connection.aside_s
        answer: dict[str, Any] = self._connection.json(
            "POST", "/experiments/check", body=body, timeout_s=wait_s
        )
        return answer

    def submit(
        self,
        preset: str | None = None,
        *,
        spec: Mapping[str, Any] | Path | None = None,
        name: str | None = None,
        schemes: Sequence[str] | None = None,
        repeats: int | None = None,
        seed: int | None = None,
        sweep: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | None = None,
        set: Mapping[str, Any] | None = None,
        kind: Literal["experiment", "simulation"] | None = None,
        record: Mapping[str, float] | bool | None = None,
    ) -> Experiment:
        """Submit an experiment, in a lab or (kind: "simulation") packet by packet, and return it.

        preset: its name; or spec: plain data, or the path of a YAML file. The rest is what differs from it: sweep as
        ``{"dotted.field": [values]}`` or a list of axes, set as ``{"dotted.field": value}``. record: in a lab, record
        the packets of each scheme's first run for `Experiment.recording`: True, or the window, as ``{"from_ms": 400,
        "for_ms": 50}``; from the first short flow on, and for a second, unless it says otherwise.
        """
        arguments: dict[str, Any] = {
            "preset": preset,
            "spec": spec,
            "name": name,
            "schemes": schemes,
            "repeats": repeats,
        }
        arguments |= {"seed": seed, "sweep": sweep, "set": set, "kind": kind, "record": record}
        wait_s = self._connection.aside_s  # else what is taken all the same would be submitted once more
        made = self._connection.json("POST", "/experiments", body=_body(arguments), timeout_s=wait_s)
        return self.experiment(made["id"])

    def experiment(self, number: int) -> Experiment:
        """Return the experiment of this number."""
        return Experiment(self._connection, number)

    def experiments(self, state: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield experiments and sweeps, newest first, as docs/api.md describes them."""
        before: int | None = None
        while True:
            page = self._connection.get("/experiments", before=before, limit=100, state=state)
            yield from page["experiments"]
            before = page["next"]
            if before is None:
                return

    def events(
        self, topics: str = "fabric,modes,scheme,agents,experiments,faults"
    ) -> Iterator[dict[str, Any]]:
        """Yield what happens from now on, for ever: docs/api.md, "Live events"."""
        return self._connection.events(topics)


def _body(arguments: Mapping[str, Any]) -> dict[str, Any]:
    body = {name: value for name, value in arguments.items() if value is not None}
    if isinstance(body.get("record"), bool) and body.pop("record"):
        body["record"] = {}  # the window that it is where nothing is said
    if isinstance(body.get("spec"), Path):
        file = body.pop("spec")
        try:
            body["text"] = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise NoTextError(file, error) from None
    return body
