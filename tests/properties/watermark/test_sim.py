"""A timed run observes what the model says, and keeps the promises."""

from model.vocabulary import WatermarkConfig
from model.vocabulary.watermark import READINGS
from sim.watermark import simulate
from sim.windows.scenarios import phases

SECOND_US = 1_000_000


def test_every_reading_meets_the_same_arrivals() -> None:
    runs = {
        reading: simulate(
            phases(11),
            WatermarkConfig(10 * SECOND_US, 10 * SECOND_US, 8 * SECOND_US, reading=reading),
            11,
        )
        for reading in READINGS
    }
    assert len({timed.workload.arrivals for timed in runs.values()}) == 1
    late = {reading: timed.summary["late_pairs"] for reading, timed in runs.items()}
    waits = {reading: float(timed.summary["mean_wait_us"]) for reading, timed in runs.items()}
    # A storm displaces a tuple by up to M, so that a fixed watermark misses nothing.
    assert late["fixed"] == 0 < late["scaled"] < late["disorder"]  # type: ignore[operator]  # figures are numbers here
    assert waits["disorder"] < waits["scaled"] < waits["literal"] < waits["fixed"]
