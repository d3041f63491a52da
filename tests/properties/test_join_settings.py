"""docs/join.md lists the settings of a timed run with what they are by default."""

import re
from pathlib import Path

from properties.durations import write_duration
from sim.join import DEFAULTS

PAGE = (Path(__file__).parents[2] / "docs" / "join.md").read_text(encoding="utf-8")


def test_every_setting_is_listed_with_its_default() -> None:
    listed = re.findall(
        r"^\| `(\w+)` \| `([^`]+)` \| \S", PAGE.split("**Settings**")[1], flags=re.M
    )
    assert listed == [(name, written(name, default)) for name, default in DEFAULTS.items()]


def written(name: str, default: object) -> str:
    """A default as it could be given."""
    if name.endswith("_us") and isinstance(default, int):
        return write_duration(default)
    return str(default)
