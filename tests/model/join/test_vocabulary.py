"""Words of room ``join``: predicates and configuration, and what they refuse."""

import json
from dataclasses import replace
from typing import Any, cast

import pytest

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import (
    WORDS,
    And,
    Apart,
    Band,
    Decision,
    Equi,
    Ineq,
    predicate_from_json,
    predicate_to_json,
)
from model.vocabulary.join_load import LoadRules
from model.vocabulary.settings import PlainData
from model.vocabulary.trace import kind_of

EVERYTHING = And(
    (
        Equi("key"),
        Band("value", 0.5),
        And((Ineq("value", "<=", "value"), Apart("value", 0.25))),
        And(),
    )
)


def test_predicates_survive_json() -> None:
    data = json.loads(json.dumps(predicate_to_json(EVERYTHING)))
    assert predicate_from_json(data) == EVERYTHING
    assert hash(predicate_from_json(data)) == hash(EVERYTHING)


def test_a_configuration_survives_json() -> None:
    config = JoinConfig(
        5, (("a", EVERYTHING), ("b", Equi("key"))), 3, 7, 1, 0, 9, (("b", 2, None),)
    )
    decided = replace(config, decisions=(Decision(0, 2, 1, 0.25), Decision(4, 5, 7, 0.0)))
    assert JoinConfig.from_json(json.loads(json.dumps(decided.to_json()))) == decided
    assert "decisions" not in config.to_json()  # as before there were decisions
    assert "idle_after_us" not in replace(config, idle_after_us=None).to_json()
    assert JoinConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert hash(config) == hash(JoinConfig.from_json(config.to_json()))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"workers": 0}, "workers is 0; it must be an integer > 0"),
        ({"workers": 1.5}, "workers is 1.5; it must be an integer"),
        ({"block_size": True}, "block_size is True; it must be an integer"),
        ({"credit": -1}, "credit is -1; it must be an integer > 0"),
        ({"window_us": -1}, "window_us is -1; it must be an integer >= 0"),
        ({"window_us": None}, "window_us is None; it must be an integer"),
        ({"lateness_us": -5}, "lateness_us is -5; it must be an integer >= 0"),
        ({"queries": ()}, "queries is (); it must be at least one"),
        ({"queries": [["", ["and"]]]}, "the name of a query is ''"),
        ({"queries": [["a", ["and"]], ["a", ["and"]]]}, "given once"),
        ({"queries": [["a", ["xor"]]]}, "it must be pairs of a name and a predicate"),
        ({"queries": 5}, "queries is 5"),
        ({"epochs": [["b", 0, None]]}, "the query of epochs is 'b'; it must be one of all"),
        ({"epochs": [["all", 0, 1], ["all", 2, 3]]}, "named once"),
        ({"epochs": [["all", -1, None]]}, "the first epoch of 'all' is -1"),
        ({"epochs": [["all", 2, 1]]}, "the last epoch of 'all' is 1; it must be an integer, at"),
        ({"epochs": [["all", 2]]}, "it must be names with a first and last epoch"),
        ({"decisions": 5}, "decisions is 5; it must be lists of epoch, workers, block size and"),
        ({"decisions": [[0, 1, 1]]}, "it must be lists of epoch, workers, block size and share"),
        ({"decisions": [[-1, 1, 1, 0]]}, "the epoch of a decision is -1; it must be an integer"),
        (
            {"decisions": [[3, 1, 1, 0], [3, 1, 1, 0]]},
            "the epoch of a decision is 3; it must be an integer, at least 4",
        ),
        ({"decisions": [[3, 0, 1, 0]]}, "workers from epoch 3 on is 0; it must be an integer, at"),
        ({"decisions": [[3, 1, 0.5, 0]]}, "block_size from epoch 3 on is 0.5; it must be an"),
        ({"decisions": [[3, 1, 1, 1.5]]}, "the share from epoch 3 on is 1.5; it must be a number"),
        ({"colour": 1}, "unknown setting 'colour'"),
    ],
)
def test_an_impossible_configuration_is_refused(
    change: dict[str, PlainData], sentence: str
) -> None:
    data = {"window_us": 5, "queries": [["all", ["and"]]], **change}
    with pytest.raises(ValueError, match=r"must|unknown|missing") as refused:
        JoinConfig.from_json(data)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"least": 8, "most": 4}, "least is 8; it must be at most 4, which is most"),
        ({"least": 0}, "least is 0; it must be an integer >= 1"),
        ({"tau0": 0.5}, "tau0, tau1, tau2 are 0.5, 0.8, 0.8; it must be 0 < tau0 < tau1/2 < tau1"),
        ({"base": -0.5}, "base is -0.5; it must be a finite number >= 0"),
        ({"base": 0.9}, "base is 0.9; it must be at most 0.8, which is tau2"),
        ({"margin": -0.1}, "margin is -0.1; it must be a finite number >= 0"),
        ({"smoothing": 0.0}, "smoothing is 0.0; it must be a finite number > 0 and <= 1"),
        ({"smoothing": 1.5}, "smoothing is 1.5; it must be a finite number > 0 and <= 1"),
        ({"capacity": 0}, "capacity is 0; it must be an integer > 0"),
        ({"out_after_us": -1}, "out_after_us is -1; it must be an integer >= 0"),
        ({"blocks": "small"}, "blocks is 'small'; it must be one of fixed, adaptive"),
        ({"shed": "all"}, "shed is 'all'; it must be one of no, linear, quadratic"),
        ({"block_size": 0}, "block_size is 0; it must be an integer >= 1"),
    ],
)
def test_impossible_rules_of_load_are_refused(change: dict[str, PlainData], sentence: str) -> None:
    with pytest.raises(ValueError, match="must") as refused:
        LoadRules.of(**change)
    assert sentence in str(refused.value)
    assert LoadRules.from_json(LoadRules().to_json()) == LoadRules()


