"""The position of a stream that is spread, and the rows that it refused."""

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from model.vocabulary.grouping import REASON_NOT_FINITE
from spark_impl.grouping.store import REJECTED, load_store
from spark_impl.runtime.queries import read_table
from spark_impl.runtime.storage import Address, locate


class Progress(NamedTuple):
    """The position of a stream that is spread. It waits for nothing, so nothing holds it back."""

    batch: int
    """The last micro-batch that is done; -1 before the first one."""
    window: int
    """The window of the next tuple."""
    rejected: Mapping[str, int]
    """Number of refused rows so far, by reason."""


def progress(store: Address) -> Progress:
    """Return the position of a stream.

    Raise :class:`InputProblem` if ``store`` is not the store of a stream.
    """
    place = load_store(locate(store))
    refused, last = place.view.count(REJECTED), place.view.last
    window = place.standing(last).table.window if last >= 0 else 0
    return Progress(last, window, {REASON_NOT_FINITE: refused} if refused else {})


def rejected(spark: SparkSession, store: Address) -> DataFrame:
    """Return every refused row: its value is missing, or not finite.

    The columns are ``seq, key, source_id, event_time_us, reason, batch``; what the input does not
    have is NULL. Only a stream that was given the name of its column of values lists them. Raise
    :class:`InputProblem` if ``store`` is not the store of a stream.
    """
    return read_table(spark, load_store(locate(store)), REJECTED)
