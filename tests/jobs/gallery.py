"""The gallery of jobs: what ``check_job`` is told about each, and the right verdict."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from pyspark.sql import DataFrame

from tests.jobs import written_jobs as jobs

HOLDS, BROKEN = "holds", "broken"


@dataclass(frozen=True)
class Entry:
    """A job, what ``check_job`` is told about it, and the right verdict."""

    job: Callable[..., DataFrame]
    verdict: str = HOLDS
    reason: str = ""
    """The reason why the job is right, or its mistake."""
    schema: str | Mapping[str, str] = "device string, at timestamp, watts double"
    event_time: str | Mapping[str, str] = "at"
    mode: str = "append"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Other arguments of ``check_job``."""

    @property
    def name(self) -> str:
        """Name of the job, and of its sink."""
        sink = self.options.get("sink")
        return f"{self.job.__name__}, {sink.__name__}" if sink else self.job.__name__

    @property
    def arguments(self) -> dict[str, Any]:
        """All arguments of ``check_job`` after the job and the session."""
        asked = {"schema": self.schema, "event_time": self.event_time, "mode": self.mode}
        return {**asked, **self.options}


CLICKS = "user string, at timestamp"
PAYMENTS = "id int, at timestamp, amount int"
ORDERS = {"orders": "id int, ordered_at timestamp", "payments": "paid_id int, paid_at timestamp"}
ORDER_TIMES = {"orders": "ordered_at", "payments": "paid_at"}
INTEGERS = "device string, at timestamp, watts int"
HIGH = {"watts": st.integers(6, 90)}
DEVICES = {"keys": ("device",)}
GALLERY = (
    Entry(jobs.minutes, HOLDS, "the watermark is on the column of the window, and comes before it"),
    Entry(
        jobs.impatient_minutes,
        BROKEN,
        "a row within the agreed lateness is dropped",
        options={"lateness": "10 seconds"},
    ),
    Entry(jobs.hours_of_minutes, HOLDS, "each window closes before the one that needs it"),
    Entry(
        jobs.minutes_with_a_late_watermark,
        BROKEN,
        "the aggregation has no watermark, and its state only grows",
        mode="update",
    ),
    Entry(
        jobs.minutes_of_another_column,
        BROKEN,
        "no watermark closes the windows, and their state only grows",
        schema="device string, at timestamp, sent timestamp, watts double",
        mode="update",
    ),
    Entry(jobs.minutes_of_processing, BROKEN, "the window of a row depends on when it is read"),
    Entry(jobs.minutes_of_local_time, BROKEN, "rows after a change of clocks are dropped"),
    Entry(jobs.days_of_local_time, HOLDS, "windows are cut in UTC, local time is only shown"),
    Entry(jobs.opening_watts, BROKEN, "the first row to arrive is not the first one to happen"),
    Entry(
        jobs.earliest_watts, HOLDS, "the least pair of time and value is the same in every order"
    ),
    Entry(
        jobs.visits, HOLDS, "a session ends when the watermark has passed its gap", schema=CLICKS
    ),
    Entry(jobs.deduplicated, HOLDS, "the event time is among the keys", schema=PAYMENTS),
    Entry(
        jobs.endlessly_deduplicated,
        BROKEN,
        "the event time is not among the keys, and the state only grows",
        schema=PAYMENTS,
    ),
    Entry(
        jobs.deduplicated_in_a_batch,
        BROKEN,
        "a copy in another micro-batch stays",
        schema=PAYMENTS,
        options={"redelivered": ("id",)},
    ),
    Entry(
        jobs.paid_orders,
        HOLDS,
        "both sides have a watermark and a range of time",
        schema=ORDERS,
        event_time=ORDER_TIMES,
    ),
    Entry(
        jobs.all_orders,
        HOLDS,
        "a row without a match waits for both watermarks",
        schema=ORDERS,
        event_time=ORDER_TIMES,
    ),
    Entry(
        jobs.endless_orders,
        BROKEN,
        "one side has no watermark, and both only grow",
        schema=ORDERS,
        event_time=ORDER_TIMES,
    ),
    Entry(
        jobs.impatient_orders,
        BROKEN,
        "an order within the agreed lateness is dropped",
        options={"lateness": "3 minutes"},
        schema=ORDERS,
        event_time=ORDER_TIMES,
    ),
    Entry(
        jobs.orders_and_payments,
        BROKEN,
        "a null key is paired with a null key",
        schema=ORDERS,
        event_time=ORDER_TIMES,
    ),
    Entry(jobs.high_watts, HOLDS, "each row is answered alone"),
    Entry(
        jobs.minutes,
        HOLDS,
        "a replayed micro-batch replaces its first write",
        options={"sink": jobs.by_batch},
    ),
    Entry(
        jobs.minutes,
        BROKEN,
        "a replayed micro-batch is in the table twice",
        options={"sink": jobs.appended},
    ),
    Entry(
        jobs.minutes,
        HOLDS,
        "a later answer replaces the earlier one",
        mode="update",
        options={"sink": jobs.upserted},
    ),
    Entry(
        jobs.minutes,
        BROKEN,
        "earlier answers of a window stay in the table",
        mode="update",
        options={"sink": jobs.appended_updates},
    ),
    Entry(
        jobs.high_watts,
        HOLDS,
        "a reading replaces an earlier one, and no later one",
        INTEGERS,
        options={"sink": jobs.latest_of_all, "columns": HIGH},
    ),
    Entry(
        jobs.high_watts,
        BROKEN,
        "the latest reading of a micro-batch replaces a later one",
        INTEGERS,
        options={"sink": jobs.latest_of_each_batch, "columns": HIGH},
    ),
    Entry(
        jobs.totals, HOLDS, "complete mode keeps all rows, and answers all of them", mode="complete"
    ),
    Entry(
        jobs.new_devices,
        HOLDS,
        "the order of rows changes no answer",
        options={"keeps_state": True, **DEVICES},
    ),
    Entry(
        jobs.jumps,
        BROKEN,
        "the order of arrival changes the answers",
        options={"keeps_state": True, **DEVICES},
    ),
    Entry(
        jobs.minutes_without_a_timeout,
        BROKEN,
        "a state for each minute stays forever",
    ),
)

PROVED = {
    "minutes_with_a_late_watermark": [
        "windows never close: withWatermark comes after the aggregation, and not before it"
    ],
    "minutes_of_another_column": [
        "windows never close: the watermark is on at, and not on what window is made of"
    ],
    "minutes_of_processing": ["window is a key, and made of the time at which a row is processed"],
    "endlessly_deduplicated": [
        "dropDuplicates keeps every value of id forever: "
        "the column of the watermark is not among them"
    ],
    "endless_orders": [
        "the join keeps all rows of its left side forever: the other side has no watermark",
        "the join keeps all rows of its right side forever: the right side has no watermark",
    ],
}
"""Wrong jobs whose plan alone proves the mistake, and the sentences that say so."""
