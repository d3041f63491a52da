"""Small streams of rooms of windows, each of which tests what random draws rarely meet."""

from model.vocabulary import Event, SlackConfig, WatermarkConfig, Workload
from model.windows.variants import example, with_redelivery

ENOUGH = example(
    "slack",
    SlackConfig(10, 10, control="fixed", fixed_slack_us=100).to_json(),
    (0, 12, 5, 40, 31, 200, 400),
    (1.0, -2.0, 4.0, -8.0, 16.0, 32.0, 64.0),
    (3, 5),
)
"""A slack that covers every delay; values are negative in some windows."""
WIDE = {"size_us": 100, "slide_us": 100}
PARTLY = [
    example("slack", {**WIDE, **settings}, range(len(values)), values, (3,))
    for values, settings in (
        ((2.0, 1.0, 2.0, 3.0, 2.0, 2.0, 1.0), {"aggregate": "avg", "eps": 0.2, "delta": 0.2}),
        ((4.0, 3.0, 3.0, 2.0, 3.0, 2.0, 4.0, 1.0), {"aggregate": "sum", "eps": 0.5, "delta": 0.05}),
        (
            (4.0, 3.0, 3.0, -0.5, 3.0, 2.0, 4.0, 1.0),
            {"aggregate": "sum", "eps": 0.5, "delta": 0.05},
        ),
    )
]
"""Windows that need four of seven and five of eight tuples, or more if a moment is off by one, and
all eight if one is below 0."""
LATE_VALUES = [
    example(
        "slack",
        {"size_us": 100, "slide_us": 100, "aggregate": "sum", "eps": 0.5, "start_slack_us": 0},
        (10, 20, 30, 40, 50, 60, 150, 70, 300),
        (4.0, 3.0, 0.0, 2.0, 3.0, 2.0, 4.0, value, 3.0),
    )
    for value in (0.0, -0.5)
]
"""A window that needs five of its seven tuples, and all seven if the late one is below 0."""
OPEN = ENOUGH.with_(flush=False)
"""The same stream, which goes on: a row waits for its answer."""
AT_ONCE = {"control": "fixed", "fixed_slack_us": 0, "start_slack_us": 0}
FORGOTTEN = [
    with_redelivery(
        example("slack", {"size_us": 10, "slide_us": 10, **AT_ONCE}, (5, time_us), (1.0, 2.0), cuts)
    )
    for time_us in (19, 20, 21)
    for cuts in ((), (2,))
]
"""A tuple that comes again shortly before, when and after its identity is forgotten."""
AGAIN = [
    case.with_(
        arrivals=tuple(each._replace(source_id=each.event_time_us) for each in case.arrivals)
    )
    for case in (example("slack", FORGOTTEN[0].config, (5, 6, 5, 40), (1.0,) * 4, (2,)),)
]
"""A tuple that comes again, first in a micro-batch in which it is forgotten later."""
NUMBERS = [
    example(
        "slack",
        {**WIDE, "aggregate": aggregate, "method": method, "eps": 0.5, "delta": 0.4},
        range(len(values)),
        values,
    )
    for aggregate in ("sum", "avg")
    for method in ("normal", "rigorous")
    for values in ([0.0] * 8, [2.0, -2.0] * 4, [1e200] * 8, [0.0, 0.5, *[3.0] * 8])
]
"""Values that are all 0, that cancel, whose squares are infinite, and that begin with 0."""
OF_SLACK = [ENOUGH, OPEN, *PARTLY, *LATE_VALUES, *FORGOTTEN, *AGAIN, *NUMBERS]
PLAIN = {"size_us": 10, "slide_us": 10, "max_wait_us": 10, "k": 3}
VALUES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
SECOND_US = 1_000_000


def reversed_far() -> Workload:
    """Return hours of tuples in reverse order; one arrival makes more than 255 pairs."""
    config = WatermarkConfig(3_600 * SECOND_US, 3_600 * SECOND_US, 60 * SECOND_US, k=280)
    times_us = [20 * SECOND_US * number for number in reversed(range(300))]
    events = [Event(n, n, "a", time_us, 1.0, times_us[0] + n) for n, time_us in enumerate(times_us)]
    return Workload("watermark", tuple(events), config.to_json(), (150,))


LATE_UPSTREAM = example(
    "watermark",
    WatermarkConfig(10, 10, 0, k=3, upstreams=1).to_json(),
    (0, 12, 40, 5, 31, 60, 14),
    VALUES,
    (3, 5),
)
"""Tuples that come late, after an upstream operator has inserted a watermark."""
CLOCKS = [
    example("watermark", {**PLAIN, **settings}, times_us, VALUES[: len(times_us)], cuts)
    for times_us, cuts, settings in (
        ((5, 5), (), {}),
        ((9, 5), (1,), {}),
        ((9, 7, 8, 9), (), {}),
        ((9, 7, 8, 9), (), {"max_wait_us": 10**18}),
        ((5, 9, 5), (), {"max_wait_us": 3}),
        ((5, 9), (), {}),
        ((5, 10), (), {}),
        ((5, 9), (), {"upstreams": 1}),
        ((5, 6), (), {"upstreams": 1, "insert_every_us": 2}),
        ((5, 6, 7), (), {"upstreams": 2, "idle_after_us": 1}),
    )
]
"""Ties, a cluster that fills, goes on and rounds, edges of windows, and operators upstream."""
OF_WATERMARK = [*CLOCKS, reversed_far(), LATE_UPSTREAM]
