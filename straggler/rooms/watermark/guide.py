"""Figure of docs/watermark-guide.md: ``python -m straggler.rooms.watermark.guide docs/figures``.

Every reading meets the same arrivals: the end of a calm, a storm, and the calm after it.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from model.vocabulary import Event, WatermarkConfig, Workload
from model.vocabulary.watermark import READINGS, Clock
from model.watermark import run
from sim.kernel.log import simulate_arrivals
from sim.report.drawing import BLACK, BLUE, ORANGE, panels, save
from sim.windows.scenarios import phases

SECOND_US = 1_000_000
SEED = 0
MAX_WAIT_US = 8 * SECOND_US
FROM_S, TO_S = 30, 80
FIGURE_RATE_HZ = 20
TITLES = {
    "disorder": "disorder: wait = M*D",
    "literal": "literal: wait = M*P, as printed",
    "scaled": "scaled: wait = M*min(1, 2D)",
    "fixed": "fixed: wait = M",
}


def arrivals() -> tuple[Sequence[Event], int]:
    """Return the tuples, and the time of the first one (us)."""
    plan = phases(SEED, MAX_WAIT_US, (TO_S + 10) * FIGURE_RATE_HZ, FIGURE_RATE_HZ)
    return simulate_arrivals(plan, SEED).events, plan.epoch_us


def clocks(reading: str, events: Sequence[Event]) -> Sequence[Clock]:
    """Return the clock of every arrival."""
    size_us = 10 * SECOND_US
    config = WatermarkConfig(size_us, size_us, MAX_WAIT_US, reading=reading)
    return run(Workload("watermark", tuple(events), config.to_json())).of(Clock)


def draw_readings() -> Figure:
    """Draw how far arrivals and watermark lie behind the time, one panel per reading."""
    events, start_us = arrivals()
    title = (
        "Arrivals and watermark: 20 tuples a second, in a storm half of them up to 8 s late\n"
        "M = 8 s, k = 50; tuples above the line are behind the watermark"
    )
    label = "time of arrival (s)"
    figure, below = panels(len(READINGS), (8.0, 9.0), title, label)
    for axes, reading in zip(below, READINGS, strict=True):
        _draw(axes, TITLES[reading], events, clocks(reading, events), start_us)
    return figure


def _draw(
    axes: Axes, title: str, events: Sequence[Event], recorded: Sequence[Clock], start_us: int
) -> None:
    came_s = np.array([event.arrival_us - start_us for event in events]) / SECOND_US
    shown = (came_s >= FROM_S) & (came_s <= TO_S)
    delay_s = np.array([e.arrival_us - e.event_time_us for e in events]) / SECOND_US
    behind_s = (
        np.array([e.arrival_us - clock.wm_us for e, clock in zip(events, recorded, strict=True)])
        / SECOND_US
    )
    # Every eighth tuple without a delay, to keep the file small.
    drawn = shown & ((delay_s > 0) | (np.arange(len(events)) % 8 == 0))
    for is_behind, colour, marker, label in (
        (False, BLUE, ".", "tuple"),
        (True, ORANGE, "x", "tuple behind\nthe watermark"),
    ):
        some = drawn & ((delay_s > behind_s) == is_behind)
        axes.plot(came_s[some], delay_s[some], marker, color=colour, markersize=3, label=label)
    axes.plot(came_s[shown][::2], behind_s[shown][::2], color=BLACK, label="watermark")
    axes.set_title(title)
    axes.set_ylabel("behind the time (s)")
    axes.set_ylim(-0.5, 9.0)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


if __name__ == "__main__":
    save(draw_readings, (), Path(sys.argv[1]) / "watermark-readings.svg")
