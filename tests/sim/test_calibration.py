"""Calibrations as data: what is read back, and what is refused."""

import json
from dataclasses import replace

import pytest

from sim.calibration import COSTS, Calibration, spread_of
from sim.kernel.link import Tier
from tests.sim.calibrations import CALIBRATION


def test_a_calibration_is_read_back() -> None:
    assert Calibration.from_json(json.loads(json.dumps(CALIBRATION.to_json()))) == CALIBRATION


def test_simulations_take_the_medians() -> None:
    found = replace(CALIBRATION, latency_us=(90.0, 100.0, 900.0), bandwidth_mbps=(8.0, 10.0, 11.0))
    assert found.link == Tier(100.0, 10.0)
    assert spread_of([3.0, 1.0, 2.0, 9.0]) == (1.0, 2.5, 9.0)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("version", 2, "version is 2; it must be 1"),
        ("message_us", [1.0, 2.0], "message_us is [1.0, 2.0]; it must be three numbers"),
        ("tuple_us", [2.0, 1.0, 3.0], "tuple_us is [2.0, 1.0, 3.0]; it must be three numbers"),
        ("epoch_us", [-1.0, 0.0, 1.0], "epoch_us is -1.0; it must be a finite number >= 0"),
        ("bandwidth_mbps", [0, 1, 2], "bandwidth_mbps is 0; it must be a finite number > 0"),
        ("near_latency_us", "fast", "near_latency_us is 'fast'; it must be a list"),
        ("speeds", [1.0], "speeds is [1.0]; it must be 2 numbers, as hosts has"),
        ("master", 7, "master is 7; it must be a text"),
        ("seconds", 7, "unknown setting 'seconds'"),
    ],
)
def test_an_impossible_value_is_named(name: str, value: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^.+$") as refusal:
        Calibration.from_json({**CALIBRATION.to_json(), name: value})
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize("name", [*COSTS, "speeds", "hosts", "master", "seed"])
def test_a_missing_field_is_named(name: str) -> None:
    data = CALIBRATION.to_json()
    del data[name]
    with pytest.raises(ValueError, match=f"^the setting '{name}' is missing$"):
        Calibration.from_json(data)
