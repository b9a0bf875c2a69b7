"""YAML text as plain data, and where in the text each part of it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import yaml

from capstan_client.errors import CapstanError

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")
_UNKNOWN: Final = re.compile(r"field '(.+?)' is not known")


class YamlError(CapstanError, ValueError):
    """No YAML, or not plain data. ``line``, ``column``: where, from 1 on."""

    def __init__(self, text: str, line: int, column: int) -> None:
        super().__init__(text)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class YamlFile:
    """``data``: lists, dicts with text keys, and scalars."""

    data: Any
    _node: yaml.Node | None

    def place(self, where: str, text: str) -> tuple[int, int]:
        """Return the line and column, from 1 on, of what an error of `plain.reading` is about.

        where: the error's path, beginning with a name of the whole: ``scheme.short.coding``. text: its text; an
        unknown field is reported there, and its own place is better than that of the object that has it.
        """
        node = self._node
        if node is None:
            return 1, 1
        position = node
        for name, index in _STEP.findall(where.partition(".")[2]):
            below = _below(position, name, index)
            if below is None:
                break
            node, position = below
        unknown = _UNKNOWN.match(text)
        if unknown is not None and (below := _below(position, unknown[1], "")) is not None:
            node = below[0]
        return node.start_mark.line + 1, node.start_mark.column + 1


def parse(text: str) -> YamlFile:
    """Return plain data; no key twice; ``on`` and ``off`` are words, as in YAML 1.2. Raises YamlError."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        return YamlFile(None if node is None else loader.construct_document(node), node)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, error.position - before.rfind("\n")
        raise YamlError(f"character {text[error.position]!r} is not allowed", line, column) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise YamlError(problem, *((mark.line + 1, mark.column + 1) if mark else (1, 1))) from None
    except RecursionError:
        raise YamlError("is nested too deeply", 1, 1) from None
    except ValueError as error:  # a number of thousands of digits, for one
        raise YamlError(str(error), 1, 1) from None


def _below(node: yaml.Node, name: str, index: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return where the part *name* or *index* of *node* begins (a field with its key), and the part."""
    if isinstance(node, yaml.MappingNode) and name:
        for key, value in node.value:
            if key.value == name:
                return key, value
    if isinstance(node, yaml.SequenceNode) and index and int(index) < len(node.value):
        item = node.value[int(index)]
        return item, item
    return None


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be text", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} is given twice", key.start_mark
                )
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":timestamp"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))
