"""Small cases of chains that together put every claim of room ``join`` to the test."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import And, Apart, Band, Between, Decision, Equi, Ineq, S, Where
from sim.join.tuning import ChainTuning
from sim.kernel.link import HERE, Place
from sim.kernel.plan import Cluster, Worker
from sim.kernel.plan import replay as replayed
from straggler.strategies.columns import R_COLUMNS, S_COLUMNS, with_values
from straggler.strategies.timed_cases import SeededPlan, TimedCase

UNIT_US = 1_000
Sent = tuple[str, int]
"""Stream and event time (units)."""


def _case(config: JoinConfig, *epochs: Iterable[Sent]) -> Workload:
    rows = [(number, *sent) for number, epoch in enumerate(epochs) for sent in epoch]
    arrivals = tuple(
        Event(seq, seq, "ab"[seq % 3 % 2], time * UNIT_US, _value(seq), seq * UNIT_US, stream)
        for seq, (_, stream, time) in enumerate(rows)
    )
    cuts = tuple(sum(row[0] < number for row in rows) for number in range(1, len(epochs)))
    return Workload("join", arrivals, config.to_json(), cuts)


def _value(seq: int) -> float:
    """Return the value of an arrival; some of each case are not finite, and are refused."""
    return inf if seq % 17 == 7 else float(seq)


def _both(first: int, last: int) -> list[Sent]:
    return [("RS"[time % 2], time) for time in range(first, last)]


def _with_columns(case: Workload) -> Workload:
    config = JoinConfig.from_json(case.config)
    return case.with_(arrivals=with_values(case.arrivals, config, seed=0))


def _with_large(case: Workload) -> Workload:
    """Return the case with whole numbers that have the same neighbour in float64."""
    large = (each._replace(more=((1 << 53) + 3 + each.seq % 3,)) for each in case.arrivals)
    return case.with_(arrivals=tuple(large))


WHOLE = (("n", "integer"),)
CONDITIONS = (
    Equi("site"),
    Band("pm25", 1.0, "pm10"),
    Apart("pm25", 1.0, "pm10"),
    Between("at", UNIT_US, 8 * UNIT_US),
    Ineq("ad", "<", "clicked"),
    Where(S, "ok", "=", True),
)
"""One condition of each sort on columns."""

TELLING: Mapping[str, Workload] = {
    "workers come and go, some arrivals are shed, and some are late": _case(
        JoinConfig(
            4 * UNIT_US,
            (("all", And()), ("few", Equi("key"))),
            workers=2,
            block_size=2,
            credit=1,
            lateness_us=2 * UNIT_US,
            decisions=(Decision(1, 4, 3, 0.25), Decision(3, 2, 1, 0.0)),
        ),
        _both(0, 20),
        [*_both(20, 40), ("R", 4), ("S", 5)],
        [*_both(40, 60), ("R", 24), ("S", 25)],
        _both(60, 80),
    ),
    "a query that begins in an epoch and ends in another": _case(
        JoinConfig(
            4 * UNIT_US,
            (("all", And()), ("some", And())),
            workers=3,
            block_size=2,
            epochs=(("some", 1, 2),),
        ),
        _both(0, 12),
        _both(12, 24),
        _both(24, 36),
        _both(36, 48),
    ),
    "a stream that falls silent and comes back behind the other one, then the other one": _case(
        JoinConfig(
            8 * UNIT_US, (("all", And()),), workers=2, lateness_us=0, idle_after_us=4 * UNIT_US
        ),
        _both(0, 12),
        [*[("R", time) for time in range(12, 24)], ("S", 24)],  # which is refused: no sign of life
        [("R", time) for time in range(24, 36)],
        [*[("S", time) for time in (13, 15, 17)], *_both(36, 44)],
        [*_both(44, 50), *[("S", time) for time in range(50, 56)]],
        [("S", time) for time in range(56, 62)],
        [("R", time) for time in (51, 53, 62)],
    ),
    "a stream that falls silent, and then just not long enough": _case(
        JoinConfig(8 * UNIT_US, (("all", And()),), lateness_us=UNIT_US, idle_after_us=4 * UNIT_US),
        _both(0, 12),
        [*[("R", time) for time in range(12, 24)], ("S", 24)],  # which is refused: no sign of life
        [("R", time) for time in range(24, 36)],
        [*[("S", time) for time in (29, 30, 31)], *_both(36, 44)],
        _both(44, 50),
        [*[("R", time) for time in range(50, 61)], ("S", 51)],
        [("R", time) for time in range(61, 65)],  # just not far enough to leave S behind
        [("S", 52)],
    ),
    "queries on columns, whose values may be missing": _with_columns(
        _case(
            JoinConfig(
                8 * UNIT_US,
                tuple((type(each).__name__, each) for each in CONDITIONS),
                workers=2,
                block_size=2,
                lateness_us=2 * UNIT_US,
                r_columns=R_COLUMNS,
                s_columns=S_COLUMNS,
            ),
            _both(0, 20),
            _both(20, 40),
        )
    ),
    "whole numbers that differ, though float64 has one neighbour for all": _with_large(
        _case(
            JoinConfig(
                8 * UNIT_US, (("q", Ineq("n", "!=", "n")),), r_columns=WHOLE, s_columns=WHOLE
            ),
            _both(0, 12),
            _both(12, 24),
        )
    ),
}
"""Cases by what happens in them."""

OPEN = next(iter(TELLING.values())).with_(flush=False)
"""The first case on streams that do not end: some pairs are still to come."""

STATES: Mapping[str, tuple[int, int]] = {
    "fifo": (99, 191),
    "three": (1_048, 2_946),
    "unordered": (182, 374),
    "repeating": (1_063, 2_856),
    "cut": (383, 791),
    "columns": (182, 374),
    "drop-unordered": (283, 611),
    "flush": (3_192, 7_737),
    "balanced": (821, 2_172),
    "balanced-unordered": (1_063, 2_934),
    "balanced-three": (2_082, 6_813),
    "elastic": (1_153, 3_234),
    "removing": (645, 1_655),
    "silent": (645, 1_477),
    "adding-large": (1_393, 3_960),
}
"""States and transitions of scopes of the model with two tuples of R and one of S."""


def in_time(case: Workload) -> TimedCase[JoinConfig]:
    """Return the case on workers of one tier, with the decisions that it has."""
    cluster = Cluster((Worker(place=HERE), Worker(place=Place(0, 0, 1))))
    plan = replayed(case.arrivals, "telling", case.cuts, cluster=cluster)
    config = JoinConfig.from_json(case.config)
    return TimedCase(config, SeededPlan(replace(plan, tuning=ChainTuning(record=True)), 0))
