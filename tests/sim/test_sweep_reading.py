"""Experiments from TOML, and the catalogue: what is understood, and how what is not is refused."""

from pathlib import Path
from typing import Any

import pytest

from model.vocabulary.settings import JsonObject, PlainData
from sim.sweep.experiment import Experiment, Grid, Level, Measure, Reproduction
from sim.sweep.measurable import measurable
from sim.sweep.reading import catalogue, find, load, parse
from tests.sim.experiments import SMALL, small, values

EXPECT: JsonObject = {
    "says": "It is so",
    "measure": "share",
    "at_least": 1,
    "verdict": "refuted",
}
OTHERS: JsonObject = {**EXPECT, "compare": {"policy": ["tag", "*"]}}


def expecting(**keys: Any) -> Experiment:
    """Return the small experiment with one expectation, without the keys that are ``None``."""
    given = {**EXPECT, **keys}
    return small(expect=[{key: value for key, value in given.items() if value is not None}])


def test_every_key_of_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    experiment = load(path)
    assert find(str(path)) == experiment
    quick, full = experiment.grids["quick"], experiment.grids["full"]
    assert (quick.seeds, full.seeds) == (2, 3)
    assert quick.base["tuples"] == "400"
    policy, slower = quick.factors
    assert policy.levels[1] == Level("tag", {"policy": "tag"})
    assert slower.levels == (Level(1, {"speeds": "1"}), Level(2.5, {"speeds": "1,0.4"}))
    assert experiment.measures[0] == Measure("share", "served_hz", "ideal_hz")
    assert experiment.measures[1] == Measure("mean_rho", "mean_rho")
    (expectation,) = experiment.expectations
    assert expectation.verdict is Reproduction.REPRODUCED
    assert expectation.where == {"slower": (2.5,)}
    assert (experiment.run, experiment.fan) == ("sim", "")


def test_near_stands_for_two_bounds() -> None:
    (expectation,) = expecting(at_least=None, near=2, tolerance=0.5).expectations
    assert (expectation.at_least, expectation.at_most) == (1.5, 2.5)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"name": "Small"}, "name is 'Small'; it must be words of a-z"),
        ({"run": "simm"}, "run is 'simm'; it must be one of sim, sides"),
        ({"measures": ["a = b /"]}, "measures is 'a = b /'; it must be a list like"),
        ({"measures": ["share", "share = a / b"]}, "'share' would name two columns"),
        ({"factors": {"zipf": [1, 1]}}, "factors.zipf has the level 1 twice"),
        ({"factors": {"zif": [1]}}, "there is no setting 'zif'; did you mean 'zipf'?"),
        ({"quick": {"factors": {"slower": [[1]]}}}, "quick.factors.slower is [1]; it must be one"),
        ({"fan": "slower"}, "fan is 'slower'; it must be one of policy"),
        ({"source": {"paper": "x"}}, "source.where is missing"),
        ({"published": {"said": "x"}}, "there is no published.said; known are says"),
        ({"base": {"tupels": 1}}, "there is no base.tupels; did you mean 'tuples'?"),
        ({"base": {"tuples": [1, 2]}}, "base.tuples is '1,2'; it must be an integer"),
        ({"factors": {"keys": [3, "x"]}}, "factors.keys is 'x'; it must be an integer"),
        ({"quick": {"base": {"service": "consant"}}}, "quick.base.service is 'consant'; it must"),
        ({"factors": {"policy": ["tag"]}, "expect": [OTHERS]}, "expect 1, compare is 'policy'"),
    ],
)
def test_an_invalid_file_is_refused_in_one_sentence(
    other: dict[str, PlainData], words: str
) -> None:
    assert_refused(other, words)


def test_a_fan_sets_nothing_else_at_any_level() -> None:
    levels: dict[str, PlainData] = {"a": {"policy": "tag"}, "b": {"policy": "dag", "zipf": 1}}
    other = {"fan": "policy", "factors": {"policy": levels}, "expect": []}
    assert_refused(other, "a factor of quick that is a list of values")


def assert_refused(other: JsonObject, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse({**values(), "expect": [], **other}, "small")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"at_leest": 1}, "there is no expect 1, at_leest; did you mean 'at_least'?"),
        ({"assumptions": "None"}, "expect 1, assumptions is 'None'"),
        ({"at_most": 0.5}, "expect 1, at_least is 1.0; it must be at most at_most, which is 0.5"),
        ({"near": 1, "tolerance": 1}, "expect 1, at_least is 1; it must be the only bound"),
        ({"tolerance": 1}, "expect 1, tolerance is 1; it must be left out without near"),
        ({"where": {"polcy": "tag"}}, "expect 1, where.polcy is 'polcy'; it must be one of policy"),
        ({"compare": {}}, "expect 1, compare is {}; it must be one factor"),
        ({"compare": {"policy": ["tag", "dag"]}}, "expect 1, compare.policy is 'dag'"),
        ({"compare": {"policy": ["tag", "*"]}, "over": ["policy"]}, "expect 1, over is 'policy'"),
        ({"goes": "up"}, "expect 1, goes is 'up'; it must be left out without along"),
        ({"at_least": None, "along": "slower"}, "expect 1, goes is missing"),
    ],
)
def test_an_expectation_that_cannot_be_judged_is_refused(
    keys: dict[str, PlainData], words: str
) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        expecting(**keys)
    assert words in str(refused.value)


# ------------------------------------------------------------------------------------ the catalogue


NAMES = catalogue()
SMALLER = {
    "slack": {"messages": "1500"},
    "watermark": {"messages": "6000"},
    "join": {"seconds": "3"},
    "grouping": {"tuples": "1500", "window_tuples": "300", "batch_tuples": "300"},
    "script": {},
}
"""Settings that make a run very short, by room; some measurables do not have them."""
LONG = {"join-case-study": "needs 20 minutes for its workers to come and go"}


@pytest.fixture(scope="module")
def experiments() -> dict[str, Experiment]:
    return {name: find(name) for name in NAMES}


def test_every_experiment_says_where_its_claim_was_published(
    experiments: dict[str, Experiment],
) -> None:
    for name, experiment in experiments.items():
        assert experiment.source is not None, name
        assert experiment.claim, name
        assert experiment.published, name
        assert experiment.expectations, name


def tiny(experiment: Experiment) -> dict[str, str]:
    """Return the settings of the first combination of a quick sweep, as small as possible."""
    grid: Grid = experiment.grids["quick"]
    known = measurable(experiment.room, experiment.run).settings
    settings = dict(grid.base)
    for factor in grid.factors:
        settings |= factor.levels[0].settings
    smaller = SMALLER[experiment.room]
    if experiment.run == "largest-rate":
        smaller = {"seconds": "1", "window_us": "200000"}
    if experiment.name in ("slack-calm", "slack-feedback"):
        smaller = {"messages": "30000"}  # four spells of 5 s and the one that is cut off
    if experiment.room == "grouping" and "batch_us" in settings:  # windows by time
        smaller = {**smaller, "batch_us": "25000"}
    return settings | {key: value for key, value in smaller.items() if key in known}


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in NAMES if name not in LONG])
def test_a_tiny_run_gives_every_measure(name: str) -> None:
    experiment = find(name)
    settings = tiny(experiment)
    figures = measurable(experiment.room, experiment.run).measure(settings, 0)
    for measure in experiment.measures:
        assert measure.figure in figures, (name, measure.figure)
        assert not measure.by or measure.by in figures, (name, measure.by)
