"""Scripts whose driver is killed: three sensors, two workers that have results for each other."""

from model.vocabulary import ScriptConfig, Workload
from properties.script.parser import parse
from properties.windows.driver import prepare
from sim.kernel.log import simulate_arrivals
from sim.scenarios import umts
from tests.harness.background_kills import Subject

BATCHES = 4
PER_HOUR = {"A": 10_000, "B": 10_000, "C": 100}
"""So each worker has one of A and B."""
SCRIPT = """
spread = stddev("A", 400, 200)
most = max(union("B", spread), 600, 300)
mean = avg("B", 400, 400)
total = sum(mean, "A")
ratio = "A" / spread
seldom = count("C", 2_000, 500)
"""


def workload_of(number: int, seed: int) -> Workload:
    """Query number so and so, in :data:`BATCHES` micro-batches.

    Several phones are one sensor, so that its tuples are late.
    """
    sensors = tuple(PER_HOUR)
    events = tuple(
        event._replace(key=sensors[int(event.key.removeprefix("dev_")) % len(sensors)])
        for event in simulate_arrivals(umts(seed + number, messages=60), seed).events
    )
    config = ScriptConfig(
        (parse(SCRIPT, "killed"),),
        tuple(PER_HOUR.items()),
        workers=2,
        lateness_us=50_000,
        cap_percent=100,
    )
    cuts = tuple(len(events) * batch // BATCHES for batch in range(1, BATCHES))
    return Workload("script", events, config.to_json(), cuts, seed=seed, name=f"scripts-{number}")


SUBJECT = Subject("properties.script.driver", prepare, workload_of, kills_a_query=1)
