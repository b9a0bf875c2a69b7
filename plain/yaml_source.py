"""YAML text as plain data that remembers where in the text every value stands."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from plain.field_path import steps_text
from plain.shown import LONGEST_SHOWN, cut, shown

Path = tuple[str | int, ...]
DEEPEST: Final = 64
"""Levels of brackets."""
MOST_VALUES: Final = 100_000
"""Of one file; each time that an alias is used counts, so that a few lines cannot stand for billions."""
MOST_CHARACTERS: Final = 1 << 24
"""Of all values together, likewise."""
LONGEST_KEY: Final = 200
"""Characters. Each problem within what it names says it again."""
MOST_PROBLEMS: Final = 1000
"""That are listed."""
LONGEST_NUMBER: Final = 1000
"""Characters."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_READ_OTHERWISE: Final = re.compile("[\t?!\ufeff]")
"""Of these the compiled parser allows or counts some that the other does not."""
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something wrong in a file: line and column from 1 on, the field's path, and what to do about it."""

    line: int
    column: int
    path: str
    message: str
    filename: str = field(default="", compare=False)

    def __str__(self) -> str:
        where = f" {self.path}:" if self.path else ""
        return f"{self.filename}:{self.line}:{self.column}:{where} {self.message}"


@dataclass(slots=True)
class Source:
    """Plain data, and the (line, column) of every value and of every key of a mapping."""

    data: Any = None
    values: dict[Path, tuple[int, int]] = field(default_factory=dict)
    keys: dict[Path, tuple[int, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    filename: str = ""

    def place(self, path: Path, key: bool = False) -> tuple[int, int]:
        """Return where *path* stands (*key*: its key), or the nearest thing around it that stands somewhere."""
        for length in range(len(path), -1, -1):
            part = path[:length]
            if key and part in self.keys:
                return self.keys[part]
            if part in self.values:
                return self.values[part]
        return (1, 1)


def text_of(path: Path) -> str:
    """Return a place as text: `workload.flows.sizes`, `schemes[1].name`."""
    return steps_text(path).removeprefix(".")


def path_of(text: str) -> Path:
    """Return the path that `text_of` writes as *text*."""
    return tuple(int(index) if index else name for name, index in _STEP.findall(text))


def read(text: str, filename: str) -> Source:
    """Return *text* as plain data; ``on``, ``off``, ``yes`` and ``no`` are words, as in YAML 1.2.

    A syntax error, a duplicate key or a key that is not text is a problem, never an exception.
    """
    source = Source(filename=filename)
    if _brackets(text) > DEEPEST:  # for which the parser would take a time that grows with their square
        return Source(problems=[Problem(1, 1, "", "is nested too deeply", filename)], filename=filename)
    try:
        node = _composed(text)
        if node is not None:
            _Reader(source, filename).read(node, ())
    except (_TooMuch, RecursionError) as error:
        text = str(error) if isinstance(error, _TooMuch) else "is nested too deeply"
        return Source(problems=[Problem(1, 1, "", text, filename)], filename=filename)
    except _TooManyProblems:
        pass  # those that were found are listed
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        source.problems.append(
            Problem(line, column, "", f"is not YAML: {error.problem or error.context}", filename)
        )
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        message = f"is not YAML: character {text[error.position]!r} is not allowed"
        source.problems.append(Problem(line, column, "", message, filename))
    return source


def _brackets(text: str) -> int:
    """Return how deep brackets are nested at most; those within quotes count, too."""
    depth = deepest = 0
    for bracket in re.finditer(r"[\[\]{}]", text):
        depth = depth + 1 if bracket[0] in "[{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def _composed(text: str) -> yaml.Node | None:
    """Return the nodes of *text*. Raises YAMLError, _TooMuch and RecursionError.

    Compiled, PyYAML's parser takes a fifth of the time; what is wrong with a file is said in the words of the other.
    """
    if yaml.__with_libyaml__ and not _READ_OTHERWISE.search(text):
        try:
            return yaml.compose(text, Loader=_CompiledLoader)
        except (yaml.YAMLError, UnicodeError):
            pass
    return yaml.compose(text, Loader=_Loader)


class _Limited(yaml.composer.Composer):
    """Stops where there are too many keys and values."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next node, as PyYAML's composer does. Raises _TooMuch."""
        self.nodes += 1
        if self.nodes > 2 * MOST_VALUES:
            raise _TooMuch(f"has more than {MOST_VALUES} values")
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


class _Resolver(yaml.resolver.Resolver):
    """Without YAML 1.1's on, off, yes and no as truth values."""


_Resolver.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":bool")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Resolver.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


class _Loader(_Limited, _Resolver, yaml.SafeLoader):
    """PyYAML's parser in Python."""


if yaml.__with_libyaml__:

    class _CompiledLoader(_Limited, _Resolver, yaml.CSafeLoader):
        """The one in C: libyaml, as all wheels of PyYAML have it."""

        def __init__(self, stream: str) -> None:
            yaml.CSafeLoader.__init__(self, stream)
            _Limited.__init__(self)


class _TooMuch(Exception):
    """A file that stands for more than is read."""


class _TooManyProblems(Exception):
    """A file of which no more is read, since enough is wrong with it."""


def _words(error: Exception) -> str:
    """Return what an error says, up to a length; where that is one value only, its kind, too."""
    if isinstance(error, yaml.MarkedYAMLError):
        return cut(str(error.problem or error.context))  # where it stands is said anyway
    return cut(str(error) if isinstance(error, yaml.YAMLError | ValueError) else repr(error))


def _kind(node: yaml.Node) -> str:
    """Return what a key is that is no text."""
    if isinstance(node, yaml.ScalarNode):
        return shown(node.value)
    return "a mapping" if isinstance(node, yaml.MappingNode) else "a list"


class _Reader:
    def __init__(self, source: Source, filename: str) -> None:
        self._source = source
        self._filename = filename
        self._constructor = yaml.constructor.SafeConstructor()
        self._above: set[int] = set()
        self._characters = 0
        source.data = None

    def read(self, node: yaml.Node, path: Path) -> None:
        self._source.data = self._value(node, path)

    def _problem(self, node: yaml.Node, path: Path, message: str) -> None:
        if len(self._source.problems) == MOST_PROBLEMS:
            raise _TooManyProblems
        mark = node.start_mark
        self._source.problems.append(
            Problem(mark.line + 1, mark.column + 1, text_of(path), message, self._filename)
        )

    def _value(self, node: yaml.Node, path: Path) -> Any:
        self._source.values[path] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if id(node) in self._above:
            self._problem(node, path, "an alias must not lie within what it stands for")
            return None
        if len(self._source.values) > MOST_VALUES:
            raise _TooMuch(f"has more than {MOST_VALUES} values")
        if node.tag.rpartition(":")[2] not in ("map", "seq") and not isinstance(node, yaml.ScalarNode):
            self._problem(node, path, f"tag {shown(node.tag)} means nothing here: leave it out")
            return None
        self._above.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]
            return self._scalar(node, path)
        finally:
            self._above.discard(id(node))

    def _scalar(self, node: yaml.Node, path: Path) -> Any:
        self._characters += len(node.value)
        if self._characters > MOST_CHARACTERS:
            raise _TooMuch(
                f"has more than {MOST_CHARACTERS} characters in its values, those of aliases included"
            )
        if _SURROGATE.search(node.value):
            self._problem(
                node, path, "holds half a character (a lone surrogate), which is not text: leave it out"
            )
            return None
        if node.tag.endswith((":timestamp", ":binary")):
            return str(node.value)
        if node.tag.endswith((":int", ":float")) and (":" in node.value or len(node.value) > LONGEST_NUMBER):
            # YAML 1.1 reads 1:30 as 90, by a sum whose time grows with the square of its length
            self._problem(
                node,
                path,
                f"{node.value[:40]!r} is not a number here: write it in decimal, or as text in quotes",
            )
            return None
        try:
            value = self._constructor.construct_object(node)
        except (yaml.YAMLError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
            # what PyYAML raises for a tag that does not fit its value, as in `!!bool foo`
            self._problem(
                node,
                path,
                f"cannot be read as {node.tag.rpartition(':')[2][:LONGEST_SHOWN]}: {_words(error)}",
            )
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self._problem(node, path, f"{node.value} is not a finite number")
            return None
        return value

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node, path) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                self._problem(key_node, path, f"a key must be text, not {_kind(key_node)}")
                continue
            if len(key) > LONGEST_KEY:
                self._problem(key_node, path, f"a key has at most {LONGEST_KEY} characters, not {len(key)}")
                continue
            here = (*path, key)
            if key in result:
                self._problem(key_node, here, f"{key!r} is given twice")
                continue
            self._source.keys[here] = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            result[key] = self._value(value_node, here)
        return result
