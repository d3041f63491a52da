"""How fast the timed room ``join`` is; ``benchmarks/_timed_rooms.py`` says how it is measured.

``standard_...`` is the run of the default settings: a hundred tuples a second, so that nearly every
tuple is a message of its own at each of four workers. The others are dense: two steady streams of
5,000 tuples a second each for ten seconds through four workers, with a window of a second, a band
that selects a thousandth, blocks of 256 and an intake every 50 ms: about 9,700 tuples held, five
results a tuple. ``timed_...`` is the timed run alone, and without a prefix everything from the
first arrival to the figures of the finished run.
"""

from functools import partial
from time import process_time

from benchmarks._timed_rooms import paces, standard
from model.vocabulary import JoinConfig
from model.vocabulary.join import Band
from sim.batches import cut
from sim.collecting import uncollected
from sim.join import from_settings
from sim.join.crew import Control, Costs, Crew
from sim.join.run import arrivals_of
from sim.join.scenarios import Rates, steady
from sim.join.series import series_of
from sim.join.summary import summary_of
from sim.join.timed import Room, Stream

PLAN = steady(Rates(5_000, 5_000, 10))
CONFIG = JoinConfig(
    1_000_000, (("near", Band("value", 5.0)),), workers=4, block_size=256, lateness_us=200_000
)
# Quick enough for these rates, whatever the defaults are.
CREW = Crew(costs=Costs(1.0, 0.02, 0.002, 0.01), intake_us=50_000)


def measure() -> dict[str, float]:
    """Medians over five rounds."""
    events = arrivals_of(PLAN, seed=1)
    cuts, _ = cut(events, PLAN.epoch_us, 10_000_000)
    stream = Stream(events, cuts, PLAN.epoch_us)
    return {
        **standard(partial(from_settings, {})),
        **paces(len(events), lambda: _once(stream)),
    }


@uncollected()
def _once(stream: Stream) -> dict[str, float]:
    started_s = process_time()
    room = Room(stream, CONFIG, CREW, Control(), (), seed=1, record=False)
    room.run()
    timed_s = process_time() - started_s
    series_of(room)
    summary_of(room)
    return {"": process_time() - started_s, "timed_": timed_s}
