"""Columns of tuples in a simulated chain: replays carry them, and its index finds what they decide.

Pairs are decided once more here, one by one.
"""

import json
import operator
from collections.abc import Mapping
from math import inf, isnan, nan
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import And, Apart, Band, Between, Equi, Ineq, Match, Predicate, Where
from model.vocabulary.join_predicates import (
    DISTANT,
    EQUALITIES,
    KINDS,
    LARGEST,
    NUMBER,
    OPERATORS,
    SELECTIONS,
    parts_of,
)
from properties.promised import Reached, promised
from sim.join.content import Index, RankArray
from sim.join.room import TIMED_ROOM
from sim.kernel.log import simulate_arrivals
from sim.kernel.plain import from_plain, to_plain
from sim.kernel.plan import Plan, replay

COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
WHOLE = [0, 1, 2, LARGEST, LARGEST - 1, -LARGEST]
VALUES: Mapping[str, list[Any]] = {
    "number": [0.0, 0.1, 0.3, 1.0, 1e308, -1e308, nan, inf, -inf],
    "integer": WHOLE,
    "time": WHOLE,
    "text": ["", "a", "b", "ä", "NaN"],
    "boolean": [True, False],
}
DISTANCES: Mapping[str, list[Any]] = {
    "integer": [0, 1, LARGEST - 1, LARGEST],
    "time": [0, 1, LARGEST - 1, LARGEST],
    "number": [0.0, 0.2, 1.0, 1e308],
}
TUPLES, WINDOW_US = 12, 1_000


def meets(predicate: Predicate, r: Mapping[str, Any], s: Mapping[str, Any]) -> bool:
    """Decide one pair."""
    for part in parts_of(predicate):
        if isinstance(part, Where):
            left, right = (r if part.stream == "R" else s)[part.column], part.constant
        elif isinstance(part, Ineq):
            left, right = r[part.left], s[part.right]
        elif not isinstance(part, And):
            left, right = r[part.column], s[part.other]
        if any(each is None or (isinstance(each, float) and isnan(each)) for each in (left, right)):
            return False
        if not _compares(part, left, right):
            return False
    return True


def _compares(part: Predicate, left: Any, right: Any) -> bool:
    match part:
        case Equi():
            return bool(left == right)
        case Where(op=op) | Ineq(op=op):
            return bool(COMPARE[op](left, right))
        case Band(eps=eps):
            return bool(abs(left - right) <= eps)
        case Apart(eps=eps):
            return bool(abs(left - right) > eps)
        case Between(low=low, high=high):
            away = right - left
            return (low is None or low <= away) and (high is None or away <= high)
    raise AssertionError(part)


@st.composite
def parts(draw: st.DrawFn, kind: str) -> Predicate:
    """Draw a predicate on the columns ``a`` of R and ``b`` of S, which are of one kind."""
    has_order, is_distant = kind != "boolean", kind in DISTANT
    chosen = draw(st.sampled_from(["equi", "ineq", "where", *(["far"] * 3 if is_distant else [])]))
    if chosen == "equi":
        return Equi("a", "b")
    if chosen == "ineq":
        return Ineq("a", draw(st.sampled_from(OPERATORS if has_order else ("!=",))), "b")
    if chosen == "where":
        stream = draw(st.sampled_from("RS"))
        constant = draw(
            st.sampled_from([each for each in VALUES[kind] if kind != NUMBER or abs(each) < inf])
        )
        known = SELECTIONS if has_order else EQUALITIES
        return Where(stream, "a" if stream == "R" else "b", draw(st.sampled_from(known)), constant)
    eps = st.sampled_from(DISTANCES[kind])
    if draw(st.booleans()):
        far = draw(eps)
        return Band("a", far, "b") if draw(st.booleans()) else Apart("a", far, "b")
    low, high = sorted(draw(st.tuples(eps, eps.map(operator.neg))))
    least, most = draw(st.sampled_from([(low, high), (low, None), (None, high)]))
    return Between("a", least, most, "b")


@st.composite
def streams(draw: st.DrawFn, kind: str) -> list[Event]:
    """Draw a stream with one column, whose values are often missing or extreme."""
    values = st.sampled_from([None, *VALUES[kind]])
    times_us = st.integers(0, 2 * WINDOW_US)
    rows = draw(st.lists(st.tuples(times_us, values), min_size=1, max_size=TUPLES))
    return [Event(n, n, "k", at, 1.0, n, "", (value,)) for n, (at, value) in enumerate(rows)]


@promised(*KINDS, examples=100)
@given(data=st.data())
def test_the_index_finds_the_pairs_that_meet_a_predicate(
    reached: Reached, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    predicate: Predicate = data.draw(parts(kind))
    if data.draw(st.booleans()):
        predicate = And((predicate, data.draw(parts(kind))))
    config = JoinConfig(
        WINDOW_US, (("q", predicate),), r_columns=(("a", kind),), s_columns=(("b", kind),)
    )
    index = Index(config, is_indexed=data.draw(st.booleans()))
    r, s = data.draw(streams(kind)), data.draw(streams(kind))
    index.add("R", 0, r, 0)
    index.add("S", 0, s, 0)
    index.join("R", *(RankArray(np.arange(len(each))).as_ranks() for each in (r, s)))
    found = [
        pair
        for each in index.take()
        for pair in zip(each.r_ids.tolist(), each.s_ids.tolist(), strict=True)
    ]
    expected = [
        (one.source_id, other.source_id)
        for one in r
        for other in s
        if abs(one.event_time_us - other.event_time_us) <= WINDOW_US
        and meets(predicate, {"a": one.more[0]}, {"b": other.more[0]})
    ]
    assert sorted(found) == expected, predicate
    reached.add({kind: len(expected)})


def test_a_replay_carries_columns_and_finds_their_pairs() -> None:
    """The plan of a replay is stored as plain data, too, with the cluster of a counterexample."""
    config = JoinConfig(
        10,
        (("near", Band("x", 1.5, "y")), ("b", And((Equi("x", "y"), Where("S", "t", "=", "b"))))),
        r_columns=(("x", "number"),),
        s_columns=(("t", "text"), ("y", "number")),
    )
    values: list[tuple[Any, ...]] = [(1.0,), ("a", 1.0), (None,), ("b", 3.0), (3.0,), (None, 2.0)]
    arrivals = tuple(
        Event(n, n // 2, "k", n, 1.0, n, "RS"[n % 2], more) for n, more in enumerate(values)
    )
    plan = from_plain(json.loads(json.dumps(to_plain(replay(arrivals, "columns")))))
    assert isinstance(plan, Plan)
    assert simulate_arrivals(plan, 1).events == arrivals
    workload = Workload("join", arrivals, config.to_json(), (2,))
    found = {each[:3] for each in TIMED_ROOM.replay(workload).trace.of(Match)}
    assert found == {("near", 0, 0), ("near", 2, 1), ("near", 0, 2), ("near", 2, 2), ("b", 2, 1)}
