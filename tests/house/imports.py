"""Imports between modules, read from the source without importing anything."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache

from tests.house.tree import module_name, modules, tree_of

__all__ = ["cycles", "importers", "imports"]


@cache
def imports() -> dict[str, frozenset[str]]:
    """Of every module those of ours that it imports, at its top or inside functions, but for type checkers."""
    names = {module_name(path): path for path in modules()}
    return {
        name: frozenset(
            found
            for node in _reached(tree_of(path))
            for found in _named(node, name if path.name == "__init__.py" else name.rpartition(".")[0], names)
            if found != name
        )
        for name, path in names.items()
    }


def importers() -> dict[str, set[str]]:
    """Of every module those that import it."""
    found: dict[str, set[str]] = {name: set() for name in imports()}
    for name, imported in imports().items():
        for each in imported:
            found[each].add(name)
    return found


def cycles(graph: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Modules that import each other, directly or by way of others (Tarjan's strongly connected components)."""
    order, low = dict[str, int](), dict[str, int]()
    stack, found = list[str](), list[list[str]]()

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for each in sorted(graph[name]):
            if each not in order:
                visit(each)
                low[name] = min(low[name], low[each])
            elif each in stack:
                low[name] = min(low[name], order[each])
        if low[name] == order[name]:
            place = stack.index(name)
            component = stack[place:]
            del stack[place:]
            if len(component) > 1:
                found.append(sorted(component))

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return sorted(found)


def _reached(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from _reached(node)


def _named(node: ast.Import | ast.ImportFrom, package: str, names: Collection[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in names)
        return
    base = node.module or ""
    if node.level:
        parents = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*parents, base] if base else parents)
    for alias in node.names:
        if f"{base}.{alias.name}" in names:
            yield f"{base}.{alias.name}"
        elif base in names:
            yield base
