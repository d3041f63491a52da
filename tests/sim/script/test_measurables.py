"""Measurables of sensor scripts, and the sets of workflows that experiments run."""

import pytest

from sim.script.measurables import MEASURABLES, PLACEMENT, side_by_side
from sim.script.placements import PLACEMENTS
from sim.script.scenarios import SETS, WorkflowSizes
from sim.script.settings import config_of

SMALL = {"sensors": "8", "rates_hz": "5", "seconds": "6", "workers": "2"}
SHARED = {"scenario": "shared", "sensors": "16", "rates_hz": "20"}
SENSOR_HZ = 72_000
"""Tuples of one sensor of 20 Hz in an hour."""


@pytest.mark.parametrize("name", ["sim", "communication"])
def test_placements_side_by_side_measure_as_one_by_one(name: str) -> None:
    ways = list(PLACEMENTS)
    found = MEASURABLES[name].fans[PLACEMENT](SMALL, 3, ways)
    alone = [MEASURABLES[name].measure({**SMALL, PLACEMENT: way}, 3) for way in ways]
    assert list(found) == alone


def test_each_named_placement_has_its_figures() -> None:
    ways = ["by-unit", "by-sensor"]
    found = side_by_side({**SMALL, "placements": ",".join(ways)}, 3)
    assert [each.placement for each in found] == ways
    alone = [MEASURABLES["sim"].measure({**SMALL, PLACEMENT: way}, 3) for way in ways]
    for each, summary in zip(found, alone, strict=True):
        assert each._asdict() == {name: summary.get(name) for name in each._fields}


def test_figures_from_the_rates_are_those_of_a_run() -> None:
    timed = MEASURABLES["sim"].measure(SMALL, 3)
    predicted = MEASURABLES["communication"].measure(SMALL, 3)
    assert predicted == {name: timed[name] for name in predicted}


def test_sensors_that_are_not_shared_are_sent_once() -> None:
    for way in PLACEMENTS:
        found = MEASURABLES["communication"].measure({**SHARED, "shared": "0", PLACEMENT: way}, 1)
        assert found["predicted_per_hour"] == 16 * SENSOR_HZ, way
        assert found["sent_over_baseline"] == 1


def test_a_union_is_computed_where_all_of_it_is_sent() -> None:
    # Of 16 sensors eight are in one union: whole, one worker has them, and nothing is sent twice.
    found = MEASURABLES["communication"].measure({**SHARED, "together": "8"}, 1)
    assert found["predicted_per_hour"] == 16 * SENSOR_HZ
    assert found["largest_over_even"] == 2
    baseline = {**SHARED, "together": "8", PLACEMENT: "by-sensor"}
    sent = MEASURABLES["communication"].measure(baseline, 1)["predicted_per_hour"]
    assert sent == 16 * SENSOR_HZ / float(str(found["sent_over_baseline"]))


def test_bridges_have_sections_and_spare_sensors() -> None:
    config = config_of({"sensors": "24"}, 7)
    assert len(config.sensors) - len(config.asked_for) == 2
    assert [flow.name for flow in config.workflows] == [
        *(f"section-{each}" for each in range(6)),
        *(f"between-{each}-{each + 1}" for each in (0, 2, 4)),
    ]


def test_workflows_are_drawn_by_the_seed() -> None:
    wanted = WorkflowSizes(20, 1, workflows=9, windows=2, together=3)
    flows = SETS["drawn"](wanted).workflows
    assert flows == SETS["drawn"](wanted).workflows
    assert len(flows) == 9
    assert all(len(flow.statements) == 3 for flow in flows)
    assert flows != SETS["drawn"](wanted._replace(seed=2)).workflows


def test_lines_are_counted() -> None:
    found = MEASURABLES["lines"].measure({"workflow": "printed"}, 1)
    # Seven statements; two imports, a function of four lines and one of eight.
    assert (found["script_lines"], found["program_lines"]) == (7, 2 + 4 + 8)
    every = MEASURABLES["lines"].measure({}, 1)
    assert every["workflows"] == 6
    with pytest.raises(ValueError, match="workflow is 'printd'"):
        MEASURABLES["lines"].measure({"workflow": "printd"}, 1)


def test_windows_that_share_panes_keep_less() -> None:
    small = {"scenario": "spans", "sensors": "1", "rates_hz": "2", "seconds": "24"}
    kept = MEASURABLES["memory"].measure({**small, "disorder": "calm", "lateness_us": "0"}, 0)
    # A tuple every 0.5 s, panes of a second: a window of 10 s every second needs up to ten of them
    # and serves all others; 2 + 1 + 3 + 10 + 2 panes at most if each window has its own.
    names = ("shared", "own", "tuple")
    shared, own, tuples = (float(str(kept[f"{name}_numbers"])) for name in names)
    assert 6 * 8 <= shared <= 6 * 11
    assert shared < own <= 6 * 18
    assert tuples <= 2 * 2 * (2 + 4 + 6 + 10 + 10)


def test_without_the_filter_workers_serve_what_nobody_asks_for() -> None:
    few = {"scenario": "drawn", "sensors": "12", "workflows": "1", "seconds": "2", "loss": "0"}
    found = {
        filters: MEASURABLES["sim"].measure({**few, "filters": filters}, 0)
        for filters in ("yes", "no")
    }
    dropped = int(str(found["yes"]["tuples_dropped"]))
    assert dropped > 0
    sent = {filters: int(str(each["tuples_sent"])) for filters, each in found.items()}
    assert sent["no"] == sent["yes"] + dropped
    assert found["no"]["results"] == found["yes"]["results"]
    assert float(str(found["no"]["busiest"])) > float(str(found["yes"]["busiest"]))
