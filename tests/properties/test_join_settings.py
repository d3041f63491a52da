"""docs/join.md lists the settings of a timed run with what they are by default."""

import re
from pathlib import Path

from model.vocabulary.settings import Setting
from properties.data.durations import parse_duration_us, write_duration
from sim.join import SETTINGS, STANDARD, from_settings

PAGE = (Path(__file__).parents[2] / "docs" / "join.md").read_text(encoding="utf-8")


def test_every_setting_is_listed_with_its_default() -> None:
    listed = re.findall(
        r"^\| `(\w+)` \| `([^`]+)` \| \S", PAGE.split("**Settings**")[1], flags=re.M
    )
    assert listed == [(name, written(name, each)) for name, each in SETTINGS.items()]


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


def written(name: str, setting: Setting) -> str:
    if name.endswith("_us") and isinstance(setting.default, int):
        return write_duration(setting.default)
    return setting.write(setting.default)
