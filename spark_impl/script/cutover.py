"""How far back a query must read when its scripts come into force at a stamp (docs/script.md).

A window needs what its length reaches back to. An operation needs the latest values of its streams,
which may be as old as the stream: for it everything is read.
"""

from collections.abc import Mapping

from model.vocabulary.script import MILLISECOND_US
from spark_impl.script.graph import WINDOW, Graph, readers


def needed_since_us(graph: Graph, since_us: int) -> Mapping[int, int]:
    """By sensor that is asked for: no earlier tuple changes any result stamped from then on."""
    reading = readers(graph)
    needed: dict[int, int] = {}
    for number in reversed(range(len(graph.nodes))):
        own = [since_us]
        for reader in reading.get(number, ()):
            node = graph.nodes[reader]
            reach_us = node.length_ms * MILLISECOND_US
            own.append(needed[reader] - reach_us if node.kind == WINDOW else 0)
        needed[number] = max(min(own), 0)
    return {number: needed[number] for number in graph.asked_for}
