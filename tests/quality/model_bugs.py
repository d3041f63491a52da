"""A planted bug for each claim of each room: a variant of the model's rules, or a wrapped function.

The balance of a router is a bound beside the claims: ``test_planted_bugs.py`` has its bug.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from model.checking.accounts import EVERY_ROW
from model.grouping import machine as grouping
from model.join import oracle
from model.script.intake import REDELIVERED, Intake
from model.slack import rules
from model.vocabulary import Step, Trace
from model.vocabulary.grouping import Route
from model.vocabulary.script.config import Hosted
from model.vocabulary.script.placement import hosted_sensors
from model.vocabulary.windows import Cleared
from model.windows import correction, state
from model.windows import rules as windows
from model.windows.machine import WindowTask
from tests.quality.planting import Planted

Bug: TypeAlias = str | Planted
"""Name of a variant of the room, or a function with a mistake."""


def _without_first(word: type) -> Any:
    """Return a mistake that records all steps of a kind but the first one."""

    def instead(right: Any, *given: Any) -> list[Step]:
        steps: list[Step] = right(*given)
        first = next((each for each in steps if type(each) is word), None)
        return [each for each in steps if each is not first]

    return instead


UNCLEARED = Planted(correction._clear, _without_first(Cleared))
STALE_FINALS = Planted(
    state.Store.final,
    lambda right, self: [each._replace(revision=max(0, each.revision - 1)) for each in right(self)],
)
EARLY = Planted(windows.first_open, lambda right, spec, wm_us: right(spec, wm_us) + 1)
OTHER_WAY = Planted(
    rules.conformal_step,
    lambda right, config, factor, seen: 2 * factor.alpha - right(config, factor, seen),
)


def _last_forgotten(right: Any, self: oracle.Gate, stream: str, *given: Any) -> None:
    """Admit an arrival less of a stream, and do not reject it either."""
    right(self, stream, *given)
    columns: tuple[list[Any], ...] = self.admitted[stream]
    if len(columns[0]) > 2:
        for column in columns:
            del column[-1]


def _without_odd_routes(right: Any, *given: Any, **named: Any) -> Trace:
    trace: Trace = right(*given, **named)
    lost = {each for each in trace.of(Route) if each.seq % 2}
    return Trace(trace.producer, [each for each in trace.steps() if each not in lost])


def _every_fifth(lost: Any) -> Any:
    """Return a mistake that takes every fifth arrival without a word."""

    def instead(right: Any, self: Any, event: Any, *given: Any) -> Any:
        return lost if event.seq % 5 == 2 else right(self, event, *given)

    return instead


UNTOLD = Planted(WindowTask.refuse, _every_fifth([]))
NEXT_WORKER = Planted(
    hosted_sensors,
    lambda right, placed: [Hosted(worker + 1, sensor) for worker, sensor in right(placed)],
)

MODEL: Mapping[str, Mapping[str, Bug]] = {
    "slack": {
        "eventual exactness": "no_flush",
        "wrong answers are pending": "closed_by_state",
        "each pair once": "counts_twice",
        "exact means all rows": UNCLEARED,
        "corrections do not wait": "gamma_only",
        "an in-order stream has nothing late": "early_closing",
        "slack follows alpha": "half_the_delay",
        "what is late came later than the slack": EARLY,
        "the controller answers for its misses": OTHER_WAY,
        EVERY_ROW: UNTOLD,
    },
    "watermark": {
        "the wait is monotone in the disorder": "literal",
        "each pair once": "mixed_tuple_lost",
        "exact means all rows": "rejected_rows_do_not_matter",
        "eventual exactness": "ignores_flushes",
        "wrong answers are pending": Planted(
            windows.first_open, lambda right, spec, wm_us: right(spec, wm_us) - 1
        ),
        "corrections do not wait": "gamma_only",
        EVERY_ROW: UNTOLD,
    },
    "join": {
        "no pair twice": "both_visible",
        "no pair lost": "no_copy",
        "no pair that is no result": Planted(
            oracle.queries_of,
            lambda right, config, *given: right(
                replace(config, window_us=2 * config.window_us), *given
            ),
        ),
        "rejected is what watermark and decisions say": Planted(oracle.Gate.offer, _last_forgotten),
        "the recorded steps are a behaviour of the protocol": "no_copy",
        EVERY_ROW: Planted(oracle.Gate.offer, _last_forgotten),
    },
    "grouping": {
        "every arrival goes to one instance": Planted(grouping.run, _without_odd_routes),
        "few instances a key": "heavy_drawn",
        "answers are those of all tuples": Planted(
            grouping.merge_aggregates, lambda right, parts, top: right([*parts][:1], top)
        ),
        EVERY_ROW: Planted(
            grouping.Machine.serve,
            lambda right, self, instance, window, event: (
                () if event.seq % 5 == 2 else right(self, instance, window, event)
            ),
        ),
    },
    "script": {
        "results are what the workflows mean": "at_every_change",
        "workers are sent the sensors that are asked for": NEXT_WORKER,
        "no worker has more than the bound of LPT": "target_not_charged",
        EVERY_ROW: Planted(Intake.admit, _every_fifth(REDELIVERED)),
    },
}
"""Bug by room and claim."""
