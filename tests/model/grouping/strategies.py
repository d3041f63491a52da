"""Workloads drawn by Hypothesis: short streams of skewed keys as plain lists, any policy."""

from hypothesis import strategies as st

from model.vocabulary import Event, Workload
from model.vocabulary.grouping import POLICIES
from model.vocabulary.settings import PlainData


@st.composite
def configs(draw: st.DrawFn) -> dict[str, PlainData]:
    """Draw routers of every policy, some with summaries so small that they fill up."""
    n = draw(st.integers(1, 5))
    each = st.lists(st.sampled_from((1, 1, 2, 7)), min_size=n, max_size=n)
    theta = draw(st.sampled_from((None, 0.3, 0.5, 0.9)))
    return {
        "instances": n,
        "policy": draw(st.sampled_from(POLICIES)),
        "times_us": [[batch, draw(each)] for batch in draw(st.sampled_from(((), (0,), (0, 1))))],
        "latency_us": draw(st.sampled_from(([], [0, 5, 3, 0, 1][:n]))),
        "senders": draw(st.integers(1, 3)),
        "window_tuples": draw(st.sampled_from((1, 4, 9))),
        "theta": theta,
        "gamma": draw(st.sampled_from((0.2, 1.0))),
        "draw_tuples": draw(st.sampled_from((None, 1, 3))),
        "tiers": draw(st.sampled_from(([], [3, 1, 0, 2, 3][:n]))),
        "hash_seed": draw(st.integers(0, 9)),
    }


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Draw tuples, some of them without a finite value, cut anywhere."""
    letters = st.sampled_from("aaaaabbbcdefgäz")
    values = st.sampled_from((1.0, 2.0, -0.5, 4.0, float("nan")))
    pairs = draw(st.lists(st.tuples(letters, values), max_size=30))
    arrivals = tuple(Event(seq, 0, key, 100, value, 100) for seq, (key, value) in enumerate(pairs))
    cuts = sorted(draw(st.lists(st.integers(0, len(pairs)), max_size=6)))
    return Workload("grouping", arrivals, draw(configs()), tuple(cuts))
