"""Wrong changes of a right trace of room ``script``, each with the claim that must notice it."""

from model.script.claims import BOUNDS, HOSTS, LOAD, REJECTIONS, RESULTS, UNDEFINED
from model.vocabulary import Event, ScriptConfig, Workload
from model.vocabulary.script.config import REASON_LATE, Hosted, Rejected, Result, Undefined
from straggler.rooms.script.language import parse
from tests.quality.changes import Changed, at, without

SCRIPT = """
total = sum("a", 4, 4)
again = sum("a", 4, 4)
ratio = "b" / "b"
"""
ROWS = (
    ("a", 1_000, 1.0),
    ("b", 1_000, 0.0),
    ("a", 9_000, 2.0),
    ("a", 8_000, 4.0),
    ("a", 3_000, 8.0),
    ("a", 9_000, float("nan")),
    ("b", 5_000, 3.0),
)
"""Sensor, event time (us) and value of each arrival; arrival 4 is late, and one is not finite."""
CONFIG = ScriptConfig(
    (parse(SCRIPT, "w"),), (("a", 1_000), ("b", 1_000)), workers=2, lateness_us=2_000
)
CASE = Workload(
    "script",
    tuple(Event(seq, seq, key, us, value, 10_000) for seq, (key, us, value) in enumerate(ROWS)),
    CONFIG.to_json(),
)

CHANGES: tuple[Changed, ...] = tuple(
    Changed(*each)
    for each in (
        (CASE, Result, without(0), RESULTS, "There is no again = 1 of w at 3,000 us"),
        (CASE, Result, at(0, value=2.0), RESULTS, "There is no again = 1 of w"),
        (CASE, Undefined, without(0), UNDEFINED, "There is no undefined ratio of w at 1,000 us"),
        (CASE, Rejected, without(1), REJECTIONS, "of arrival 5: value is not a finite number"),
        (CASE, Rejected, without(0), BOUNDS, "4 lies 6,000 us behind 'a', and is not late"),
        (CASE, Rejected, at(1, seq=6, reason=REASON_LATE), BOUNDS, "lie behind 'b', and is late"),
        (CASE, Hosted, without(0), HOSTS, "No worker is sent 'a'"),
        (CASE, Hosted, at(1, worker=0), LOAD, "is sent 2,000 tuples an hour, more than 1,166.67"),
    )
)
