"""A plan as tables: what is computed, how streams are cut, and the work of each worker.

A computation is named after the first statement that contains it; one without a name is called by
its number.
"""

import sys
from collections.abc import Mapping
from fractions import Fraction

from spark_impl.runtime.arrays import PlainRow
from spark_impl.script.graph import NUMBER, OPERATION, SENSOR, UNION
from spark_impl.script.plan import Plan

_SIGNS = ("+", "-", "*", "/")
_LARGEST = Fraction(sys.float_info.max)


def computations(plan: Plan) -> list[PlainRow]:
    """Return a row for each window and operation.

    ``number``, ``says``, ``names``, ``worker``, ``to`` (other workers that read the result) and
    ``per_hour`` (tuples, at most).
    """
    names = _names(plan)
    to: dict[int, tuple[int, ...]] = {}
    for worker in range(plan.workers):
        to.update(plan.share(worker).sent)
    return [
        {
            "number": number,
            "says": _said(plan, names, number),
            "names": names.get(number, ()),
            "worker": plan.placement.worker[number],
            "to": to.get(number, ()),
            "per_hour": _float(plan.graph.rates[number]),
        }
        for number in plan.graph.computed
    ]


def cuttings(plan: Plan) -> list[PlainRow]:
    """Return a row for each stream that has windows.

    ``stream``, ``panes`` (whether it is cut into panes), ``combs`` (pairs of milliseconds), and the
    steps per hour that each way costs: ``panes_cost`` and ``edges_cost``.
    """
    names = _names(plan)
    return [
        {
            "stream": _called(plan, names, source),
            "panes": cutting.is_panes,
            "combs": tuple(map(tuple, cutting.combs)),
            "panes_cost": _float(cutting.panes_cost),
            "edges_cost": _float(cutting.edges_cost),
        }
        for source, cutting in plan.cuttings.items()
    ]


def workers(plan: Plan) -> list[PlainRow]:
    """Return a row for each worker: ``worker``, ``sensors`` sent to it, and their ``per_hour``."""
    nodes = plan.graph.nodes
    return [
        {
            "worker": worker,
            "sensors": tuple(sorted(nodes[each].sensor for each in own)),
            "per_hour": load,
        }
        for worker, (own, load) in enumerate(
            zip(plan.placement.hosts, plan.placement.loads, strict=True)
        )
    ]


def figures(plan: Plan) -> PlainRow:
    """Return the totals of a plan and those of placement by hash; rates are tuples per hour."""
    placed, baseline = plan.placement, plan.baseline
    return {
        "written": plan.graph.written,
        "computed": len(plan.graph.computed),
        "sensors": len(plan.graph.per_hour),
        "asked_for": len(plan.graph.asked_for),
        "placement": placed.way,
        "cap": plan.cap,
        "largest_load": max(placed.loads),
        "communication": _float(placed.communication),
        "largest_load_by_hash": max(baseline.loads),
        "communication_by_hash": _float(baseline.communication),
    }


def _float(rate: Fraction) -> float:
    # Rates of operations on operations may double with every statement.
    return float(min(rate, _LARGEST))


def _names(plan: Plan) -> dict[int, tuple[str, ...]]:
    return {
        number: tuple(f"{each.workflow}.{each.name}" for each in outputs)
        for number, outputs in plan.statements.items()
    }


def _called(plan: Plan, names: Mapping[int, tuple[str, ...]], number: int) -> str:
    """Return the name of a node within the text of another one."""
    if plan.graph.nodes[number].kind in (SENSOR, NUMBER, UNION):
        return _said(plan, names, number)
    return names.get(number, (f"#{number}",))[0]


def _said(plan: Plan, names: Mapping[int, tuple[str, ...]], number: int) -> str:
    """Return the computation of a node, in the language of scripts."""
    node = plan.graph.nodes[number]
    if node.kind == SENSOR:
        return f'"{node.sensor}"'
    if node.kind == NUMBER:
        return f"{node.value:g}"
    inputs = [_called(plan, names, each) for each in node.inputs]
    if node.op in _SIGNS:
        return f" {node.op} ".join(inputs)
    if node.kind not in (UNION, OPERATION):
        inputs += [f"{span:_}" for span in (node.length_ms, node.slide_ms)]
    return f"{node.op or node.kind}({', '.join(inputs)})"
