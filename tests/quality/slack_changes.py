"""Wrong changes of a right trace of room ``slack``, each with the claim that must notice it."""

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from model.vocabulary import Step, Workload
from model.vocabulary.slack import Judged, Progress
from model.vocabulary.windows import Cleared, Correlation, Final, Late, Result, Revision
from tests.model.slack.strategies import stream_of

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
IN_ORDER = STREAM.with_(arrivals=stream_of((20, 1.0), (25, 2.0), (60, 8.0)), cuts=(2,))
AMPLE = STREAM.with_(config={**CONFIG, "control": "fixed", "fixed_slack_us": 100})

Change = Callable[[list[Any]], Iterable[Any]]
"""Function from the steps of one kind to the changed steps."""


def at(position: int, **fields: Any) -> Change:
    """Return a change of some fields of one step."""
    return lambda steps: [
        step._replace(**fields) if n == position % len(steps) else step
        for n, step in enumerate(steps)
    ]


def without(position: int) -> Change:
    return lambda steps: [step for n, step in enumerate(steps) if n != position % len(steps)]


def extra(step: Step) -> Change:
    return lambda steps: [*steps, step]


CHANGES: dict[str, tuple[Workload, type, Change, str, str]] = {
    "a final value": (
        STREAM,
        Final,
        at(0, value=9.0),
        "eventual exactness",
        "The final answer of the window [5, 15) of task 0, key 'a' is wrong.",
    ),
    "a final count": (STREAM, Final, at(0, n=2), "eventual exactness", "is wrong"),
    "a missing final": (STREAM, Final, without(1), "eventual exactness", "[10, 20)"),
    "a final of an empty window": (
        STREAM,
        Final,
        extra(Final(0, 40, "a", 0.0, 0, 0, True)),
        "eventual exactness",
        "which is empty",
    ),
    "two finals": (
        STREAM,
        Final,
        extra(Final(0, 5, "a", 9.0, 1, 1, True)),
        "eventual exactness",
        "Two final answers",
    ),
    "an exact final without a rejected row": (
        STREAM.with_(arrivals=(*STREAM.arrivals, *stream_of((12, inf), first=4))),
        Final,
        at(0, exact=True),
        "exact means all rows",
        "[5, 15) of task 0, key 'a' is called exact although a row was rejected.",
    ),
    "a provisional final": (STREAM, Final, at(0, exact=False), "eventual exactness", "provisional"),
    "an exact final too early": (
        STREAM.with_(arrivals=STREAM.arrivals[:3], cuts=(), flush=False),
        Final,
        extra(Final(0, 5, "a", 4.0, 1, 0, True)),
        "final answers are the latest",
        "is not the latest",
    ),
    "an exact final of an owed window": (
        STREAM.with_(arrivals=stream_of((12, 1.0), (25, 2.0), (13, 4.0)), cuts=(), flush=False),
        Final,
        at(0, exact=True),
        "final answers are the latest",
        "is called exact although tuple #2 is owed to it",
    ),
    "a stale final": (
        STREAM,
        Final,
        at(0, revision=0),
        "final answers are the latest",
        "is not the latest one",
    ),
    "a pair not cleared": (
        STREAM,
        Cleared,
        without(0),
        "nothing owed after the flush",
        "Tuple #2 is still owed to the window [5, 15) of task 0, key 'a'.",
    ),
    "a pair cleared that was not late": (
        STREAM,
        Cleared,
        extra(Cleared(0, 20, "a", 0, 1)),
        "nothing owed after the flush",
        "which had not been late",
    ),
    "a pair cleared too early": (
        STREAM,
        Cleared,
        at(0, batch=0),
        "wrong answers are pending",
        "At the end of batch 0 the closed window [5, 15) of task 0, key 'a' was wrong",
    ),
    "a late pair not recorded": (STREAM, Late, without(0), "each pair once", "[5, 15)"),
    "a late pair that was in time": (
        STREAM,
        Late,
        extra(Late(0, 15, "a", 0, 20, 0)),
        "each pair once",
        "[15, 25)",
    ),
    "a result": (STREAM, Result, at(0, value=0.5), "each pair once", "counted exactly once"),
    "a result of too few": (STREAM, Result, at(1, n_rcv=1), "each pair once", "[20, 30)"),
    "a result not recorded": (STREAM, Result, without(0), "each pair once", "[15, 25)"),
    "two results": (
        STREAM,
        Result,
        extra(Result(0, 15, "a", 1, 9.0, 1, 0, 60)),
        "one writer",
        "The stream wrote the window [15, 25) of task 0, key 'a' 2 times.",
    ),
    "a result after a late pair": (
        STREAM,
        Result,
        extra(Result(0, 10, "a", 1, 4.0, 1, 0, 60)),
        "one writer",
        "after it had been closed",
    ),
    "a revision number": (STREAM, Revision, at(0, revision=2), "one writer", "numbered [2]"),
    "a revision": (STREAM, Revision, at(0, value=9.0), "wrong answers are pending", "was wrong"),
    "a revision not written": (
        STREAM,
        Revision,
        without(0),
        "wrong answers are pending",
        "[5, 15)",
    ),
    "alpha of a judgement": (STREAM, Judged, at(0, alpha=1.5), "alpha within 0 and 1", "1.5"),
    "alpha at a batch end": (STREAM, Progress, at(0, alpha=-0.5), "alpha within 0 and 1", "-0.5"),
    "a slack below 0": (
        STREAM,
        Progress,
        at(0, slack_us=-1),
        "slack within 0 and the largest delay",
        "-1 us",
    ),
    "a slack beyond every delay": (
        STREAM,
        Result,
        at(-1, slack_us=14),
        "slack within 0 and the largest delay",
        "at most 13 us were needed",
    ),
    "a slack that a late tuple belies": (
        MISSING,
        Result,
        lambda steps: [step._replace(slack_us=13) for step in steps],
        "what is late came later than the slack",
        "which claims a slack of 13 us",
    ),
    "a slack that is not alpha's": (
        STREAM,
        Progress,
        at(0, slack_us=12),
        "slack follows alpha",
        "After batch 0 task 0 waits 12 us",
    ),
    "misses with alpha low": (
        MISSING,
        Judged,
        lambda steps: [step._replace(alpha=0.1) for step in steps],
        "the controller answers for its misses",
        "were answered with fewer tuples than required",
    ),
    "a largest delay that no tuple had": (
        STREAM,
        Progress,
        at(0, max_delay_us=14),
        "slack within 0 and the largest delay",
        "it was at most 13 us",
    ),
    "a watermark that falls": (
        STREAM,
        Progress,
        at(1, wm_us=24),
        "watermark never decreases",
        "was closed at watermark 47, after the batch it is 24",
    ),
    "a clock that falls": (
        STREAM,
        Progress,
        at(1, t_max_us=24),
        "watermark never decreases",
        "The clock of task 0 went back in batch 1.",
    ),
    "a watermark behind a result": (
        STREAM,
        Result,
        at(0, wm_us=99),
        "watermark never decreases",
        "was closed at watermark 99",
    ),
    "a late pair in spite of ample slack": (
        AMPLE,
        Late,
        extra(Late(0, 5, "a", 2, 12, 0)),
        "slack that covers every delay leaves nothing late",
        "Tuple #2 was late",
    ),
    "a slack without a delay": (
        IN_ORDER,
        Progress,
        at(0, slack_us=1),
        "an in-order stream has no slack and nothing late",
        "In batch 0 task 0 waited 1 us although nothing had been delayed.",
    ),
    "a late pair without a delay": (
        IN_ORDER,
        Late,
        extra(Late(0, 15, "a", 0, 20, 0)),
        "an in-order stream has no slack and nothing late",
        "although nothing had been delayed",
    ),
    "a judgement of other counts": (
        STREAM,
        Judged,
        at(0, n_rcv=1, n_late=0),
        "judgements measure what was recorded",
        "recorded are",
    ),
    "a hit recorded as a miss": (
        STREAM,
        Judged,
        at(-1, miss=True),
        "judgements measure what was recorded",
        "miss=True",
    ),
    "a requirement that is too low": (
        STREAM,
        Judged,
        at(-1, n_req=0),
        "required coverage is right",
        "requires 0 of 1 tuples; that is not enough",
    ),
    "a requirement that is too high": (
        STREAM,
        Judged,
        lambda steps: [step._replace(n_req=2) if step.n_rcv == 2 else step for step in steps],
        "required coverage is right",
        "requires 2 of 2 tuples; fewer are enough",
    ),
    "a late tuple that a judgement forgot": (
        PATIENT,
        Judged,
        at(0, n_late=0, n_rcv=0),
        "measured misses are true misses",
        "counts 0 tuples; there are 1",
    ),
    "a hit recorded as a miss of a higher requirement": (
        STREAM,
        Judged,
        at(-1, n_req=2, miss=True),
        "measured misses are true misses",
        "is judged a miss with 1 of 1 tuples, which are enough of the 1 that came in the end",
    ),
    "a correlation": (
        TUMBLING,
        Correlation,
        at(0, cross=9),
        "delay and value are compared as they came",
        "The correlation of revision 1 of the window [10, 20) of task 0, key 'a' is wrong.",
    ),
    "a correlation of too few": (
        TUMBLING,
        Correlation,
        at(0, n=2),
        "delay and value are compared as they came",
        "is wrong",
    ),
    "a correlation written twice": (
        TUMBLING,
        Correlation,
        lambda steps: [*steps, steps[0]._replace(cross=9)],
        "delay and value are compared as they came",
        "There are 2 correlations",
    ),
    "a correlation that nothing asked for": (
        TUMBLING,
        Correlation,
        extra(Correlation(0, 20, "a", 0, 1, 1, 0, 0, 0)),
        "delay and value are compared as they came",
        "which has none",
    ),
    "alpha of the clamped law": (
        CLAMPED,
        Judged,
        at(1, alpha=0.5),
        "pd steers the mean coverage",
        "After 2 judgements alpha of task 0 is 0.5",
    ),
    "a window judged twice": (
        STREAM,
        Judged,
        lambda steps: [*steps, steps[-1]._replace(order=len(steps))],
        "judgements measure what was recorded",
        "was judged twice",
    ),
    "alpha that falls without a reason": (
        STREAM,
        Judged,
        lambda steps: [step._replace(alpha=0.1) for step in steps],
        "misses within the conformal bound",
        "the bound allows",
    ),
    "a judgement not recorded": (
        STREAM,
        Judged,
        without(0),
        "misses within the conformal bound",
        "Judgement 0 of task 0 is missing.",
    ),
    "alpha of the differential law": (
        PD,
        Judged,
        at(1, alpha=1.0),
        "pd steers the mean coverage",
        "After 2 judgements alpha of task 0 is 1.0",
    ),
}
"""Workload, kind of step, change, claim, and a part of its sentence, by name of the change."""
