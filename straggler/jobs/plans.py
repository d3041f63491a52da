"""Remarks on the plan of a job, without a stream."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Remark(NamedTuple):
    """What the plan alone tells about a job."""

    kind: str
    sentence: str
    is_broken: bool
    claim: str = ""


def remarks(frame: "DataFrame", mode: str = "append") -> tuple[Remark, ...]:
    """Return remarks on a streaming DataFrame."""
    return ()
