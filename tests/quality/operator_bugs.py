"""Planted bugs of Spark's operators and jobs: a wrapped function for each claim that breaks there.

The claims alone judge the traces. No operator records final answers or cleared pairs in process,
because corrections run as jobs: such claims are in :data:`JOBS` alone, with what only jobs do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from model.vocabulary import Step
from model.vocabulary.join import Match
from model.vocabulary.script.config import Hosted
from spark_impl.grouping import candidates, instances, keys, router
from spark_impl.grouping import system as grouping
from spark_impl.join import control, idle, in_process, matching, task
from spark_impl.join.admission import Intake
from spark_impl.join.side import Matcher, Side
from spark_impl.script import admission, graph, kernel, silence
from spark_impl.script.placement import Placing
from spark_impl.script.plan import Plan
from spark_impl.slack import control_laws, requirement
from spark_impl.slack.judgement import Judgement
from spark_impl.slack.rule import SlackRule
from spark_impl.watermark.rule import WatermarkRule
from spark_impl.watermark.upstream import UpstreamRule
from spark_impl.windows import answers, correction, correlation, disorder, recompute
from spark_impl.windows.kernel import OpenWindows
from spark_impl.windows.store import WindowStore
from tests.quality.planting import Planted

LATE_PAIR_LOST = Planted(
    OpenWindows.miss, lambda right, self, rows, first, until: right(self, rows, first, until - 1)
)
CLOSED_EARLY = Planted(OpenWindows.first_open, lambda right, self, wm_us: right(self, wm_us) + 1)
CLOSED_LATE = Planted(OpenWindows.first_open, lambda right, self, wm_us: right(self, wm_us) - 1)
TOO_LONG = Planted(control_laws.slack_us, lambda right, *given: right(*given) + 1)


def _joins_its_closed_windows(right: Any, self: OpenWindows, rows: Any, lo: Any) -> None:
    right(self, rows, lo - 1)


JOINS_CLOSED = Planted(OpenWindows.join, _joins_its_closed_windows)


def _falls(right: Any, self: Any, start: int, wm_us: int) -> Any:
    path = right(self, start, wm_us)
    return path._replace(wm=path.wm - 7 * (np.arange(len(path.wm)) % 2))


def _tuple_too_many(right: Any, self: Judgement, done: Any) -> None:
    closed = done.closed.copy()
    closed["n_rcv"] += 1
    right(self, done._replace(closed=closed))


def _other_way(_right: Any, config: Any, alpha: float, miss: Any) -> list[float]:
    path = []
    for each in miss.tolist():
        alpha = min(max(alpha - config.learning_rate * (each - config.delta / 2), 0.0), 1.0)
        path.append(alpha)
    return path


def _shifted(by_us: int) -> Any:
    """Return a mistake that moves the watermarks of a path, but not its waits."""

    def instead(right: Any, *given: Any) -> Any:
        path = right(*given)
        return path._replace(wm=path.wm + by_us)

    return instead


def _only_the_last_clocks(right: Any, self: WatermarkRule) -> Any:
    return {name: rows[-1:] for name, rows in right(self).items()}


def _wait_for_order(_right: Any, reading: str, longest_us: int, inv: Any, n: Any) -> Any:
    pairs = np.maximum(n * (n - 1) // 2, 1)
    return longest_us * (pairs - inv) // pairs


def _pass_at_once(right: Any, self: UpstreamRule, rows: Any, operator: Any) -> Any:
    passings, before = right(self, rows, operator)
    passings["wm_us"] = passings["t_max_us"]
    return passings, before


def _greatest(_right: Any, self: UpstreamRule, before: Any) -> Any:
    known = self._memory.operators["wm_us"].max()
    return np.maximum(before, known)


def _marks_ahead(right: Any, self: UpstreamRule, start: int, wm_us: int) -> Any:
    path = right(self, start, wm_us)
    return path._replace(wm=np.maximum.accumulate(path.wm + 10))


def met_once_more(right: Any, self: Side, tuples: Any, seen: Any = None) -> Any:
    return right(self, tuples, None if seen is None else np.zeros_like(seen))


def meets_no_copy(right: Any, self: Side, wanted: int, _numbers: Any) -> Any:
    return right(self, wanted, None)


def _epoch_zero(right: Any, *given: Any) -> Iterator[Step]:
    for step in right(*given):
        yield step._replace(batch=0) if isinstance(step, Match) else step


def wide(right: Any, self: Matcher, config: Any, *given: Any, **named: Any) -> None:
    right(self, replace(config, window_us=2 * config.window_us), *given, **named)


def _half_of_the_share(right: Any, self: Intake, arrivals: Any) -> Any:
    share, self._share = self._share, self._share / 2
    try:
        return right(self, arrivals)
    finally:
        self._share = share


def most_load(right: Any, sets: Any, codes: Any, loads: list[int], cost: list[int]) -> Any:
    negative = [-each for each in loads]
    found = right(sets, codes, negative, [-each for each in cost])
    loads[:] = [-each for each in negative]
    return found


def _sides_exchanged(right: Any, self: Any, expression: Any, *given: Any) -> Any:
    if getattr(expression, "op", "") == "-" and hasattr(expression, "left"):
        expression = replace(expression, left=expression.right, right=expression.left)
    return right(self, expression, *given)


def _finite_ones_alone(right: Any, self: Any, number: int) -> None:
    right(self, number)
    self._undefined.pop(number, None)


OPERATORS: Mapping[str, Mapping[str, Planted]] = {
    "slack": {
        "each pair once": LATE_PAIR_LOST,
        "wrong answers are pending": LATE_PAIR_LOST,
        "one writer": JOINS_CLOSED,
        "measured misses are true misses": Planted(Judgement.count, _tuple_too_many),
        "alpha within 0 and 1": Planted(control_laws._clipped, lambda _right, alpha: alpha),
        "slack within 0 and the largest delay": TOO_LONG,
        "an in-order stream has no slack and nothing late": TOO_LONG,
        "slack follows alpha": TOO_LONG,
        "watermark never decreases": Planted(SlackRule.path, _falls),
        "slack that covers every delay leaves nothing late": CLOSED_EARLY,
        "what is late came later than the slack": CLOSED_EARLY,
        "judgements measure what was recorded": Planted(Judgement.count, _tuple_too_many),
        "misses within the conformal bound": Planted(
            control_laws.conformal_path,
            lambda right, config, alpha, miss: right(config, alpha, miss & False),
        ),
        "the controller answers for its misses": Planted(control_laws.conformal_path, _other_way),
        "pd steers the mean coverage": Planted(
            control_laws._pd,
            lambda right, config, law, errors: right(config, law, [-each for each in errors]),
        ),
        "required coverage is right": Planted(
            requirement.required_tuples, lambda right, *given, **named: right(*given, **named) // 2
        ),
    },
    "watermark": {
        "watermark within the wait of the largest event time": Planted(
            WatermarkRule.path, _shifted(1)
        ),
        "calm is not waited for": Planted(
            disorder.wait_us, lambda right, *given: right(*given) + 1
        ),
        "watermark never decreases": Planted(WatermarkRule.path, _falls),
        "watermark follows the wait": Planted(WatermarkRule.path, _shifted(1)),
        "every accepted arrival has a clock": Planted(WatermarkRule.records, _only_the_last_clocks),
        "pairs out of order are counted": Planted(
            disorder.count_inversions, lambda right, *given: right(*given) + 1
        ),
        "the wait is that of the reading": Planted(
            disorder.wait_us, lambda right, *given: right(*given) // 2
        ),
        "reversal is waited for": Planted(
            disorder.wait_us, lambda right, *given: right(*given) // 2
        ),
        "the wait is monotone in the disorder": Planted(disorder.wait_us, _wait_for_order),
        "late means closed": CLOSED_EARLY,
        "windows close at the watermark": CLOSED_LATE,
        "wrong answers are pending": CLOSED_LATE,
        "one writer": JOINS_CLOSED,
        "each pair once": LATE_PAIR_LOST,
        "upstream clocks follow the disorder": Planted(UpstreamRule._pass, _pass_at_once),
        "windows close at the inserted watermark": Planted(UpstreamRule.path, _marks_ahead),
        "late means that a watermark was inserted": Planted(UpstreamRule.path, _marks_ahead),
        "an idle operator holds nothing back": Planted(
            UpstreamRule._awake_until,
            lambda right, self, moments: right(self, moments) + (self._config.idle_after_us or 0),
        ),
        "the least watermark is inserted": Planted(UpstreamRule._least, _greatest),
    },
    "join": {
        "no pair twice": Planted(Side.probe, met_once_more),
        "no pair lost": Planted(Side.send_oldest, meets_no_copy),
        "the recorded steps are a behaviour of the protocol": Planted(
            Side.send_oldest, meets_no_copy
        ),
        "no pair that is no result": Planted(Matcher.__init__, wide),
        "no pair before its tuples": Planted(in_process.results_of, _epoch_zero),
        "rejected is what watermark and decisions say": Planted(
            Intake._watermarks, lambda right, *given: right(*given) + 1
        ),
        "a silent stream follows the other one, and makes nothing else late": Planted(
            idle.begin_epoch,
            lambda right, config, *given: right(replace(config, lateness_us=0), *given),
        ),
        "no pair from outside of the epochs of its query": Planted(
            matching.ranks_of, lambda _right, config, *_given: (None,) * len(config.queries)
        ),
        "what is shed is what the decisions ask for": Planted(Intake.admit, _half_of_the_share),
        "workers come and go as decided, and no tuple held is lost or doubled": Planted(
            control.find_in_force, lambda right, config, epoch: right(config, epoch - 1)
        ),
    },
    "grouping": {
        "every arrival goes to one instance": Planted(
            grouping._routes,
            lambda right, *given: (each for each in right(*given) if each.seq % 2),
        ),
        "every tuple goes to a candidate of its key": Planted(
            candidates.candidates,
            lambda right, config, *given: right(
                replace(config, hash_seed=config.hash_seed + 1), *given
            ),
        ),
        "every tuple goes where its sender has sent the least work": Planted(
            router._of_candidates, most_load
        ),
        "heavy keys are those of the window before": Planted(
            keys.find_heavy_keys,
            lambda right, *given: dict(islice(right(*given).items(), 1, None)),
        ),
        "few instances a key": Planted(candidates._enough, lambda right, *given: right(*given)[:1]),
        "partial aggregates are those of what the instances got": Planted(
            instances._combine, lambda right, parts, *given: right(parts.slice(1), *given)
        ),
        "answers are those of all tuples": Planted(
            instances._combine, lambda right, parts, *given: right(parts.slice(1), *given)
        ),
        "rejected is what is not finite": Planted(grouping.rejected, lambda *_given: ()),
    },
    "script": {
        "results are what the workflows mean": Planted(graph._Sharing._node, _sides_exchanged),
        "where nothing finite comes out is told": Planted(kernel._Step.compute, _finite_ones_alone),
        "rejected is what is late or not finite": Planted(
            admission._fixed,
            lambda right, *given: (found := right(*given)) and (found[0] + 1, found[1]),
        ),
        "late is what lies behind the latest, and all that lies farther than the lateness": Planted(
            admission._fixed,
            lambda right, ts, finite, clock, longest_us: right(
                ts, finite, clock, None if longest_us is None else 100 * longest_us
            ),
        ),
        "silence makes late what lies too far behind all sensors, and nothing else": Planted(
            silence.idle_floors, lambda right, *given: right(*given[:-1], 0)
        ),
        "workers are sent the sensors that are asked for": Planted(
            Plan.hosted,
            lambda right, self: [Hosted(each.worker + 1, each.sensor) for each in right(self)],
        ),
        "no worker has more than the bound of LPT": Planted(
            Placing._longest_first,
            lambda right, self, pieces: dict.fromkeys(right(self, pieces), 0),
        ),
    },
}
"""Bug by room and claim."""


PAIRS_IN_EPOCH_ZERO = Planted(
    task.pairs_table, lambda right, query, found, _epoch: right(query, found, 0)
)


def _cross_is_larger(right: Any, *given: Any) -> Any:
    figures = right(*given)
    return figures._replace(cross=figures.cross + 1)


def _others_cleared(
    right: Any, self: WindowStore, table: str, batch: int, rows: pa.Table, *part: int
) -> Any:
    """Clear pairs of the next tuples."""
    if table == "cleared":
        at = rows.schema.get_field_index("source_id")
        rows = rows.set_column(at, rows.schema.field(at), pc.add(rows.column(at), 1))
    return right(self, table, batch, rows, *part)


def _one_too_large(name: str) -> Planted:
    """Return a bug: a number of every final answer is one too large."""
    return Planted(
        answers._latest_answers,
        lambda right, *given: right(*given).withColumn(name, F.col(name) + 1),
    )


FIRST_IS_FINAL = Planted(
    answers._latest_answers,
    lambda right, store, stream, revised: right(store, stream, revised.limit(0)),
)
NOTHING_REFUSED = Planted(
    answers.with_refused, lambda right, *given: right(*given).withColumn("n_refused", F.lit(0))
)
REVISION_TOO_HIGH = Planted(recompute.revision_numbers, lambda right, *given: right(*given) + 1)
OF_CORRECTIONS: Mapping[str, Planted] = {
    "eventual exactness": _one_too_large("value"),
    "final answers are the latest": _one_too_large("revision"),
    "nothing owed after the flush": Planted(WindowStore.write, _others_cleared),
    "exact means all rows": NOTHING_REFUSED,
    "corrections do not wait": Planted(
        correction._reason, lambda _right, _settings, row, *_given: "flush" * row["flushed"]
    ),
    "one writer": REVISION_TOO_HIGH,
}
ONLY_JOBS: Mapping[str, Mapping[str, Planted]] = {
    "slack": {
        **OF_CORRECTIONS,
        "delay and value are compared as they came": Planted(
            correlation.correlate, _cross_is_larger
        ),
    },
    "watermark": OF_CORRECTIONS,
    "join": {"no pair before its tuples": PAIRS_IN_EPOCH_ZERO},
}
"""Bugs of what only jobs do, by room and claim."""
UNSEEN = {
    "no pair twice": "connections of Spark's workers repeat no message",
    "no pair lost": "blocks of both streams need not be on their way at once",
    "the recorded steps are a behaviour of the protocol": "nor need they be here",
}
"""Claims that the bug of an operator need not break in a job, and why."""
JOBS: Mapping[str, Mapping[str, Planted]] = {
    room: {claim: bug for claim, bug in bugs.items() if claim not in UNSEEN}
    | dict(ONLY_JOBS.get(room, {}))
    for room, bugs in OPERATORS.items()
}
"""Bugs of jobs, by room and claim."""


def keep(room: str, claim: str) -> None:
    """Let a worker of a job have a bug until it ends."""
    JOBS[room][claim].keep()
