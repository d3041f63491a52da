"""Room ``join``: conditions as texts, limits of streams, and comparison of matches."""

from dataclasses import replace

import pytest
from hypothesis import given

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import And, Apart, Band, Equi, Ineq, Predicate
from straggler.errors import UsageError
from straggler.rooms.join import limits
from straggler.rooms.join.conditions import parse_condition, write_condition
from straggler.strategies.join import PREDICATES

CONFIG = JoinConfig(4, (("key", Equi("key")),), workers=3, block_size=2, lateness_us=3)


def workload(n: int = 60) -> Workload:
    """Return two streams that take turns, each in four batches, with some late tuples."""
    arrivals = tuple(
        Event(seq, seq // 2, "abc"[seq % 3], seq - 9 * (seq % 7 == 0) + 20, 1.0, seq, "RS"[seq % 2])
        for seq in range(n)
    )
    return Workload("join", arrivals, CONFIG.to_json(), (n // 4, n // 2, 3 * n // 4))


# --------------------------------------------------------------------------------------- limits


def test_too_many_pairs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAIRS_MAX", 100)
    wide = replace(CONFIG, window_us=1_000)
    with pytest.raises(UsageError, match="900 pairs lie within --window 1ms of each other"):
        limits.refuse_pairs(workload().arrivals, wide, "--window")


def test_times_near_the_end_are_refused() -> None:
    late = workload().arrivals[0]._replace(event_time_us=2**62)
    with pytest.raises(UsageError, match=f"event_time_us of arrival 0 is {2**62}"):
        limits.refuse_workload(workload().with_(arrivals=(late,), cuts=()))


# ------------------------------------------------------------------------------------ comparison


# ----------------------------------------------------------------------------------- conditions


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("key", Equi("key")),
        (" any ", And()),
        ("value within 2", Band("value", 2.0)),
        ("value  apart  0.1", Apart("value", 0.1)),
        ("value >=", Ineq("value", ">=", "value")),
        ("key and value within 2", And((Equi("key"), Band("value", 2.0)))),
    ],
)
def test_conditions_are_parsed_into_predicates(text: str, predicate: Predicate) -> None:
    assert parse_condition(text) == predicate


@given(predicate=PREDICATES)
def test_conditions_that_were_written_are_read_back(predicate: Predicate) -> None:
    read = parse_condition(write_condition(predicate))
    single = isinstance(predicate, And) and len(predicate.parts) == 1
    assert read == (predicate.parts[0] if isinstance(predicate, And) and single else predicate)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is not a condition"),
        ("vaule", "did you mean 'value'?"),
        ("key =", "'key =' is not a condition"),
        ("value within two", "'two' in 'value within two' is not a number"),
        ("value within -1", "eps is -1.0"),
        ("value within nan", "eps is nan"),
        ("key apart 2", "keys have no distance"),
        ("key and", "'key and' is not a condition"),
    ],
)
def test_an_invalid_condition_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse_condition(text)
    assert words in str(refused.value)
