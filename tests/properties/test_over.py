"""The expression of a user becomes the queries that it says: waits, aggregates, and settings."""

from datetime import timedelta
from typing import Any

from model.vocabulary import SlackConfig, WatermarkConfig
from spark_impl.aggregates import avg, count, quantile
from spark_impl.over import Stream, over

HOUR_US = 3_600_000_000


def test_an_aggregate_has_the_windows_the_wait_and_its_own_settings() -> None:
    stream: Stream = over(None, event_time="at", key="device")  # type: ignore[arg-type]  # no row is read
    shared: dict[str, Any] = {"tasks": 2, "gamma_us": 7}
    own = {"gamma_us": 0, "feedback_us": 3}
    hours = {"size_us": HOUR_US, "slide_us": HOUR_US}
    found = stream.window("1 hour", None, lambda_thr=0.9, **shared).agg(
        avg("watts", **own), quantile("watts", q=0.25).alias("low"), count()
    )
    common = {**hours, "lambda_thr": 0.9, **shared}
    assert found.configs == {
        "avg_watts": SlackConfig(**{**common, **own, "aggregate": "avg"}),
        "low": SlackConfig(**common, aggregate="quantile", q=0.25),
        "count": SlackConfig(**common, aggregate="count"),
    }
    assert found.values == {"avg_watts": "watts", "low": "watts", "count": None}
    waiting = stream.window(timedelta(hours=1), "30 minutes", max_wait="2 hours").agg(count())
    wait = WatermarkConfig(HOUR_US, HOUR_US // 2, max_wait_us=2 * HOUR_US, aggregate="count")
    assert waiting.configs == {"count": wait}
