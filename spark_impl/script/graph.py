"""All workflows as one graph (docs/script.md, section 6): equal nodes are one node.

Rules of this file:

* Nodes are numbered in the order in which they are first needed: workflows and statements as
  given, from left to right, the inputs of a node before the node.
* Nothing here depends on workers or tuples.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from model.vocabulary import ScriptConfig
from model.vocabulary.script.problems import constant
from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Union,
    Window,
    Workflow,
    is_constant,
)

SENSOR, NUMBER, UNION, WINDOW, OPERATION = "sensor", "number", "union", "window", "operation"
HOUR_MS = 3_600_000
_ORDERED = ("-", "/")
"""Operators whose sides may not be exchanged."""


class Node(NamedTuple):
    """A sensor, number, union, window or operation, which the graph has only once."""

    kind: str
    op: str = ""
    inputs: tuple[int, ...] = ()
    """Numbers of the nodes that this node reads."""
    length_ms: int = 0
    slide_ms: int = 0
    sensor: str = ""
    value: float = 0.0
    """The value of a number."""


class Output(NamedTuple):
    """The connection of one statement with the graph."""

    workflow: str
    name: str
    node: int
    recorded: bool
    """Whether the tuples of the statement are results."""
    own: tuple[int, ...]
    """Nodes of the windows and operations that are written in the statement."""


@dataclass(frozen=True)
class Graph:
    """Nodes, each after its inputs, and the statements that need them."""

    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    per_hour: Mapping[str, int]
    """Number of tuples per hour, by sensor."""
    written: int
    """Number of windows and operations in the scripts, before equal ones were shared."""

    @cached_property
    def computed(self) -> tuple[int, ...]:
        """Numbers of the nodes that are windows or operations."""
        return tuple(n for n, node in enumerate(self.nodes) if node.kind in (WINDOW, OPERATION))

    @cached_property
    def reads(self) -> Mapping[int, tuple[int, ...]]:
        """The sensors and results that each window or operation reads, each once, in order."""
        return {n: tuple(sorted(set(self._streams(n)))) for n in self.computed}

    @cached_property
    def readers(self) -> Mapping[int, tuple[int, ...]]:
        """The windows and operations that read a sensor or result, by its node."""
        found: dict[int, list[int]] = {}
        for number, streams in self.reads.items():
            for each in streams:
                found.setdefault(each, []).append(number)
        return {stream: tuple(numbers) for stream, numbers in found.items()}

    @cached_property
    def asked_for(self) -> tuple[int, ...]:
        """Nodes of the sensors that a window or an operation reads."""
        found = sorted(set(chain.from_iterable(self.reads.values())))
        return tuple(n for n in found if self.nodes[n].kind == SENSOR)

    @cached_property
    def windows(self) -> Mapping[int, tuple[int, ...]]:
        """Windows over each stream, by stream."""
        found: dict[int, list[int]] = {}
        for number in self.computed:
            node = self.nodes[number]
            if node.kind == WINDOW:
                found.setdefault(node.inputs[0], []).append(number)
        return {source: tuple(numbers) for source, numbers in found.items()}

    @cached_property
    def rates(self) -> tuple[Fraction, ...]:
        """Upper bound of the tuples per hour of each node."""
        found: list[Fraction] = []
        for node in self.nodes:
            if node.kind == SENSOR:
                found.append(Fraction(self.per_hour[node.sensor]))
            elif node.kind == WINDOW:
                found.append(Fraction(HOUR_MS, node.slide_ms))
            else:
                found.append(sum((found[each] for each in node.inputs), Fraction()))
        return tuple(found)

    def parts(self, number: int) -> tuple[int, ...]:
        """Return the parts of a stream: those of a union with repetitions, or the stream itself."""
        node = self.nodes[number]
        return node.inputs if node.kind == UNION else (number,)

    def _streams(self, number: int) -> Iterator[int]:
        for each in self.nodes[number].inputs:
            yield from (part for part in self.parts(each) if self.nodes[part].kind != NUMBER)


def make_graph(config: ScriptConfig) -> Graph:
    """Return the graph of a configuration, with equal nodes shared."""
    builder = _GraphBuilder()
    outputs = list(chain.from_iterable(map(builder.outputs, config.workflows)))
    return Graph(tuple(builder.nodes), tuple(outputs), dict(config.sensors), builder.written)


class _GraphBuilder:
    """A graph under construction: nodes are shared as they are added."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.written = 0
        self._numbers: dict[Node, int] = {}

    def outputs(self, workflow: Workflow) -> Iterator[Output]:
        """Yield the outputs of the statements of a workflow."""
        names: dict[str, Output] = {}
        for statement in workflow.statements:
            own: dict[int, None] = {}
            node = self._node(statement.expression, names, own)
            recorded = isinstance(statement.expression, Window | Across | Arithmetic)
            if isinstance(statement.expression, Name):
                recorded = names[statement.expression.name].recorded
            made = Output(workflow.name, statement.name, node, recorded, tuple(own))
            names[statement.name] = made
            yield made

    def _node(
        self, expression: Expression, names: Mapping[str, Output], own: dict[int, None]
    ) -> int:
        """Return the node of an expression; add its windows and operations to ``own``."""
        if isinstance(expression, Name):
            return names[expression.name].node
        if isinstance(expression, Sensor):
            return self._number(Node(SENSOR, sensor=expression.id))
        if isinstance(expression, Number) or is_constant(expression):
            return self._number(Node(NUMBER, value=float(constant(expression)) + 0.0))
        if isinstance(expression, Union):
            return self._union([self._node(part, names, own) for part in expression.parts])
        if isinstance(expression, Window):
            inside = (self._node(expression.source, names, own),)
            node = Node(WINDOW, expression.op, inside, expression.length_ms, expression.slide_ms)
        else:
            parts = (
                (expression.left, expression.right)
                if isinstance(expression, Arithmetic)
                else expression.parts
            )
            inputs = [self._node(part, names, own) for part in parts]
            ordered = inputs if expression.op in _ORDERED else sorted(inputs)
            node = Node(OPERATION, expression.op, tuple(ordered))
        self.written += 1
        number = self._number(node)
        own[number] = None
        return number

    def _union(self, parts: Sequence[int]) -> int:
        flat: list[int] = []
        for part in parts:
            node = self.nodes[part]
            flat += node.inputs if node.kind == UNION else (part,)
        return flat[0] if len(flat) == 1 else self._number(Node(UNION, inputs=tuple(sorted(flat))))

    def _number(self, node: Node) -> int:
        number = self._numbers.setdefault(node, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(node)
        return number
