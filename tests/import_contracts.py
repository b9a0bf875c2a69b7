"""Contracts of import-linter (`lint-imports`, run by `capstan test`): docs/architecture.md says who may import whom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from grimp import ImportGraph
from importlinter.application import output
from importlinter.domain import fields
from importlinter.domain.contract import Contract, ContractCheck

NATIVE: Final = {"capstan_native": "native"}
"""Compiled modules, by their packages."""
EVERYWHERE: Final = "capstan_client.errors"
"""The root of all exceptions: what every package may import."""
EVERYTHING: Final = "all"
NOTHING: Final = "nothing of ours"
_ROW: Final = re.compile(r"^\| `(?P<package>\w+)/` \|.*\| (?P<may>[^|]+) \|$", re.MULTILINE)
_NAME: Final = re.compile(r"`([\w/]+)`")


@dataclass(frozen=True, slots=True, order=True)
class Crossing:
    """A module imports one of another package, which the table does not let it."""

    importer: str
    imported: str


def package_table(text: str) -> dict[str, frozenset[str] | None]:
    """Return what each package may import: dotted packages; None: all packages.

    Raises:
        ValueError: a cell has neither packages nor a word for all or none.
    """
    table: dict[str, frozenset[str] | None] = {}
    for row in _ROW.finditer(text):
        words = re.sub(r"\(.*?\)", "", row["may"]).strip()
        names = frozenset(name.replace("/", ".") for name in _NAME.findall(words))
        if not names and words not in (EVERYTHING, NOTHING):
            raise ValueError(
                f"package {row['package']}: {words!r} names no package: write `package`, {EVERYTHING} or {NOTHING}"
            )
        table[row["package"]] = None if words == EVERYTHING else names
    return table


def crossings(
    table: Mapping[str, frozenset[str] | None], imports: Iterable[tuple[str, str]]
) -> Iterator[Crossing]:
    """Yield imports (importer, imported) between packages that the table forbids.

    A package without a row may import nothing.
    """
    for importer, imported in imports:
        package, target = importer.partition(".")[0], _of_package(imported)
        if (
            target.partition(".")[0] not in table
            or target.partition(".")[0] == package
            or target == EVERYWHERE
        ):
            continue
        may = table.get(package, frozenset())
        if may is not None and not any(target == name or target.startswith(f"{name}.") for name in may):
            yield Crossing(importer, imported)


def circles(imports: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Return the groups of modules of which each imports every other, directly or by others (Tarjan); sorted."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    groups: list[tuple[str, ...]] = []
    for root in sorted(imports):
        if root in order:
            continue
        order[root] = lowest[root] = len(order)
        waiting.append(root)
        path = [(root, iter(sorted(imports[root])))]
        while path:
            module, below = path[-1]
            for target in below:
                if target not in imports:
                    continue
                if target not in order:
                    order[target] = lowest[target] = len(order)
                    waiting.append(target)
                    path.append((target, iter(sorted(imports[target]))))
                    break
                if target in waiting:
                    lowest[module] = min(lowest[module], order[target])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[module])
                if lowest[module] == order[module]:
                    at = waiting.index(module)
                    if len(waiting) - at > 1:
                        groups.append(tuple(sorted(waiting[at:])))
                    del waiting[at:]
    return sorted(groups)


class PackageTable(Contract):
    """Rooms import what the table in *table*, a Markdown file, lets them."""

    table = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Compare all direct imports with the table."""
        table = package_table(Path(str(self.table)).read_text(encoding="utf-8"))
        missing = sorted({_of_package(module).partition(".")[0] for module in _own(graph)} - set(table))
        wrong = sorted(crossings(table, _imports(graph)))
        return ContractCheck(
            kept=not (wrong or missing), metadata={"wrong": wrong, "missing": missing, "graph": graph}
        )

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print every import that the table forbids, with its lines."""
        for package in check.metadata["missing"]:
            output.print_error(f"{package}/ has no row in {self.table}: add one that says what it may import")
        for crossing in check.metadata["wrong"]:
            details = check.metadata["graph"].get_import_details(
                importer=crossing.importer, imported=crossing.imported
            )
            lines = ", ".join(str(detail["line_number"]) for detail in details)
            output.print_error(f"{crossing.importer} imports {crossing.imported} (line {lines})")
        output.print_error(f"Move what both need to where both may import it, or change {self.table}.")


class NoCircles(Contract):
    """No module imports itself by way of others, whatever its package."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Look for circles among all modules of ours."""
        found = circles({module: graph.find_modules_directly_imported_by(module) for module in _own(graph)})
        return ContractCheck(kept=not found, metadata={"circles": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the modules of every circle."""
        for circle in check.metadata["circles"]:
            output.print_error(
                f"a circle: {', '.join(circle)}: move what they share into a module of its own"
            )


def _own(graph: ImportGraph) -> set[str]:
    return {module for module in graph.modules if not graph.is_module_squashed(module)}


def _imports(graph: ImportGraph) -> Iterator[tuple[str, str]]:
    for importer in _own(graph):
        for imported in graph.find_modules_directly_imported_by(importer):
            yield importer, imported


def _of_package(module: str) -> str:
    first, _, rest = module.partition(".")
    package = NATIVE.get(first, first)
    return f"{package}.{rest}" if rest else package
