"""Columns of room ``join`` by hand: conditions as text, and what is refused."""

import pytest
from hypothesis import given

from model.checking.claims import Outcome
from model.join.claims import judge
from model.join.oracle import admission, oracle_join, queries_of
from model.join.state_claims import LOST
from model.vocabulary import Event, JoinConfig, Trace, Workload
from model.vocabulary.join import And, Band, Between, Equi, Match, Predicate, R, S
from model.vocabulary.join_conditions import parse_condition, write_condition
from model.vocabulary.join_predicates import (
    check_predicate,
    parts_of,
    predicate_from_json,
    predicate_to_json,
)
from straggler.strategies.columns import R_COLUMNS, S_COLUMNS, predicates

KINDS = JoinConfig(9, (("all", And()),), r_columns=R_COLUMNS, s_columns=S_COLUMNS).kinds()
NEARLY, XS = Band("value", 1.0), (0.0, None, 1.0)
BIG = (1 << 53) + 1
"""An integer that float64 rounds, unlike the next one."""


@given(predicate=predicates(R_COLUMNS, S_COLUMNS))
def test_a_condition_is_read_as_it_was_written(predicate: Predicate) -> None:
    check_predicate("q", predicate, KINDS[R], KINDS[S])
    parts = tuple(parts_of(predicate))
    text = write_condition(predicate, KINDS[R], KINDS[S])
    assert parse_condition(text, KINDS[R], KINDS[S]) == (
        parts[0] if len(parts) == 1 else And(parts)
    )
    assert predicate_from_json(predicate_to_json(predicate)) == predicate


@pytest.mark.parametrize(
    "predicates",
    [
        (NEARLY,),
        (NEARLY, Band("value", 3.0)),
        (Between("value", -2.0, 1.0), And((NEARLY, Band("value", 2.0)))),
        (Between("value", -2.0, None), NEARLY),
        (Equi("key"), And((NEARLY, Equi("key")))),
        (Band("n", 1), And((Band("n", 1), Equi("key")))),
        (And((Equi("x"), NEARLY)),),
        (Band("x", 1.0),),
    ],
)
def test_a_search_by_columns_finds_what_a_nested_loop_finds(
    predicates: tuple[Predicate, ...],
) -> None:
    columns = ("n", "integer"), ("x", "number")
    queries = tuple((str(n), each) for n, each in enumerate(predicates))
    config = JoinConfig(4, queries, r_columns=columns, s_columns=columns)
    arrivals = tuple(
        Event(
            n, n, "ab"[n // 2 % 2], n // 3, n % 5.0, n, "RS"[n % 2], (BIG + n % 2, XS[n // 2 % 3])
        )
        for n in range(20)
    )
    workload = Workload("join", arrivals, config.to_json(), (7,))
    admitted = admission(workload)
    due = {
        (query, r.source_id, s.source_id, max(r.seq, s.seq) >= 7)
        for one, r in enumerate(admitted.r.tuples)
        for other, s in enumerate(admitted.s.tuples)
        for query in queries_of(config, admitted, one, other)
    }
    assert 0 < len(due) < len(queries) * 100
    assert set(oracle_join(workload).of(Match)) == due


def test_a_lost_pair_is_told_with_its_columns() -> None:
    config = JoinConfig(9, (("all", And()),), r_columns=(("x", "number"),))
    one, other = Event(0, 0, "a", 0, 0.0, 0, R, (None,)), Event(1, 0, "b", 0, 0.0, 0, S)
    workload = Workload("join", (one, other), config.to_json())
    found = {each.claim: each for each in judge(workload, Trace("none", [])).verdicts}[LOST]
    assert found.outcome is Outcome.BROKEN
    assert "r #0 (at 0, key 'a', value 0, x None)" in found.sentence
