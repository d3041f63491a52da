"""Wrong changes of a right trace of room ``slack``, each with the claim that must notice it."""

from math import inf

from model.vocabulary import Event, Workload
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import Cleared, Correlation, Final, Late, Result, Revision
from tests.quality.changes import Changed, all_with, at, extra, without


def stream_of(*rows: tuple[int, float], first: int = 0) -> tuple[Event, ...]:
    """Return arrivals one tick apart from event times and values."""
    return tuple(
        Event(seq, seq, "a", event_time_us, value, 1_000_000 + seq)
        for seq, (event_time_us, value) in enumerate(rows, start=first)
    )


CONFIG = {"size_us": 10, "slide_us": 5, "control": "conformal", "lambda_thr": 0.5}
STREAM = Workload("slack", stream_of((20, 1.0), (25, 2.0), (12, 4.0), (60, 8.0)), CONFIG, cuts=(3,))
PD = STREAM.with_(config={**CONFIG, "control": "pd"})
CLAMPED = STREAM.with_(config={**CONFIG, "control": "pd-clamped"})
PATIENT = STREAM.with_(config={**CONFIG, "feedback_us": 14})
TUMBLING = Workload(
    "slack",
    stream_of((25, 1.0), (12, 2.0), (14, 4.0), (13, 6.0), (60, 8.0)),
    {**CONFIG, "slide_us": 10},
    cuts=(4,),
)
MISSING = TUMBLING.with_(
    arrivals=stream_of(
        (12, 1.0), (25, 2.0), (13, 4.0), (14, 4.0), (45, 1.0), (26, 1.0), (27, 1.0), (90, 8.0)
    ),
    cuts=(4,),
)
"""Two windows with one tuple in time and two that are late."""
REFUSED = STREAM.with_(arrivals=(*STREAM.arrivals, *stream_of((12, inf), first=4)))
UNFINISHED = STREAM.with_(arrivals=STREAM.arrivals[:3], cuts=(), flush=False)
OWING = UNFINISHED.with_(arrivals=stream_of((12, 1.0), (25, 2.0), (13, 4.0)))
IN_ORDER = STREAM.with_(arrivals=stream_of((20, 1.0), (25, 2.0), (60, 8.0)), cuts=(2,))
AMPLE = STREAM.with_(config={**CONFIG, "control": "fixed", "fixed_slack_us": 100})


def _two_of_two(steps: list[Judged]) -> list[Judged]:
    return [step._replace(n_req=2) if step.n_rcv == 2 else step for step in steps]


EXACT = "eventual exactness"
OWED = "nothing owed after the flush"
PENDING = "wrong answers are pending"
ONCE = "each pair once"
WRITER = "one writer"
LATEST = "final answers are the latest"
ALPHA = "alpha within 0 and 1"
LIMITS = "slack within 0 and the largest delay"
RISES = "watermark never decreases"
IN_TIME = "an in-order stream has no slack and nothing late"
MEASURED = "judgements measure what was recorded"
BOUND = "misses within the conformal bound"
COVERAGE = "required coverage is right"
MISSES = "measured misses are true misses"
COMPARED = "delay and value are compared as they came"
MEAN = "pd steers the mean coverage"
COVERED = "slack that covers every delay leaves nothing late"
LATER = "what is late came later than the slack"
ANSWERED = "the controller answers for its misses"

