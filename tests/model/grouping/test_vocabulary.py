"""Words of room ``grouping``: its configuration and the refusals."""

import json

import pytest

from model.vocabulary import GroupingConfig
from model.vocabulary.grouping import WORDS
from model.vocabulary.settings import PlainData
from model.vocabulary.trace import kind_of


def test_a_configuration_survives_json() -> None:
    config = GroupingConfig(2, "nag-static", ((0, (1, 5)), (3, (2, 2))), (0, 7), tiers=(0, 3))
    assert GroupingConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert GroupingConfig.from_json({"instances": 4}) == GroupingConfig(4)


def test_shares_follow_from_the_number_of_instances() -> None:
    assert GroupingConfig(4).theta_share == 1 / 20
    assert GroupingConfig(4, "dag").theta_share == 1 / 400
    assert GroupingConfig(4).eps_share == 1 / 40
    assert GroupingConfig(4, theta=0.5).eps_share == 0.25
    assert GroupingConfig(4, theta=0.5, eps=0.1).eps_share == 0.1


def test_times_hold_from_their_micro_batch_on() -> None:
    config = GroupingConfig(2, times_us=((0, (1, 5)), (3, (2, 2))))
    assert [config.times_of(batch) for batch in (0, 2, 3, 9)] == [(1, 5), (1, 5), (2, 2), (2, 2)]
    assert GroupingConfig(3).times_of(0) == (1, 1, 1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"instances": 0}, "instances is 0; it must be an integer > 0"),
        ({"instances": "4"}, "instances is '4'; it must be an integer"),
        ({"policy": "tags"}, "policy is 'tags'; it must be one of key, round-robin"),
        ({"theta": 0}, "theta is 0; it must be a finite number >= 1e-15 and < 1"),
        ({"theta": 1e-320}, "theta is 1e-320; it must be a finite number >= 1e-15"),
        ({"eps": 1e-19}, "eps is 1e-19; it must be a finite number >= 1e-15"),
        ({"eps": 0.2}, "eps is 0.2; it must be at most half of theta, 0.05"),
        ({"gamma": 0}, "gamma is 0"),
        ({"alpha": 1.5}, "alpha is 1.5; it must be a finite number >= 0 and <= 1"),
        ({"hash_seed": -1}, "hash_seed is -1"),
        ({"latency_us": [1]}, "latency_us is (1,); it must be one number for each of the 2"),
        ({"latency_us": [0, -1]}, "latency_us is -1; it must be at least 0"),
        (
            {"latency_us": [0, 10**13]},
            "latency_us is 10000000000000; it must be at most 1000000000000",
        ),
        ({"tiers": [0, 4]}, "tiers is 4; it must be an integer >= 0 and <= 3"),
        ({"tiers": 3}, "tiers is 3; it must be a list"),
        ({"times_us": [[0, [1, 0]]]}, "times_us is 0; it must be at least 1"),
        ({"times_us": [[0, [1, 10**400]]]}, "it must be at most 1000000000000"),
        ({"times_us": [[1, [1, 1]]]}, "the first micro-batch of times_us is 1; it must be 0"),
        ({"times_us": [[0, [1, 1]], [0, [1, 1]]]}, "the micro-batch of times_us is 0"),
        ({"times_us": [[0, []]]}, "a time for every instance"),
        ({"times_us": [0]}, "times_us is [0]; it must be a list"),
        ({"draw_tuples": 0}, "draw_tuples is 0; it must be an integer > 0"),
        ({"window": 1}, "unknown setting 'window'"),
    ],
)
def test_an_impossible_configuration_is_refused(
    change: dict[str, PlainData], sentence: str
) -> None:
    with pytest.raises(ValueError, match=r"must|unknown|missing") as refused:
        GroupingConfig.from_json({"instances": 2, **change})
    assert sentence in str(refused.value)


def test_the_number_of_instances_is_needed() -> None:
    with pytest.raises(ValueError, match="'instances' is missing"):
        GroupingConfig.from_json({})


def test_kinds_of_steps_have_names_of_their_own() -> None:
    assert len({kind_of(word) for word in WORDS}) == len(WORDS)
