"""docs/join.md shows the standard scenario of a timed run."""

import re
from pathlib import Path

from model.vocabulary.durations import parse_duration_us
from sim.join import STANDARD, from_settings

PAGE = (Path(__file__).parents[2] / "docs" / "join.md").read_text(encoding="utf-8")


def test_the_standard_scenario_is_the_one_on_the_page() -> None:
    commands = re.findall(r"^straggler sim join (--set scenario=steady .*)$", PAGE, flags=re.M)
    options = dict(re.findall(r"--set (\w+)=(\S+)", commands[0]))
    given = {
        name: str(parse_duration_us(text)) if name.endswith("_us") else text
        for name, text in options.items()
    }
    assert given == STANDARD


def test_the_standard_scenario_is_dense_and_within_its_limits() -> None:
    run = from_settings({**STANDARD, "seconds": "2"}, 1)
    figures = {name: float(run.summary[name]) for name in ("mean_block", "results", "shed")}
    assert figures["mean_block"] > 200
    assert figures["results"] > len(run.workload.arrivals)
    assert figures["shed"] == 0
    assert float(run.summary["fullest_worker"]) < 0.8
