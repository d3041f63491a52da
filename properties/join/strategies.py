"""Hypothesis strategies: two streams whose arrival order comes out of a simulated network.

Rules of this file:

1. Disorder is never drawn as a shuffle: sources, ways and faults are those of
   ``properties/generators/networks.py``; every other source belongs to S.
2. Event times and windows are multiples of one unit, so that tuples often lie at the very edge of
   a window, and often at the same time.
"""

from hypothesis import strategies as st

from model.vocabulary import Event, JoinConfig, Workload
from model.vocabulary.join import And, Apart, Band, Equi, Ineq, Predicate
from properties.generators.networks import SEEDS, plans, sources
from properties.generators.streams import cuts
from sim.kernel.log import simulate_arrivals
from sim.kernel.source import IDS_PER_SOURCE

UNIT_US = 1_000
SCALE_US = 8 * UNIT_US
"""To which delays are scaled."""

DISTANCES = st.sampled_from([0.0, 1.0, 4.0])
BANDS = st.builds(Band, st.just("value"), DISTANCES)
APART = st.builds(Apart, st.just("value"), DISTANCES)
INEQUALITIES = st.builds(
    lambda column, op: Ineq(column, op, column),
    st.sampled_from(["key", "value"]),
    st.sampled_from(["<", "<=", ">", ">=", "!="]),
)
SINGLE: st.SearchStrategy[Predicate] = st.one_of(
    st.builds(Equi, st.sampled_from(["key", "value"])), BANDS, APART, INEQUALITIES
)
PREDICATES: st.SearchStrategy[Predicate] = st.one_of(
    SINGLE, st.lists(SINGLE, max_size=2).map(lambda parts: And(tuple(parts)))
)


@st.composite
def ranges(draw: st.DrawFn, query: str) -> tuple[str, int, int | None]:
    """A query with its first epoch and perhaps its last one."""
    first = draw(st.integers(0, 2))
    return query, first, draw(st.sampled_from([None, first, first + 1]))


@st.composite
def configs(draw: st.DrawFn) -> JoinConfig:
    """Chains of every shape, among them a single worker and blocks larger than both streams.

    Some queries pair the tuples of some epochs alone.
    """
    predicates = draw(st.lists(PREDICATES, min_size=1, max_size=3))
    names = tuple(f"q{number}" for number in range(len(predicates)))
    some = [name for name in names if draw(st.booleans())]
    return JoinConfig(
        window_us=draw(st.sampled_from([0, 1, 2, 8, 64])) * UNIT_US,
        queries=tuple(zip(names, predicates, strict=True)),
        workers=draw(st.integers(1, 4)),
        block_size=draw(st.sampled_from([1, 2, 5, 1_000])),
        credit=draw(st.integers(1, 3)),
        lateness_us=draw(st.sampled_from([None, None, 0, SCALE_US, 16 * SCALE_US])),
        epochs=tuple(draw(ranges(name)) for name in some),
    )


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Event, ...]:
    """Two streams on their ways through one network; one of them may be empty."""
    sent = tuple(draw(st.lists(sources(SCALE_US), min_size=1, max_size=4)))
    events = simulate_arrivals(draw(plans(SCALE_US, sent)), draw(SEEDS)).events
    return tuple(_of_a_stream(event) for event in events)


def _of_a_stream(event: Event) -> Event:
    source, number = divmod(event.source_id, IDS_PER_SOURCE)
    # R and S use the same numbers: an identity is a number of a stream.
    return event._replace(
        source_id=source // 2 * IDS_PER_SOURCE + number,
        event_time_us=event.event_time_us // UNIT_US * UNIT_US,
        stream="RS"[source % 2],
    )


@st.composite
def cases(draw: st.DrawFn) -> Workload:
    """A chain and two streams for it, cut into epochs, mostly with a flush at the end."""
    events = draw(arrivals())
    return Workload(
        "join",
        events,
        draw(configs()).to_json(),
        draw(cuts(len(events))),
        seed=draw(SEEDS),
        flush=draw(st.sampled_from([True, True, True, False])),
        name="generated",
    )
