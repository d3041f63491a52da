"""Operations that answer while some of their inputs are still of a time ago.

Rules of this file:

1. Everything is tried in a fixed order, fewer tuples first: nothing that was tried before a
   counterexample breaks the promise.
"""

from collections.abc import Iterator
from itertools import product

from model.checking.claims import Verdict, combine
from model.script import make_system
from model.script.claims import RESULTS, judge
from model.script.scopes import explore
from model.script.variants import VARIANTS
from model.vocabulary import Event, ScriptConfig, Trace, Workload
from model.vocabulary.script import (
    MILLISECOND_US,
    Arithmetic,
    Expression,
    Result,
    Sensor,
    Statement,
    Window,
    Workflow,
)
from properties.judging.smallest_stream import smallest
from properties.pages.errata import Findings
from properties.script.formatter import text_of

A, B = Sensor("a"), Sensor("b")
SIDES: tuple[Expression, ...] = (Window("max", A, 2, 2), Window("min", A, 2, 2), A, B)
TUPLES_MAX = 3
TIMES_MS = (0, 2)
VALUES = (1.0, 5.0, 7.0)
"""By position."""
SCOPE = "small"


def half_updated() -> Findings:
    """The first stream with a result that mixes two times."""
    bug = VARIANTS["at_every_change"]
    return smallest(bug, make_system(), judge, _streams(), _told, _scope)


def _streams() -> Iterator[Workload]:
    scripts = [Arithmetic("-", left, right) for left, right in product(SIDES, SIDES)]
    letters = list(product("ab", TIMES_MS))
    for n in range(1, TUPLES_MAX + 1):
        for script, arrived in product(scripts, product(letters, repeat=n)):
            yield _workload(script, arrived)


def _workload(script: Expression, arrived: tuple[tuple[str, int], ...]) -> Workload:
    flow = Workflow("w", (Statement("x", script),))
    config = ScriptConfig((flow,), (("a", 1), ("b", 1)))
    arrivals = tuple(
        Event(seq, seq, sensor, at_ms * MILLISECOND_US, VALUES[seq], seq)
        for seq, (sensor, at_ms) in enumerate(arrived)
    )
    return Workload("script", arrivals, config.to_json())


def _told(workload: Workload, trace: Trace) -> tuple[str, ...]:
    (flow,) = ScriptConfig.from_json(workload.config).workflows
    results = [f"{each.value:g} at {each.ts_us // MILLISECOND_US} ms" for each in trace.of(Result)]
    return (
        f"The script x = {text_of(flow.statements[0].expression)}.",
        *(
            f"{event.seq + 1}. {event.key} sends {event.value:g}, stamped"
            f" {event.event_time_us // MILLISECOND_US} ms."
            for event in workload.arrivals
        ),
        f"Results of x by the rule as written: {', '.join(results)}.",
    )


def _scope() -> Verdict:
    found = explore(SCOPE)
    outcome = combine(found.verdicts)
    sentence = (
        f"Every claim {outcome} in {found.unique_states:,} states of the explorer ({SCOPE}): all of"
        " its scripts with every stream of up to two tuples."
    )
    return Verdict(RESULTS, outcome, sentence)
