"""The sharing graph, which contains every computation of all workflows once.

Source: docs/script.md, section 6.

Rules of this file:

* A node is defined by its computation: kind, operator, window and inputs. Two expressions with the
  same node are computed once, whatever their names are and whoever wrote them.
* Inputs have smaller numbers, so the nodes are in an order in which they can be computed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from model.vocabulary.script.config import ScriptConfig
from model.vocabulary.script.problems import constant
from model.vocabulary.script.slices import HOUR_MS, Span
from model.vocabulary.script.tree import (
    Across,
    Arithmetic,
    Expression,
    Name,
    Sensor,
    Union,
    Window,
    Workflow,
    children,
    is_computed,
    is_constant,
)

COMMUTATIVE = frozenset({"+", "*", "max", "min", "avg", "sum"})
"""Operations whose operands may stand in any order."""
SENSOR, CONSTANT, UNION, WINDOW, OPERATION = "sensor", "constant", "union", "window", "operation"


class Node(NamedTuple):
    """One computation."""

    kind: str
    op: str = ""
    inputs: tuple[int, ...] = ()
    span: Span | None = None
    sensor: str = ""
    value: float = 0.0

    @property
    def is_computed(self) -> bool:
        """Return whether its tuples are results and not tuples of sensors."""
        return self.kind in (WINDOW, OPERATION)


class Output(NamedTuple):
    """A named statement of a workflow."""

    workflow: str
    name: str
    node: int
    own: tuple[int, ...]
    """Computations of the statement itself, without those of names in it."""
    is_result: bool
    """True if the statement is a window, an operation, or the name of one; a union is not."""


@dataclass(frozen=True)
class Graph:
    """Nodes in an order of computing, and the names that some of them have."""

    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    per_hour: tuple[Fraction, ...]
    """Largest number of tuples an hour, by node."""
    written: int
    """Number of computations in the scripts, before any was shared."""

    @cached_property
    def computed(self) -> tuple[int, ...]:
        """Nodes that compute something."""
        return tuple(number for number, node in enumerate(self.nodes) if node.is_computed)

    def parts(self, number: int) -> tuple[int, ...]:
        """Return the sensors and computed nodes whose tuples a node has, as often as it does."""
        node = self.nodes[number]
        if node.kind == CONSTANT:
            return ()
        return node.inputs if node.kind == UNION else (number,)

    @cached_property
    def reads(self) -> Mapping[int, tuple[int, ...]]:
        """The sensors and computed nodes that each computed node reads, also through unions."""
        return {
            number: tuple(
                dict.fromkeys(
                    [part for each in self.nodes[number].inputs for part in self.parts(each)]
                )
            )
            for number in self.computed
        }

    @cached_property
    def readers(self) -> Mapping[int, tuple[int, ...]]:
        """The windows and operations that read a sensor or result, by its node."""
        found: dict[int, list[int]] = {}
        for number, streams in self.reads.items():
            for each in streams:
                found.setdefault(each, []).append(number)
        return {stream: tuple(numbers) for stream, numbers in found.items()}

    @cached_property
    def windows(self) -> Mapping[int, tuple[int, ...]]:
        """The windows over each stream that has some."""
        found: dict[int, list[int]] = {}
        for number, node in enumerate(self.nodes):
            if node.span is not None:
                found.setdefault(node.inputs[0], []).append(number)
        return {stream: tuple(numbers) for stream, numbers in sorted(found.items())}

    def spans(self) -> Mapping[int, tuple[Span, ...]]:
        """Return the lengths and slides of the windows over each stream that has some."""
        spans = [node.span for node in self.nodes]
        return {
            stream: tuple(sorted({span for span in map(spans.__getitem__, numbers) if span}))
            for stream, numbers in self.windows.items()
        }


def compile_graph(config: ScriptConfig) -> Graph:
    """Compile the workflows of a configuration into a sharing graph."""
    return compile_workflows(config.workflows, dict(config.sensors))


def compile_workflows(workflows: Iterable[Workflow], sensors: Mapping[str, int]) -> Graph:
    """Compile some workflows into a sharing graph; ``sensors`` has their tuples an hour."""
    building = _Building()
    for workflow in workflows:
        building.enter(workflow)
    nodes = tuple(building.nodes)
    rates: list[Fraction] = []
    for node in nodes:
        rates.append(_per_hour(node, sensors, rates))
    return Graph(nodes, tuple(building.outputs), tuple(rates), building.written)


class _Building:
    """A graph that grows; nodes are numbered in the order in which they are met."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.numbers: dict[Node, int] = {}
        self.outputs: list[Output] = []
        self.written = 0

    def enter(self, workflow: Workflow) -> None:
        """Add the statements of a workflow, each after the statements that it needs."""
        names: dict[str, int] = {}
        results: set[str] = set()
        for statement in workflow.statements:
            own: list[int] = []
            number = names[statement.name] = self._node(statement.expression, names, own)
            listed = tuple(dict.fromkeys(own))
            is_result = is_computed(statement.expression, results)
            self.outputs.append(Output(workflow.name, statement.name, number, listed, is_result))
            results |= {statement.name} if is_result else set()

    def _node(self, expression: Expression, names: Mapping[str, int], own: list[int]) -> int:
        if isinstance(expression, Name):
            return names[expression.name]
        if isinstance(expression, Sensor):
            return self._numbered(Node(SENSOR, sensor=expression.id))
        if is_constant(expression):
            return self._numbered(Node(CONSTANT, value=constant(expression)))
        if isinstance(expression, Union):
            return self._union([self._node(part, names, own) for part in expression.parts])
        if isinstance(expression, Window):
            span = Span(expression.length_ms, expression.slide_ms, expression.zone)
            source = self._node(expression.source, names, own)
            node = Node(WINDOW, expression.op, (source,), span)
        else:
            assert isinstance(expression, Across | Arithmetic)
            inputs = [self._node(side, names, own) for side in children(expression)]
            if expression.op in COMMUTATIVE:
                inputs.sort()
            node = Node(OPERATION, expression.op, tuple(inputs))
        self.written += 1
        number = self._numbered(node)
        own.append(number)
        return number

    def _union(self, parts: list[int]) -> int:
        """Flatten unions within unions; a union of one stream is that stream."""
        flat: list[int] = []
        for part in parts:
            node = self.nodes[part]
            flat.extend(node.inputs if node.kind == UNION else (part,))
        inputs = tuple(sorted(flat))
        return inputs[0] if len(inputs) == 1 else self._numbered(Node(UNION, inputs=inputs))

    def _numbered(self, node: Node) -> int:
        if node not in self.numbers:
            self.numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return self.numbers[node]


def _per_hour(node: Node, sensors: Mapping[str, int], rates: list[Fraction]) -> Fraction:
    """Return a bound: one result per slide of a window, or per input tuple of an operation."""
    if node.kind == SENSOR:
        return Fraction(sensors[node.sensor])
    if node.span is not None:
        return Fraction(HOUR_MS, node.span.slide_ms)
    return sum((rates[each] for each in node.inputs), Fraction())
