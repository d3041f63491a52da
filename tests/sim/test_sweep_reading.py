"""Experiments from TOML: what is understood, and how what is not is refused."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from model.vocabulary.settings import JsonObject, PlainData
from sim.sweep.experiment import Experiment, Level, Measure, Plot, Reproduction
from sim.sweep.reading import catalogue, find, load, parse
from tests.sim.experiments import SMALL, small, values

EXPECT: JsonObject = {
    "says": "It is so",
    "measure": "share",
    "at_least": 1,
    "verdict": "refuted",
}


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
    assert (experiment.run, experiment.fan, experiment.confidence) == ("sim", "", 0.95)


def test_an_effort_adds_settings_and_replaces_levels() -> None:
    quick = {"base": {"tuples": 200, "zipf": 2.0}, "factors": {"slower": [2.5], "policy": ["cg"]}}
    grid = small(quick=quick, expect=[]).grids["quick"]
    assert (grid.base["tuples"], grid.base["zipf"], grid.base["keys"]) == ("200", "2.0", "20")
    policy, slower = grid.factors
    assert policy.labels == ("cg",)
    assert slower.levels == (Level(2.5, {"speeds": "1,0.4"}),)


def test_values_are_written_as_on_the_command_line() -> None:
    experiment = parse(
        {
            "name": "chain",
            "room": "join",
            "title": "A chain",
            "measures": ["results"],
            "base": {"scale": True, "record": False, "tiers": ["node", "rack"], "eps": 0.5},
            "factors": {"workers": [1, 2]},
        },
        "chain",
    )
    grid = experiment.grids["full"]
    assert grid.base == {"scale": "yes", "record": "no", "tiers": "node,rack", "eps": "0.5"}
    assert grid.factors[0].levels[1] == Level(2, {"workers": "2"})


def test_near_stands_for_two_bounds() -> None:
    (expectation,) = expecting(at_least=None, near=2, tolerance=0.5).expectations
    assert (expectation.at_least, expectation.at_most) == (1.5, 2.5)


def test_a_plot_names_columns() -> None:
    plot = {"x": "slower", "y": "share", "series": "policy", "log": ["x"]}
    assert small(plot=plot).plot == Plot("slower", "share", "policy", ("x",))
    drawn = small(plot={**plot, "where": {"policy": "tag"}}).plot
    assert drawn is not None
    assert drawn.where == {"policy": ("tag",)}


def test_columns_and_published_numbers_have_names_for_readers() -> None:
    labels = {"slower": "times slower", "share": "throughput by the ideal", "tenth": "a tenth"}
    published = {"says": "A tenth more.", "values": {"tenth": 1.1}}
    assert small(labels=labels, published=published).labels == labels
    assert small().labels == {}


@pytest.mark.parametrize("name", catalogue())
def test_the_catalogue_can_be_read(name: str) -> None:
    experiment = find(name)
    assert experiment.name == name
    assert experiment.source
    assert experiment.published
    assert experiment.claim
    assert experiment.expectations


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"name": "Small"}, "name is 'Small'; it must be words of a-z"),
        ({"room": "slak"}, "room is 'slak'; it must be one of grouping"),
        ({"run": "simm"}, "run is 'simm'; it must be one of sim, sides"),
        ({"titel": "x"}, "there is no titel; did you mean 'title'?"),
        ({"title": ""}, "title is ''; it must be a text that is not empty"),
        ({"title": 3}, "title is 3; it must be a text"),
        ({"seeds": True}, "seeds is True; it must be an integer"),
        ({"seeds": 0}, "seeds is 0; it must be an integer >= 1 and <= 1,000"),
        ({"confidence": 1}, "confidence is 1; it must be a finite number > 0 and < 1"),
        ({"measures": []}, "measures is []; it must be a list of at least one figure"),
        ({"measures": ["a = b /"]}, "measures is 'a = b /'; it must be a list like"),
        ({"measures": ["seed"]}, "measures is 'seed'"),
        ({"measures": ["share", "share = a / b"]}, "'share' would name two columns"),
        ({"measures": ["policy"]}, "'policy' would name two columns"),
        ({"factors": {"policy": []}}, "factors.policy has no level"),
        ({"factors": {"policy": "tag"}}, "factors.policy is 'tag'; it must be a list"),
        ({"factors": {"zipf": [1, 1]}}, "factors.zipf has the level 1 twice"),
        ({"factors": {"seed": [1]}}, "factors.seed is 'seed'"),
        ({"factors": {"zif": [1]}}, "there is no setting 'zif'; did you mean 'zipf'?"),
        ({"factors": {"slow": {"a": {"sped": 1}}}}, "there is no factors.slow.a.sped"),
        ({"quick": {"seed": 1}}, "there is no quick.seed; did you mean 'seeds'?"),
        ({"quick": {"factors": {"slower": [7]}}}, "quick.factors.slower is 7; it must be one of"),
        ({"quick": {"factors": {"slower": [[1]]}}}, "quick.factors.slower is [1]; it must be one"),
        (
            {"quick": {"factors": {"zipf": list(range(9999))}}},
            "quick has 79,992 runs; at most",
        ),
        ({"fan": "slower"}, "fan is 'slower'; it must be one of policy"),
        ({"fan": "policy", "factors": {"zipf": [1]}, "expect": []}, "a factor of quick"),
        ({"source": {"paper": "x"}}, "source.where is missing"),
        ({"published": {"sais": "x"}}, "there is no published.sais; did you mean 'says'?"),
        (
            {"published": {"says": "x", "values": {"share": float("nan")}}},
            "published.values.share is nan; it must be a finite number",
        ),
        (
            {"published": {"says": "x", "values": {"share": [1, {"a": 2}]}}},
            "published.values.share is [1, {'a': 2}]",
        ),
        ({"published": {"says": "x", "values": {"on": date(2026, 11, 22)}}}, "published.values.on"),
        ({"plot": {"x": "zipf", "y": "share"}}, "plot.x is 'zipf'; it must be one of policy"),
        ({"plot": {"x": "policy", "y": "rho"}}, "plot.y is 'rho'; it must be one of share"),
        ({"plot": {"x": "policy", "y": "share", "log": ["z"]}}, "plot.log is 'z'"),
        (
            {"plot": {"x": "policy", "y": "share", "where": {"policy": "dag"}}},
            "plot.where.policy is 'dag'; it must be one of",
        ),
        ({"labels": {"slowr": "x"}}, "there is no labels.slowr; did you mean 'slower'?"),
        ({"labels": {"slower": " "}}, "labels.slower is ''; it must be a text that is not empty"),
        ({"expect": [3]}, "expect is 3; it must be a list of tables"),
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


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"base": {"tupels": 1}}, "there is no base.tupels; did you mean 'tuples'?"),
        ({"base": {"tuples": "many"}}, "base.tuples is 'many'; it must be an integer"),
        ({"base": {"tuples": [1, 2]}}, "base.tuples is '1,2'; it must be an integer"),
        ({"base": {"zipf": "no"}}, "base.zipf is 'no'; it must be a finite number"),
        (
            {"base": {"theta": True}},
            "base.theta is 'yes'; it must be a finite number >= 1e-15 and < 1, or auto",
        ),
        ({"full": {"base": {"keys": 0.5}}}, "full.base.keys is '0.5'; it must be an integer"),
        ({"factors": {"keys": [3, "x"]}}, "factors.keys is 'x'; it must be an integer"),
        ({"factors": {"slow": {"a": {"load": "x"}}}}, "factors.slow.a.load is 'x'; it must be"),
        ({"base": {"policy": "tga"}}, "base.policy is 'tga'; it must be one of"),
        ({"base": {"policy": "tga"}}, "; did you mean 'tag'?"),
        ({"base": {"policy": "auto"}}, "base.policy is 'auto'; it must be one of"),
        ({"base": {"tiers": ["node", "rak"]}}, "base.tiers is 'rak'; it must be one of none"),
        ({"factors": {"policy": ["tag", "pgk"]}}, "factors.policy is 'pgk'; it must be one of"),
        ({"factors": {"slow": {"a": {"times": "givn"}}}}, "factors.slow.a.times is 'givn'; it"),
        ({"quick": {"base": {"service": "consant"}}}, "quick.base.service is 'consant'; it must"),
        ({"base": {"tuples": {}}}, "base.tuples is {}; it must be a finite number, a text"),
        ({"base": {"zipf": float("inf")}}, "base.zipf is inf; it must be a finite number"),
    ],
)
def test_an_invalid_value_of_a_setting_is_refused(other: dict[str, PlainData], words: str) -> None:
    assert_refused(other, words)


def assert_refused(other: JsonObject, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        parse({**values(), "expect": [], **other}, "small")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"at_leest": 1}, "there is no expect 1, at_leest; did you mean 'at_least'?"),
        ({"measure": "rho"}, "expect 1, measure is 'rho'; it must be one of share"),
        ({"verdict": "yes"}, "expect 1, verdict is 'yes'; it must be one of reproduced"),
        ({"verdict": "reproduced under stated assumptions"}, "expect 1, assumptions is ''"),
        ({"assumptions": "None"}, "expect 1, assumptions is 'None'"),
        ({"at_least": None}, "expect 1, measure has no bound"),
        ({"at_least": "1"}, "expect 1, at_least is '1'; it must be a finite number"),
        ({"at_least": float("nan")}, "expect 1, at_least is nan; it must be a finite number"),
        ({"at_most": 0.5}, "expect 1, at_least is 1.0; it must be at most at_most, which is 0.5"),
        ({"where": {"policy": []}}, "expect 1, where.policy is []; it must be a level, or a list"),
        ({"near": 1, "tolerance": 1}, "expect 1, at_least is 1; it must be the only bound"),
        ({"at_least": None, "near": 1}, "expect 1, tolerance is missing beside near"),
        ({"tolerance": 1}, "expect 1, tolerance is 1; it must be left out without near"),
        ({"where": {"policy": "pkg"}}, "expect 1, where.policy is 'pkg'; it must be one of"),
        ({"where": {"polcy": "tag"}}, "expect 1, where.polcy is 'polcy'; it must be one of policy"),
        ({"over": ["zipf"]}, "expect 1, over is 'zipf'; it must be one of policy, slower"),
        ({"compare": {}}, "expect 1, compare is {}; it must be one factor"),
        ({"compare": {"policy": ["tag"]}}, "expect 1, compare.policy is ['tag']; it must be two"),
        ({"compare": {"policy": ["tag", "cg"]}}, "expect 1, compare.policy is 'cg'"),
        (
            {"compare": {"policy": ["tag", "*"]}, "where": {"policy": "tag"}},
            "other factors than 'policy', which is compared",
        ),
        ({"compare": {"policy": ["tag", "*"]}, "over": ["policy"]}, "expect 1, over is 'policy'"),
        ({"as": "difference"}, "expect 1, as is 'difference'; it must be left out"),
        ({"goes": "up"}, "expect 1, goes is 'up'; it must be left out without along"),
        ({"along": "slower", "goes": "up"}, "expect 1, at_least is 1; it must be left out beside"),
        ({"at_least": None, "along": "slower"}, "expect 1, goes is missing"),
        (
            {"at_least": None, "along": "slower", "goes": "up", "where": {"slower": 1}},
            "expect 1, along is 'slower'; it must be a factor with two levels",
        ),
        ({"only": "slow"}, "expect 1, only is 'slow'; it must be one of quick, full"),
        ({"cells": "any"}, "expect 1, cells is 'any'; it must be one of all, some"),
    ],
)
def test_an_expectation_that_cannot_be_judged_is_refused(
    keys: dict[str, PlainData], words: str
) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        expecting(**keys)
    assert words in str(refused.value)


def test_an_expectation_may_name_a_level_that_only_its_effort_has() -> None:
    quick = {"factors": {"policy": ["tag"]}}
    expect = {**EXPECT, "where": {"policy": "shuffle"}}
    with pytest.raises(ValueError, match=r"where.policy is 'shuffle'; it must be one of tag"):
        small(quick=quick, expect=[expect])
    assert small(quick=quick, expect=[{**expect, "only": "full"}]).expectations


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no.toml' cannot be read: No such file"):
        find(str(tmp_path / "no.toml"))
    for name, content in (("a", b"name = "), ("b", b"\xff"), ("c", b'name = "other"')):
        path = tmp_path / f"{name}.toml"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{name}.toml'.*") as refused:
            load(path)
        assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=r"experiment is 'grouping-sped'.*did you mean"):
        find("grouping-sped")
