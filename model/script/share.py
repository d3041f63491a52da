"""What one worker of a placement has to do: plain data, made once.

Source: docs/script.md, section 8.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from model.script.graph import CONSTANT, UNION, Graph, Node
from model.script.placement import Placement
from model.vocabulary.script import MILLISECOND_US


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one worker."""

    graph: Graph
    sensors: Mapping[str, int]
    """Hosted sensors with their nodes."""
    says: frozenset[str]
    """Sensors whose rejected arrivals it records; a worker before it does for the others."""
    own: tuple[int, ...]
    """Windows and operations, in an order of computing."""
    reads: Mapping[int, tuple[int, ...]]
    """By own window or operation: sensors and results."""
    readers: Mapping[int, tuple[int, ...]]
    """By sensor or result that is read here: own windows and operations."""
    below: Mapping[int, tuple[int, ...]]
    """The same with everything that reads one of those, and so on, in an order of computing."""
    parts: Mapping[int, tuple[int, ...]]
    """By input of an own node: the sensors and results that it is made of, as often as it is."""
    windows: Mapping[int, tuple[int, ...]]
    """By stream that is cut: own windows."""
    length_us: Mapping[int, int]
    """By own window."""
    slide_us: Mapping[int, int]
    """By own window."""
    steps_us: Mapping[int, frozenset[int]]
    """By sensor or result: how far apart the stamps are at which a reader of it knows more.

    A window knows more when an end of it is passed; an operation, whenever its input does."""


def share_of(placement: Placement, worker: int) -> Share:
    """Return the part of a worker."""
    graph, nodes = placement.graph, placement.graph.nodes
    hosted = sorted(placement.hosts[worker])
    before = frozenset[int]().union(*placement.hosts[:worker])
    own = tuple([each for each in graph.computed if placement.worker[each] == worker])
    reads = {each: graph.streams(each) for each in own}
    readers = _by_key((stream, each) for each in own for stream in reads[each])
    spans = {each: span for each in own if (span := nodes[each].span) is not None}
    slide_us = {each: span.slide_ms * MILLISECOND_US for each, span in spans.items()}
    return Share(
        graph,
        {nodes[each].sensor: each for each in hosted},
        frozenset(nodes[each].sensor for each in hosted if each not in before),
        own,
        reads,
        readers,
        {stream: _reached(stream, readers) for stream in readers},
        {each: _parts(nodes, each) for number in own for each in nodes[number].inputs},
        _by_key((nodes[each].inputs[0], each) for each in spans),
        {each: span.length_ms * MILLISECOND_US for each, span in spans.items()},
        slide_us,
        {
            stream: frozenset(slide_us.get(each, 1) for each in numbers)
            for stream, numbers in readers.items()
        },
    )


def _by_key(pairs: Iterable[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def _parts(nodes: Sequence[Node], number: int) -> tuple[int, ...]:
    """The sensors and results that an input is made of, as often as it has them."""
    kind = nodes[number].kind
    if kind == CONSTANT:
        return ()
    return nodes[number].inputs if kind == UNION else (number,)


def _reached(stream: int, readers: Mapping[int, Iterable[int]]) -> tuple[int, ...]:
    """Everything that reads a stream, or reads what does, in an order of computing."""
    found: set[int] = set()
    waiting = [stream]
    while waiting:
        new = set(readers.get(waiting.pop(), ())) - found
        found |= new
        waiting.extend(new)
    return tuple(sorted(found))
