"""The figure of the guide shows calm and storm, and what the readings make of them."""

from pathlib import Path

from straggler.rooms.watermark.guide import (
    FIGURES,
    FROM_S,
    MAX_WAIT_US,
    SECOND_US,
    arrivals,
    clocks,
)

FIGURE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "watermark-readings.svg"


def test_the_readings_differ_as_the_guide_says() -> None:
    events, start_us = arrivals()
    storm = [n for n, e in enumerate(events) if 45 <= (e.arrival_us - start_us) / SECOND_US <= 60]
    calm = [n for n, e in enumerate(events) if FROM_S <= (e.arrival_us - start_us) / SECOND_US < 40]

    def mean_wait(reading: str, some: list[int]) -> float:
        recorded = clocks(reading, events)
        return sum(recorded[n].wait_us for n in some) / len(some) / MAX_WAIT_US

    assert mean_wait("disorder", calm) == 0
    assert mean_wait("literal", calm) == 1
    assert 0.25 < mean_wait("disorder", storm) < 0.4
    assert 0.5 < mean_wait("scaled", storm) < 0.8
    assert mean_wait("literal", storm) < 0.75


def test_the_figure_is_drawn_from_these_arrivals(tmp_path: Path) -> None:
    FIGURES[FIGURE.name](tmp_path / FIGURE.name)
    drawn = (tmp_path / FIGURE.name).read_text(encoding="utf-8")
    assert drawn.count("<use") == FIGURE.read_text(encoding="utf-8").count("<use") > 500
    assert "literal: wait = M*P, as printed" in drawn
