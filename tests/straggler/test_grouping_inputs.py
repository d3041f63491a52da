"""Inputs of room ``grouping``: whose keys are skewed, and how much."""

import platform
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from straggler.errors import UsageError
from straggler.inputs import inputs
from straggler.inputs.tables import Columns
from straggler.rooms.grouping.inputs import FLIGHTS, TOKENS, flights, load, tailnum, tokens


def test_words_are_the_same_again_and_skewed() -> None:
    one, other = tokens(0), tokens(1)
    assert one == other
    assert platform.python_version() in one.label
    counts = Counter(event.key for event in one.events)
    assert sum(counts.values()) == len(one.events) == TOKENS
    assert len(counts) > 1_000
    assert counts.most_common(1)[0][1] > TOKENS / 40, "no word is heavy for eight instances"
    assert len({event.value for event in one.events}) > 100


def test_flights_by_destination_and_by_aircraft_are_the_same_flights() -> None:
    one, other = flights(0).events, tailnum(0).events
    assert len(one) == len(other) == FLIGHTS
    assert "ATL" in {event.key for event in one}
    assert len({event.key for event in other}) > 2_000
    assert [event.arrival_us for event in one] == [event.arrival_us for event in other]
    assert [event.value for event in one] == [event.value for event in other]
    assert all(a.arrival_us <= b.arrival_us for a, b in pairwise(one))


def test_a_file_without_times_arrives_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "hits.csv"
    path.write_text("page,bytes\nb,1\na,2\nb,3\n", encoding="utf-8")
    events = load(str(path), 0, Columns(key="page", value="bytes")).events
    assert [(event.key, event.value) for event in events] == [("b", 1.0), ("a", 2.0), ("b", 3.0)]
    assert [event.event_time_us for event in events] == [0, 1, 2]
    with pytest.raises(UsageError, match="has no column 'event_time'"):
        inputs.load(str(path), 0, Columns(key="page", value="bytes"))


def test_a_column_of_times_is_used_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "hits.csv"
    text = "key,value,event_time,arrival_time\nb,1,5,90\na,2,6,80\n"
    path.write_text(text, encoding="utf-8")
    events = load(str(path), 0, Columns()).events
    assert [(event.key, event.event_time_us) for event in events] == [("a", 6), ("b", 5)]
