"""What a route says of itself, next to its code: what the OpenAPI document is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

LARGEST: Final = 2**63 - 1
"""Of whole numbers in paths and queries: what every database can hold."""
MOST: Final = 9_200_000_000_000_000_000
"""Of numbers in bodies: the same, but one that a float holds as exactly."""
F = TypeVar("F", bound=Callable[..., Any])
_ATTRIBUTE: Final = "capstan_description"


SCHEMA: Final = "schema"
"""Key of a field's metadata: what JSON Schema says of it beside its type."""
UNIT: Final = "unit"
RESULTS_BYTES: Final = 64 << 20
"""Of a body that carries what a run has measured: a flow's record has 0.8 kB, and a run tens of thousands of them."""
END_BYTES: Final = 64 << 10
"""Of a body that ends an experiment without results: it is taken although the database is full."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query parameter that is a whole number."""

    name: str
    meaning: str
    low: int = 0
    high: int = LARGEST
    default: int | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A query parameter that is text. ``choices``: all that it may be, if not anything; ``several``: with commas."""

    name: str
    meaning: str
    default: str | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    several: bool = False


@dataclass(frozen=True, slots=True)
class Description:
    """``answer``, ``body``: types, read by `schemas.Schemas`. ``problems``: statuses beside those of every route."""

    summary: str
    answer: Any
    body: type | None = None
    body_text: tuple[str, ...] = ()
    """Media types of bodies that are text, beside ``body``."""
    most_body_bytes: int | None = None
    """Where bodies may be longer than elsewhere: why is said there."""
    keeps_above_bytes: int | None = None
    """Where more is kept by it: a request with a longer body is refused (507) while the database is full."""
    query: tuple[Query | Text, ...] = ()
    status: int = 200
    problems: tuple[int, ...] = ()
    media: str = "application/json"
    stream: bool = False
    """Whether it answers with a stream of events, too, if asked to (Accept: text/event-stream)."""
    tagged: bool = False
    """Whether its answers have an ETag; a client that has the answer already gets 304."""


@dataclass(frozen=True, slots=True)
class Open:
    """Marks an object that may have more fields than its type says: ``Annotated[dict[str, Any], Open(Head)]``."""

    kind: Any


@dataclass(frozen=True, slots=True, eq=False)
class With:
    """Marks an object with fields beside those of its type: ``Annotated[dict[str, Any], With(Run, {...})]``."""

    kind: Any
    more: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """Marks an object whose JSON Schema is published: ``Annotated[dict[str, Any], Published("Spec", schema)]``.

    What the schema requires may come from other fields of a request: here it may be left out.
    """

    name: str
    schema: Callable[[], dict[str, Any]]


def attach(view: F, description: Description) -> F:
    """Return *view*, with its description for `description_of`."""
    setattr(view, _ATTRIBUTE, description)
    return view


def description_of(view: Callable[..., Any]) -> Description:
    """Return what a view says of itself. Raises LookupError for a view that says nothing."""
    description = getattr(view, _ATTRIBUTE, None)
    if not isinstance(description, Description):
        raise LookupError(
            f"route {view.__name__!r} has no description: decorate it by controller.api.routing, as in get(path, ...)"
        )
    return description
