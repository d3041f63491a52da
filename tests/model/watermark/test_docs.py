"""Readings, settings and steps are those that docs/watermark.md lists."""

import re
from dataclasses import fields
from pathlib import Path

from model.vocabulary import WatermarkConfig
from model.vocabulary.watermark import READINGS, WORDS, Clock
from model.watermark.evidence import IDENTITY
from model.windows import cluster

PAGE = (Path(__file__).parents[3] / "docs" / "watermark.md").read_text(encoding="utf-8")


def test_every_reading_is_described_and_modelled() -> None:
    table = PAGE[PAGE.index("| `reading` |") :]
    assert re.findall(r"^\| `(\w+)`", table, flags=re.M)[1:5] == list(READINGS)
    assert tuple(cluster.READINGS) == READINGS


def test_every_setting_that_only_this_room_has_is_described() -> None:
    # The others have the meaning that docs/slack.md gives them.
    for name in ("max_wait_us", "reading", "corrections", "clocks", "feedback_us", "max_future_us"):
        assert name in {field.name for field in fields(WatermarkConfig)}
        assert re.search(rf"`[^`]*\b{name}\b", PAGE), name


def test_the_clock_has_the_fields_of_the_page() -> None:
    assert f"`Clock({', '.join(Clock._fields)})`" in PAGE


def test_every_kind_of_step_is_named_and_has_an_identity() -> None:
    for word in WORDS:
        assert f"`{word.__name__}" in PAGE, word
        assert word.__name__.lower() in IDENTITY
