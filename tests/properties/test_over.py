"""The expression of a user becomes the queries that it says: waits, aggregates, and settings."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import SlackConfig, WatermarkConfig
from spark_impl import aggregates
from spark_impl.over import Stream, Windows, over

SECOND_US = 1_000_000
SHARE = 0.9
"""Required coverage of windows without a longest wait; some aggregates need one."""
FUNCTIONS: Mapping[str, Callable[..., aggregates.Aggregation]] = {
    "sum": aggregates.sum_,
    "avg": aggregates.avg,
    "min": aggregates.min_,
    "max": aggregates.max_,
    "median": aggregates.median,
    "quantile": aggregates.quantile,
    "count": aggregates.count,
}
TIMES = st.integers(1, 9).flatmap(
    lambda seconds: st.sampled_from(
        [(seconds, f"{seconds} seconds"), (seconds, timedelta(seconds=seconds))]
    )
)
"""Times, each as a number of seconds and as a user writes it."""
SHARED = st.fixed_dictionaries(
    {}, optional={"tasks": st.integers(1, 3), "keyed": st.booleans(), "gamma_us": st.integers(0, 9)}
)
"""Settings of the windows that both rooms have."""
OWN = st.fixed_dictionaries(
    {}, optional={"gamma_us": st.integers(0, 9), "feedback_us": st.integers(0, 9)}
)
"""Settings of one aggregate, which override those of the windows."""
WAITS = st.sampled_from([{}, {"max_wait": "3 seconds"}, {"max_wait_us": 3 * SECOND_US}])
RANKS = st.sampled_from([0.1, 0.25, 0.9])


@st.composite
def asked(draw: st.DrawFn) -> list[tuple[str, dict[str, Any]]]:
    """Draw different aggregates, each with settings of its own."""
    kinds = draw(st.lists(st.sampled_from(sorted(FUNCTIONS)), min_size=1, unique=True))
    return [
        (kind, draw(OWN) | ({"q": draw(RANKS)} if kind == "quantile" else {})) for kind in kinds
    ]


def config_of(
    wait: Mapping[str, Any], settings: Mapping[str, Any]
) -> SlackConfig | WatermarkConfig:
    """Return the configuration that settings mean."""
    if wait:
        return WatermarkConfig(max_wait_us=3 * SECOND_US, **settings)
    return SlackConfig(lambda_thr=SHARE, **settings)


def windows_of(
    wait: Mapping[str, Any], size: Any, slide: Any, shared: Mapping[str, Any]
) -> Windows:
    """Return the windows of a stream that has no rows."""
    stream: Stream = over(None, event_time="at", key="device")  # type: ignore[arg-type]  # no row is read
    share = {} if wait else {"lambda_thr": SHARE}
    return stream.window(size, slide, **wait, **share, **shared)


@given(WAITS, TIMES, st.none() | TIMES, SHARED, asked())
def test_every_aggregate_has_the_windows_the_wait_and_its_own_settings(
    wait: dict[str, Any],
    size: tuple[int, Any],
    slide: tuple[int, Any] | None,
    shared: dict[str, Any],
    kinds: list[tuple[str, dict[str, Any]]],
) -> None:
    windows = windows_of(wait, size[1], slide and slide[1], shared)
    times = {"size_us": size[0] * SECOND_US, "slide_us": (slide or size)[0] * SECOND_US}
    expected, values = {}, {}
    chosen = []
    for kind, own in kinds:
        columns = [] if kind == "count" else ["watts"]
        name = "_".join([kind, *columns])
        chosen.append(FUNCTIONS[kind](*columns, **own))
        expected[name] = config_of(wait, {**times, **shared, "aggregate": kind, **own})
        values[name] = "watts" if columns else None
    found = windows.agg(*chosen)
    assert found.configs == expected
    assert found.values == values
    renamed = windows.agg(*(each.alias(f"{each.name}_now") for each in chosen))
    assert renamed.configs == {f"{name}_now": config for name, config in expected.items()}
