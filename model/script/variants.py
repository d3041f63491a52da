"""Rules that look right and are not: literal readings of the source, and planted bugs.

Rules of this file:

* A variant is the rules of the model with entries replaced. Its example is a smallest workload on
  which the reference keeps the promise and the variant does not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate

from model.checking.variants import AGREEMENT, PLANTED, Variant
from model.script.claims import LOAD, RESULTS
from model.script.rules import RULES, Rules
from model.script.run import system
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import MILLISECOND_US
from model.vocabulary.script.tree import (
    Arithmetic,
    Expression,
    Sensor,
    Statement,
    Window,
    Workflow,
)
from model.vocabulary.settings import PlainData

PAPER = "the published framework, read literally"

_variant = partial(Variant, system=system)


# ------------------------------------------------------------------------------------ the examples

A, B = Sensor("a"), Sensor("b")
Measured = tuple[str, int, float]
"""A sensor, a time in milliseconds, a value."""


def _flow(**statements: Expression) -> Workflow:
    return Workflow("w", tuple(Statement(each, said) for each, said in statements.items()))


def _case(flows: Sequence[Workflow], *measured: Measured, **settings: PlainData) -> Workload:
    config = ScriptConfig(tuple(flows), (("a", 1), ("b", 1)), **settings)
    # Arrivals are in order: a tuple arrives no earlier than those measured before it.
    arrived_ms = accumulate((at_ms for _, at_ms, _ in measured), max)
    arrivals = tuple(
        Event(seq, seq, sensor, at_ms * MILLISECOND_US, value, now_ms * MILLISECOND_US)
        for seq, ((sensor, at_ms, value), now_ms) in enumerate(
            zip(measured, arrived_ms, strict=True)
        )
    )
    return Workload("script", arrivals, config.to_json())


VARIANTS: Mapping[str, Variant[Rules]] = {
    variant.name: variant
    for variant in (
        _variant(
            "target_not_charged",
            LOAD,
            "The load of the worker that gets a component stays as it was.",
            PAPER,
            "The load of the component is added to it.",
            replace(RULES, is_charged=False),
            _case(
                [_flow(x=Window("max", A, 1, 1), y=Window("max", B, 1, 1))],
                workers=2,
                # Otherwise the component would be split, which hides the mistake.
                cap_percent=200,
            ),
        ),
        _variant(
            "at_every_change",
            RESULTS,
            "An operation gives a result whenever an input changes, one input after the other.",
            PAPER,
            "It gives one result for each time, after all changes of that time.",
            replace(RULES, is_atomic=False),
            _case([_flow(x=Arithmetic("+", A, B))], ("a", 0, 1), ("a", 0, 2), ("b", 0, 1)),
        ),
        _variant(
            "watermark_falls",
            AGREEMENT,
            "A watermark falls when the wait becomes longer.",
            PLANTED,
            "A watermark never falls: what was known stays known.",
            replace(RULES, watermark_us=lambda _before_us, reached_us: reached_us),
            _case(
                [_flow(x=Window("sum", A, 1, 1), y=Window("sum", B, 1, 1))],
                *(("a", at_ms, 1) for at_ms in (3, 4, 0, 3)),
                lateness_us=3 * MILLISECOND_US,
                watermark="disorder",
            ),
        ),
    )
}