CHANGES: tuple[Changed, ...] = tuple(
    Changed(*each)
    for each in (
        (STREAM, Final, at(0, value=9.0), EXACT, "the window [5, 15) of task 0, key 'a' is wrong"),
        (STREAM, Final, at(0, n=2), EXACT, "is wrong"),
        (STREAM, Final, without(1), EXACT, "[10, 20)"),
        (STREAM, Final, extra(Final(0, 40, "a", 0.0, 0, 0, True)), EXACT, "which is empty"),
        (STREAM, Final, extra(Final(0, 5, "a", 9.0, 1, 1, True)), EXACT, "Two final answers"),
        (REFUSED, Final, at(0, exact=True), "exact means all rows", "was rejected"),
        (STREAM, Final, at(0, exact=False), EXACT, "provisional"),
        (UNFINISHED, Final, extra(Final(0, 5, "a", 4.0, 1, 0, True)), LATEST, "the latest"),
        (OWING, Final, at(0, exact=True), LATEST, "to it"),
        (STREAM, Final, at(0, revision=0), LATEST, "is not the latest one"),
        (STREAM, Cleared, without(0), OWED, "still owed to the window [5, 15) of task 0, key 'a'"),
        (STREAM, Cleared, extra(Cleared(0, 20, "a", 0, 1)), OWED, "which had not been late"),
        (STREAM, Cleared, at(0, batch=0), PENDING, "window [5, 15) of task 0, key 'a' was wrong"),
        (STREAM, Late, without(0), ONCE, "[5, 15)"),
        (STREAM, Late, extra(Late(0, 15, "a", 0, 20, 0)), ONCE, "[15, 25)"),
        (STREAM, Result, at(0, value=0.5), ONCE, "counted exactly once"),
        (STREAM, Result, at(1, n_rcv=1), ONCE, "[20, 30)"),
        (STREAM, Result, without(0), ONCE, "[15, 25)"),
        (STREAM, Result, extra(Result(0, 15, "a", 1, 9.0, 1, 0, 60)), WRITER, "key 'a' 2 times"),
        (STREAM, Result, extra(Result(0, 10, "a", 1, 4.0, 1, 0, 60)), WRITER, "had been closed"),
        (STREAM, Revision, at(0, revision=2), WRITER, "numbered [2]"),
        (STREAM, Revision, at(0, value=9.0), PENDING, "was wrong"),
        (STREAM, Revision, without(0), PENDING, "[5, 15)"),
        (STREAM, Judged, at(0, alpha=1.5), ALPHA, "1.5"),
        (STREAM, Progress, at(0, alpha=-0.5), ALPHA, "-0.5"),
        (STREAM, Progress, at(0, slack_us=-1), LIMITS, "-1 us"),
        (STREAM, Result, at(-1, slack_us=14), LIMITS, "at most 13 us were needed"),
        (MISSING, Result, all_with(slack_us=13), LATER, "which claims a slack of 13 us"),
        (STREAM, Progress, at(0, slack_us=12), "slack follows alpha", "0 task 0 waits 12 us"),
        (MISSING, Judged, all_with(alpha=0.1), ANSWERED, "with fewer tuples than required"),
        (STREAM, Progress, at(0, max_delay_us=14), LIMITS, "it was at most 13 us"),
        (STREAM, Progress, at(1, wm_us=24), RISES, "at watermark 47, after the batch it is 24"),
        (STREAM, Progress, at(1, t_max_us=24), RISES, "The clock of task 0 went back in batch 1"),
        (STREAM, Result, at(0, wm_us=99), RISES, "was closed at watermark 99"),
        (AMPLE, Late, extra(Late(0, 5, "a", 2, 12, 0)), COVERED, "Tuple #2 was late"),
        (IN_ORDER, Progress, at(0, slack_us=1), IN_TIME, "1 us although nothing had been delayed"),
        (IN_ORDER, Late, extra(Late(0, 15, "a", 0, 20, 0)), IN_TIME, "nothing had been delayed"),
        (STREAM, Judged, at(0, n_rcv=1, n_late=0), MEASURED, "recorded are"),
        (STREAM, Judged, at(-1, miss=True), MEASURED, "miss=True"),
        (STREAM, Judged, at(-1, n_req=0), COVERAGE, "requires 0 of 1 tuples; that is not enough"),
        (STREAM, Judged, _two_of_two, COVERAGE, "are enough"),
        (PATIENT, Judged, at(0, n_late=0, n_rcv=0), MISSES, "counts 0 tuples; there are 1"),
        (STREAM, Judged, at(-1, n_req=2, miss=True), MISSES, "of the 1 that came in the end"),
        (TUMBLING, Correlation, at(0, cross=9), COMPARED, "[10, 20) of task 0, key 'a' is wrong"),
        (TUMBLING, Correlation, at(0, n=2), COMPARED, "is wrong"),
        (
            TUMBLING,
            Correlation,
            lambda steps: [*steps, steps[0]._replace(cross=9)],
            COMPARED,
            "2 correlations",
        ),
        (
            TUMBLING,
            Correlation,
            extra(Correlation(0, 20, "a", 0, 1, 1, 0, 0, 0)),
            COMPARED,
            "has none",
        ),
        (CLAMPED, Judged, at(1, alpha=0.5), MEAN, "After 2 judgements alpha of task 0 is 0.5"),
        (
            STREAM,
            Judged,
            lambda steps: [*steps, steps[-1]._replace(order=len(steps))],
            MEASURED,
            "judged twice",
        ),
        (STREAM, Judged, all_with(alpha=0.1), BOUND, "the bound allows"),
        (STREAM, Judged, without(0), BOUND, "Judgement 0 of task 0 is missing"),
        (PD, Judged, at(1, alpha=1.0), MEAN, "After 2 judgements alpha of task 0 is 1.0"),
    )
)
