"""Wrong changes of a right trace of room ``watermark``, each with the claim that must notice it."""

from model.vocabulary import Event, Workload
from model.vocabulary.watermark import Clock, Inserted, Passing
from model.vocabulary.windows import Cleared, Final, Late, Result, Revision
from tests.quality.changes import Changed, all_with, at, without

ARRIVALS = tuple(
    Event(seq, seq, "a", time_us, 1.0 if seq != 4 else float("inf"), 100 + seq)
    for seq, time_us in enumerate((3, 8, 14, 9, 50, 7, 15, 16, 29, 31, 12, 33))
)
CONFIG = {"size_us": 10, "slide_us": 5, "max_wait_us": 6, "k": 3}
CASE = Workload("watermark", ARRIVALS, {**CONFIG, "corrections": True, "gamma_us": 1}, (3, 6, 9))
UPSTREAM = CASE.with_(
    arrivals=tuple(event._replace(key="ab"[event.seq % 2]) for event in ARRIVALS),
    config={**CONFIG, "upstreams": 2},
)
"""A case whose keys pass different operators upstream."""
SILENT = UPSTREAM.with_(arrivals=ARRIVALS, config={**CONFIG, "upstreams": 2, "idle_after_us": 3})
"""A case with an operator upstream that no key passes."""
REJECTING = CASE.with_(
    arrivals=(*ARRIVALS[:10], ARRIVALS[10]._replace(value=float("nan")), *ARRIVALS[11:])
)
"""A case whose windows lack a rejected row beside other tuples."""

CHANGES: tuple[Changed, ...] = tuple(
    Changed(*each)
    for each in (
        (CASE, Clock, without(3), "every accepted arrival has a clock"),
        (CASE, Clock, at(4, seq=4), "every accepted arrival has a clock"),
        (CASE, Clock, at(4, batch=2), "every accepted arrival has a clock"),
        (CASE, Clock, at(5, inv=2), "pairs out of order are counted"),
        (CASE, Clock, at(2, wait_us=1), "the wait is that of the reading"),
        (CASE, Clock, at(2, wait_us=1, wm_us=13), "calm is not waited for"),
        (CASE, Clock, at(0, wm_us=4), "watermark within the wait of the largest event time"),
        (CASE, Clock, at(3, wm_us=12), "watermark never decreases"),
        (CASE, Clock, at(3, wm_us=15), "watermark follows the wait"),
        (CASE, Result, at(1, wm_us=15), "windows close at the watermark"),
        (CASE, Late, without(0), "each pair once"),
        (CASE, Late, at(0, start_us=10), "late means closed"),
        (CASE, Result, without(0), "each pair once"),
        (CASE, Revision, without(0), "wrong answers are pending"),
        (CASE, Cleared, without(0), "nothing owed after the flush"),
        (CASE, Clock, at(4, wait_us=5), "reversal is waited for"),
        (CASE, Clock, at(2, wait_us=7), "the wait is monotone in the disorder"),
        (CASE, Revision, at(0, revision=2), "one writer"),
        (CASE, Cleared, at(0, batch=4), "corrections do not wait"),
        (UPSTREAM, Passing, without(0), "upstream clocks follow the disorder"),
        (UPSTREAM, Inserted, at(1, wm_us=14), "the least watermark is inserted"),
        (UPSTREAM, Result, at(0, wm_us=14), "windows close at the inserted watermark"),
        (
            UPSTREAM,
            Late,
            at(0, key="b", source_id=3, event_time_us=9, batch=1),
            "late means that a watermark was inserted",
        ),
        (SILENT, Inserted, without(0), "an idle operator holds nothing back"),
        (REJECTING, Final, all_with(exact=True), "exact means all rows"),
        (CASE, Final, without(0), "eventual exactness"),
        (CASE, Final, at(0, n=7), "final answers are the latest"),
    )
)
