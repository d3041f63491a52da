"""The figures of the documentation: ``python -m properties.slack.plots docs/figures``.

Three controls meet the same arrivals: ``conformal``, the published law, and the longest wait.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from model.vocabulary import SlackConfig
from properties.cli import render
from properties.data import inputs
from sim.kernel.plan import Plan, replay
from sim.kernel.source import Source
from sim.kernel.trigger import Every
from sim.scenarios import umts
from sim.slack import TimedRun, simulate
from sim.slack.plots import plot_controls

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
HOUR_US = 60 * MINUTE_US
CONTROLS = ("conformal", "pd", "max")
SEED = 0
MESSAGES = 7_200
"""Of each phone: an hour."""
FLIGHTS = 85_000
"""The first quarter of the year."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What one figure shows."""

    config: SlackConfig
    """Of every control."""
    trigger_interval_us: int
    unit: str
    """Of slack and latency; see :data:`sim.slack.plots.UNITS_US`."""
    time_unit: str


PICTURES: Mapping[str, Picture] = {
    "umts": Picture(
        SlackConfig(
            10 * SECOND_US, 2 * SECOND_US, aggregate="sum", keyed=False, feedback_us=10 * SECOND_US
        ),
        SECOND_US,
        "s",
        "min",
    ),
    "flights": Picture(
        SlackConfig(6 * HOUR_US, HOUR_US, aggregate="count", keyed=False, feedback_us=6 * HOUR_US),
        10 * MINUTE_US,
        "h",
        "days",
    ),
}


def arrivals(name: str) -> Plan:
    """What arrives in the figure ``name``, or in any other recording that is present."""
    if name == "umts":
        plan = umts(SEED)
        sources = tuple(replace(s, events=MESSAGES) for s in plan.sources if isinstance(s, Source))
        return replace(plan, sources=sources)
    recording = inputs.load(name, SEED)
    return replay(recording.events[:FLIGHTS], recording.label)


def runs(name: str, picture: Picture, plan: Plan | None = None) -> list[TimedRun]:
    """A timed run of every control; ``plan`` takes the place of the arrivals of that name."""
    plan = replace(plan or arrivals(name), trigger=Every(picture.trigger_interval_us))
    return [simulate(plan, replace(picture.config, control=each), SEED) for each in CONTROLS]


def main(arguments: Sequence[str]) -> None:
    """Write every figure into the folder that is named."""
    folder = Path(arguments[0])
    for name, picture in PICTURES.items():
        with render.progress() as progress:
            progress.add_task(f"simulating {name}", total=None)
            path = folder / f"slack-{name}.svg"
            shown = runs(name, picture)
            plot_controls(shown, path, unit=picture.unit, time_unit=picture.time_unit)


if __name__ == "__main__":
    main(sys.argv[1:])
