"""Rules that look right and are not: literal readings of the papers, and planted bugs.

Rules of this file:

* A variant is the table of decisions (``model/slack/rules.py``) with entries replaced; the machine
  is the same. Its example is a smallest workload on which the reference keeps the promise and the
  variant does not.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from math import floor

from model.checking.variants import PLANTED, Variant
from model.slack import rules
from model.slack.machine import MODEL, Task
from model.slack.rules import RULES, Rules
from model.vocabulary import Event, Fault, SlackConfig, Workload
from model.windows import variants
from model.windows.rules import LATE, OPEN, Place, Stream
from model.windows.state import Pair

PAPER = "hybrid processing model for continuous aggregates, read literally"

_variant = partial(Variant, system=MODEL.system)


# ------------------------------------------------------------------------------- wrong decisions


def _asks_state(task: Stream, index: int, event: Event) -> Place:
    assert isinstance(task, Task)
    key = event.key if task.config.keyed else ""
    return LATE if key in task.unjudged.keys(index) else OPEN


def _stays_where_it_is(task: Stream) -> int:
    return task.wm_us


def _everything(_planned: Collection[Pair], all_pending: Collection[Pair]) -> Collection[Pair]:
    return all_pending


def _winds_up(config: SlackConfig, alpha: float, max_delay_us: int) -> int:
    if config.control != "pd":
        return rules.slack_us(config, alpha, max_delay_us)
    return floor(alpha * max_delay_us)


def _never_waits(_config: SlackConfig, _alpha: float, _max_delay_us: int) -> int:
    return 0


def _starts_at_once(_config: SlackConfig, _judged: int) -> int:
    return 0


def _never_forgets(_config: SlackConfig) -> None:
    """Count every delay for ever."""


def _halves_the_delay(config: SlackConfig, alpha: float, max_delay_us: int) -> int:
    return rules.slack_us(config, alpha, max_delay_us // 2)


# -------------------------------------------------------------------------------------- examples


def _example(
    *event_times_us: int, cuts: tuple[int, ...] = (), keys: str = "", **config: object
) -> Workload:
    """Return arrivals at these event times; W = 10, s = 5 and K = 0 unless ``config`` differs."""
    settings: dict[str, object] = {"size_us": 10, "slide_us": 5, "control": "fixed", **config}
    values = [1.0] * len(event_times_us)
    return variants.example("slack", settings, event_times_us, values, cuts, keys)


# -------------------------------------------------------------------------------------- variants

VARIANTS: Mapping[str, Variant[Rules]] = {
    variant.name: variant
    for variant in (
        _variant(
            "early_closing",
            "an in-order stream has nothing late",
            "A window closes when the largest timestamp that it can hold is at most t_max - K.",
            PAPER,
            "A window is half open and closes when its end is at most the watermark.",
            replace(RULES, first_open=variants.one_tick_early),
            _example(9, control="conformal"),
        ),
        _variant(
            "never_waits",
            "slack follows alpha",
            "K is 0 whatever alpha is: every miss at alpha = 1 is clipped, so the conformal bound "
            "allows all of them.",
            PLANTED,
            "K is alpha times the largest delay so far.",
            replace(RULES, slack_us=_never_waits),
            _example(20, 12, control="conformal", lambda_thr=0.5),
        ),
        _variant(
            "starts_at_once",
            "slack follows alpha",
            "K begins at 0 on a stream never seen.",
            PAPER,
            "Until 2/delta windows are judged, K is at least start.",
            replace(RULES, start_slack_us=_starts_at_once),
            _example(
                *(20, 12, 60, 41, 90, 75, 130, 131),
                cuts=(2, 5),
                control="conformal",
                start_slack_us=9,
                delta=0.5,
            ),
        ),
        _variant(
            "half_the_delay",
            "slack follows alpha",
            "K is alpha times half of the largest delay so far.",
            PLANTED,
            "K is alpha times the largest delay so far.",
            replace(RULES, slack_us=_halves_the_delay),
            _example(20, 12, control="max"),
        ),
        _variant(
            "never_forgets",
            "slack follows alpha",
            "Under aq, K is alpha times the largest delay so far.",
            PLANTED,
            "Under aq, a delay counts while the clock advances by recent_us, and no longer.",
            replace(RULES, recent_us=_never_forgets),
            _example(20, 12, 25, 26, cuts=(3,), control="aq", recent_us=5),
        ),
        _variant(
            "mixed_tuple_lost",
            "eventual exactness",
            "A tuple that still has an open window is in time, and its closed windows are not "
            "registered.",
            PAPER,
            "Lateness belongs to each (tuple, window) pair; every late pair becomes pending.",
            replace(RULES, route=variants.loses_mixed),
            _example(15, 12),
        ),
        _variant(
            "gamma_only",
            "corrections do not wait",
            "A correction starts only when the pending tuples span more than Gamma.",
            PAPER,
            "It also starts when the oldest pending pair lies more than max_age behind the "
            "watermark.",
            replace(RULES, trigger=variants.without_age),
            _example(25, 12, 60, cuts=(2,)),
        ),
        _variant(
            "slack_winds_up",
            "slack follows alpha",
            "K is alpha * k with whatever alpha the differential law has reached.",
            PAPER,
            "The factor applied is clipped to [0, 1], even where alpha is not.",
            replace(RULES, slack_us=_winds_up),
            _example(20, 12, control="pd"),
        ),
        _variant(
            "lost_update",
            "eventual exactness",
            "A late tuple re-opens its window in the stream, whose next result replaces what the "
            "correction wrote.",
            PLANTED,
            "The stream never writes a closed window again; it has one writer, the correction.",
            replace(RULES, route=variants.reopens),
            _example(25, 12, 17, max_age_us=0),
        ),
        _variant(
            "closed_by_state",
            "wrong answers are pending",
            "A window is closed if the state says that it was answered.",
            PLANTED,
            "Nothing but the watermark decides whether a window is closed.",
            replace(RULES, route=_asks_state),
            _example(13, 3),
        ),
        _variant(
            "no_flush",
            "eventual exactness",
            "A flush leaves the watermark where it is.",
            PLANTED,
            "A flush moves the watermark behind the last window of the largest event time.",
            replace(RULES, flush_wm_us=_stays_where_it_is),
            _example(5, 25),
        ),
        _variant(
            "rejected_rows_do_not_matter",
            "exact means all rows",
            "A window is exact if no pair of it is pending, whatever was rejected.",
            PLANTED,
            "A rejected row might have changed the answers of the windows of its event time.",
            replace(RULES, incomplete=variants.lacks_nothing),
            variants.with_rejected(_example(5, 6)),
        ),
        _variant(
            "counts_twice",
            "eventual exactness",
            "A redelivery is handled like a new tuple.",
            PLANTED,
            "A redelivery of an identity that is not forgotten is ignored.",
            replace(RULES, is_redelivery=variants.never_a_redelivery),
            variants.with_redelivery(_example(5)),
        ),
        _variant(
            "clears_everything",
            "wrong answers are pending",
            "A finished correction clears whatever is pending.",
            PLANTED,
            "A correction clears exactly the pairs that it was planned for.",
            replace(RULES, covered=_everything),
            _example(25, 12, 25, 22, keys="aabb", tasks=2),
        ),
        _variant(
            "clears_first",
            "eventual exactness",
            "A correction clears its pairs, then writes the answers, and may die in between.",
            PLANTED,
            "Pairs are cleared after every answer for them is durable.",
            replace(RULES, clears_first=True),
            _example(25, 12).with_(faults=(Fault("kill", 1),)),
        ),
    )
}
