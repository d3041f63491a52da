"""Hypothesis strategies for workloads: short streams with delays and redeliveries."""

from hypothesis import strategies as st

from model.vocabulary import Event, Workload
from model.vocabulary.settings import PlainData
from model.vocabulary.slack import CONTROLS, METHODS, SAMPLINGS, SELF_SUFFICIENT_AGGREGATES
from model.vocabulary.windows import AGGREGATES

START_US = 1_000


@st.composite
def configs(draw: st.DrawFn) -> dict[str, PlainData]:
    """Draw the settings of a query, gaps between windows and upper limits included."""
    config: dict[str, PlainData] = {
        "size_us": draw(st.integers(1, 12)),
        "slide_us": draw(st.integers(1, 14)),
        "control": draw(st.sampled_from(CONTROLS)),
        "aggregate": draw(st.sampled_from(AGGREGATES)),
        "keyed": draw(st.booleans()),
        "tasks": draw(st.integers(1, 3)),
        "fixed_slack_us": draw(st.sampled_from((0, 3, 40))),
        "feedback_us": draw(st.sampled_from((None, 0, 3))),
        "max_slack_us": draw(st.sampled_from((None, None, 4))),
        "gamma_us": draw(st.sampled_from((0, 5, 1_000))),
        "max_age_us": draw(st.sampled_from((None, 3, 1_000))),
        "learning_rate": draw(st.sampled_from((0.05, 0.25))),
    }
    methods = [name for name, known in METHODS.items() if config["aggregate"] in known]
    config["method"] = draw(st.sampled_from(methods))
    config["sampling"] = draw(st.sampled_from(SAMPLINGS))
    config["q"] = draw(st.sampled_from((0.1, 0.5, 0.95)))
    config["eps"] = draw(st.sampled_from((0.05, 0.25)))
    config["cv"] = draw(st.sampled_from((None, 0.5)))
    if config["aggregate"] not in SELF_SUFFICIENT_AGGREGATES or draw(st.booleans()):
        config["lambda_thr"] = draw(st.sampled_from((0.5, 0.9, 1.0)))
    return config


@st.composite
def arrivals(draw: st.DrawFn, max_size: int = 25) -> tuple[Event, ...]:
    """Draw a stream one tick apart; some tuples are delayed, some delivered again."""
    delays = draw(st.lists(st.integers(-3, 20), min_size=1, max_size=max_size))
    events: list[Event] = []
    for seq, delay_us in enumerate(delays):
        now_us = START_US + seq
        if events and draw(st.integers(0, 7)) == 0:
            again = draw(st.sampled_from(events))
            events.append(again._replace(seq=seq, arrival_us=now_us))
        else:
            key = draw(st.sampled_from("abc"))
            value = float(draw(st.integers(-2, 6)))
            event_time_us = now_us - max(delay_us, 0)
            events.append(Event(seq, seq, key, event_time_us, value, now_us))
    return tuple(events)


@st.composite
def cuts(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    """Draw positions between micro-batches."""
    return tuple(sorted(draw(st.lists(st.integers(0, size), max_size=3))))


@st.composite
def workloads(draw: st.DrawFn, *, flush: bool | None = None) -> Workload:
    """Draw a stream with its query."""
    stream = draw(arrivals())
    return Workload(
        "slack",
        stream,
        draw(configs()),
        draw(cuts(len(stream))),
        flush=draw(st.booleans()) if flush is None else flush,
    )


def stream_of(
    *rows: tuple[int, float] | tuple[int, float, str], first: int = 0
) -> tuple[Event, ...]:
    """Return arrivals one tick apart from rows (event time, value) or (event time, value, key).

    Identities are counted from ``first``.
    """
    return tuple(
        Event(seq, seq, row[2] if len(row) > 2 else "a", row[0], row[1], START_US + seq)
        for seq, row in enumerate(rows, start=first)
    )
