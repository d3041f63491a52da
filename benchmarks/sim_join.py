"""Speed of the timed room ``join``: tuples per second of wall-clock time.

Two steady streams of 5,000 tuples a second each for ten seconds through four workers, with a
window of a second, a band that selects a thousandth, blocks of 256 and an intake every
50 ms: about 9,700 tuples held, five results a tuple. ``tuples_per_s`` counts everything from the
first arrival to the figures of the finished run; ``timed_tuples_per_s`` the timed run alone.
"""

from statistics import median
from time import perf_counter

from model.vocabulary import JoinConfig
from model.vocabulary.join import Band
from sim.batches import cut
from sim.join.crew import Control, Costs, Crew
from sim.join.run import arrivals_of
from sim.join.scenarios import Rates, steady
from sim.join.series import series_of
from sim.join.summary import summary_of
from sim.join.timed import Room, Stream

ROUNDS = 3
PLAN = steady(Rates(5_000, 5_000, 10))
CONFIG = JoinConfig(
    1_000_000, (("near", Band("value", 5.0)),), workers=4, block_size=256, lateness_us=200_000
)
# Quick enough for these rates, whatever the defaults are.
CREW = Crew(costs=Costs(1.0, 0.02, 0.002, 0.01), intake_us=50_000)


def measure() -> dict[str, float]:
    """Median rates over three rounds."""
    events = arrivals_of(PLAN, seed=1)
    cuts, _ = cut(events, PLAN.epoch_us, 10_000_000)
    stream = Stream(events, cuts, PLAN.epoch_us)
    rates = [_rates(stream) for _ in range(ROUNDS)]
    return {
        "tuples_per_s": median(whole for whole, _ in rates),
        "timed_tuples_per_s": median(timed for _, timed in rates),
    }


def _rates(stream: Stream) -> tuple[float, float]:
    started_s = perf_counter()
    room = Room(stream, CONFIG, CREW, Control(), (), seed=1, record=False)
    room.run()
    timed_s = perf_counter() - started_s
    series_of(room)
    summary_of(room)
    tuples = len(stream.arrivals)
    return tuples / (perf_counter() - started_s), tuples / timed_s
