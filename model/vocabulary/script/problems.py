"""Problems of workflows that a single node of the tree does not show.

Rules of this file:

* A problem says where it is and what the author could have meant; the reader of the text decides
  how to show it.
* Problems come in the order of the statements, lazily.
"""

import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from math import inf, isfinite
from typing import NamedTuple

from model.vocabulary.script.tree import (
    DEPTH_MAX,
    PARTS_MAX,
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Statement,
    Union,
    Workflow,
    is_constant,
    walk,
)


class Problem(NamedTuple):
    """One problem of a workflow."""

    at: int
    """Position in the text that the workflow was read from."""
    word: str
    """Text at that position."""
    sentence: str
    """Description of the problem, without a full stop."""
    known: tuple[str, ...] = ()
    """Words that are allowed at that position."""


OPERATIONS: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else inf,
}
"""Arithmetic in float64; a division by zero is not finite."""


def constant(expression: Expression) -> float:
    """Return the value of an expression without a stream, at most ``DEPTH_MAX`` deep."""
    if isinstance(expression, Arithmetic):
        left, right = constant(expression.left), constant(expression.right)
        return OPERATIONS[expression.op](left, right)
    assert isinstance(expression, Number)
    return expression.value


def problems(workflow: Workflow, sensors: Collection[str] | None = None) -> Iterator[Problem]:
    """Yield all problems; if ``sensors`` are given, others are a problem."""
    places = {each.name: each for each in reversed(workflow.statements)}
    known = frozenset(sensors or ())
    # Names of statements that read the sensor of the same name.
    own = {each.name for each in workflow.statements if Sensor(each.name) in _nodes(each)}
    # Number of parts of each name in a union.
    earlier: dict[str, int] = {}
    for each in workflow.statements:
        yield from _name_problems(each, places, known - own)
        deep = next((node for node, depth in walk(each.expression) if depth > DEPTH_MAX), None)
        if deep is not None:
            sentence = f"an expression is at most {DEPTH_MAX} deep: give a part of it a name"
            yield Problem(deep.at, "", sentence)
        else:
            for node, _ in walk(each.expression):
                if isinstance(node, Name) and node.name not in earlier:
                    yield _no_name(node.at, node.name, each, places, earlier, known)
                elif isinstance(node, Sensor) and node.id in earlier:
                    sentence = f"{node.id!r} is an earlier name, not a sensor"
                    yield Problem(node.at, f'"{node.id}"', sentence)
                elif isinstance(node, Sensor) and node.id not in known:
                    if node.id in places and node.id not in own:
                        yield _no_name(node.at, node.id, each, places, earlier, known)
                    elif sensors is not None:
                        sentence = f"there is no sensor and no earlier name {node.id!r}"
                        listed = (*earlier, *sorted(known))
                        yield Problem(node.at, f'"{node.id}"', sentence, listed)
            yield from _union_problems(each.expression, earlier)
            yield from _constant_problems(each.expression)
        parts = 1 if deep is not None else _parts(each.expression, earlier)
        earlier[each.name] = parts if parts <= PARTS_MAX else 1


def _nodes(statement: Statement) -> Iterator[Expression]:
    return (node for node, _ in walk(statement.expression))


def _name_problems(
    statement: Statement, places: Mapping[str, Statement], sensors: Collection[str]
) -> Iterator[Problem]:
    name = statement.name
    if places[name] is not statement:
        yield Problem(statement.at, name, f"{name!r} is defined a second time")
    if name in sensors:
        sentence = f"{name!r} is the name of a sensor, which would be out of reach"
        yield Problem(statement.at, name, sentence)


def _no_name(
    at: int,
    name: str,
    statement: Statement,
    places: Mapping[str, Statement],
    earlier: Collection[str],
    sensors: Collection[str],
) -> Problem:
    """Return the problem of a name that no earlier statement defines."""
    if name == statement.name:
        return Problem(at, name, f"{name!r} is needed for itself: that is a cycle")
    if name in places:
        needed = _needs(places[name], places, statement.name)
        why = "and needs this one: that is a cycle" if needed else "and has to come before this"
        return Problem(at, name, f"{name!r} is defined later, {why}")
    if name in sensors:
        return Problem(at, name, f'sensors are written in quotes: "{name}"')
    return Problem(at, name, f"there is no earlier name {name!r}", tuple(earlier))


def _needs(statement: Statement, places: Mapping[str, Statement], name: str) -> bool:
    """Return whether a statement needs the statement ``name``, directly or indirectly."""
    waiting, seen = [statement], {statement.name}
    while waiting:
        for node in _nodes(waiting.pop()):
            if isinstance(node, Name) and node.name in places and node.name not in seen:
                seen.add(node.name)
                waiting.append(places[node.name])
    return name in seen


def _union_problems(expression: Expression, earlier: Mapping[str, int]) -> Iterator[Problem]:
    for node, _ in walk(expression):
        if isinstance(node, Union) and _parts(node, earlier) > PARTS_MAX:
            sentence = f"a union has at most {PARTS_MAX:_} parts, those of unions in it included"
            yield Problem(node.at, "union", sentence)
            return


def _parts(expression: Expression, earlier: Mapping[str, int]) -> int:
    """Return the number of parts of an expression in a union; it must not be too deep."""
    if isinstance(expression, Name):
        return earlier.get(expression.name, 1)
    if isinstance(expression, Union):
        return sum(_parts(part, earlier) for part in expression.parts)
    return 1


def _constant_problems(expression: Expression) -> Iterator[Problem]:
    if is_constant(expression):
        yield Problem(expression.at, "", "there is no stream in it, only numbers")
        return
    for node, _ in walk(expression):
        if isinstance(node, Arithmetic):
            if is_constant(node) and not isfinite(constant(node)):
                yield Problem(node.at, node.op, "this cannot be computed: it is not finite")
            elif node.op == "/" and is_constant(node.right) and constant(node.right) == 0:
                yield Problem(node.at, node.op, "this divides by zero, always")