def test_a_query_that_is_not_limited_pairs_the_tuples_of_all_epochs() -> None:
    both = (("a", And()), ("b", And()))
    config = JoinConfig(5, both, epochs=(("b", 2, 3),))
    assert config.span("a") == (0, None)
    assert config.span("b") == (2, 3)


def test_a_missing_setting_is_named() -> None:
    with pytest.raises(ValueError, match="'queries' is missing"):
        JoinConfig.from_json({"window_us": 5})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Equi("time"), "column is 'time'"),
        (lambda: Band("key", 1.0), "keys have no distance"),
        (lambda: Apart("key", 1.0), "keys have no distance"),
        (lambda: Apart("value", -1.0), "eps is -1.0"),
        (lambda: Band("value", float("inf")), "eps is inf"),
        (lambda: Band("value", -1.0), "eps is -1.0"),
        (lambda: Ineq("value", "=", "value"), "op is '='"),
        (lambda: Ineq("value", "<", "key"), "right is 'key'; it must be 'value', of the same type"),
        (lambda: And(cast("Any", [Equi("key")])), "a tuple of predicates"),
        (lambda: And(cast("Any", ("key",))), "a part of And is 'key'"),
    ],
)
def test_an_impossible_predicate_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match="must be") as refused:
        make()
    assert sentence in str(refused.value)


def test_an_event_knows_its_stream_and_old_workloads_are_read() -> None:
    event = Event(0, 0, "a", 1, 1.0, 1)
    assert event.stream == ""
    workload = Workload("join", (event._replace(stream="R"),), {})
    data = workload.to_json()
    assert Workload.from_json(data) == workload
    data["arrivals"] = [list(event)[:6]]
    assert Workload.from_json(data).arrivals == (event,)


def test_kinds_have_different_names() -> None:
    assert [kind_of(word) for word in WORDS] == [
        "match",
        "rejected",
        "admit",
        "forward",
        "receive",
        "ack",
        "drop",
        "quiet",
    ]
