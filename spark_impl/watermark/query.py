"""The streaming query of room ``watermark``, its answers, and the query as a System."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from model.vocabulary import Trace, WatermarkConfig, Workload
from model.vocabulary.watermark import Clock, Inserted, Passing
from spark_impl.runtime.histories import VALUE
from spark_impl.runtime.queries import Sink
from spark_impl.runtime.storage import Address
from spark_impl.runtime.systems import OnKill, system_maker
from spark_impl.watermark.rule import CLOCK, Memory, WatermarkRule
from spark_impl.watermark.upstream import INSERTION, PASSING, UpstreamMemory, UpstreamRule
from spark_impl.windows import progress as figures
from spark_impl.windows import query, system
from spark_impl.windows.room import WindowRoom, WindowSettings, window_settings


def _settings(config: WatermarkConfig) -> WindowSettings:
    own = {"upstreams": config.upstreams, "insert_every_us": config.insert_every_us}
    plain = {"positive": False, "corrects": config.corrections, "correlates": False}
    return window_settings(config, **plain, **own)


WATERMARK = WindowRoom(
    name="watermark",
    read=WatermarkConfig.from_json,
    settings=_settings,
    rule=WatermarkRule,
    memory=Memory(),
    progress={},
    records={"clock": CLOCK},
    columns={"clock": dict.fromkeys(CLOCK.names or (), pa.int64())},
    words={"clock": Clock},
)
_OWN = {"passing": PASSING, "inserted": INSERTION}
UPSTREAM = replace(
    WATERMARK,
    rule=UpstreamRule,
    memory=UpstreamMemory(),
    records=_OWN,
    columns={name: dict.fromkeys(each.names or (), pa.int64()) for name, each in _OWN.items()},
    words={"passing": Passing, "inserted": Inserted},
)
"""Room ``watermark`` with operators upstream: another rule and other records, the same stores."""


def _room(config: WatermarkConfig) -> WindowRoom[WatermarkConfig]:
    return UPSTREAM if config.upstreams else WATERMARK


class WatermarkQuery(query.WindowedQuery[WatermarkConfig]):
    """Windows over a history, with a watermark that follows the disorder of the last arrivals.

    Late tuples are a side output (:func:`late`), or are corrected if the configuration says so.
    Arguments and errors are those of :class:`spark_impl.windows.query.WindowedQuery`.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: WatermarkConfig,
        source: Address,
        store: Address,
        group_columns: Collection[str] = (),
        *,
        value: str | None = VALUE,
        sink: Sink | None = None,
        checkpoint: Address | None = None,
    ) -> None:
        places = (source, store, group_columns)
        super().__init__(
            spark, _room(config), config, *places, value=value, sink=sink, checkpoint=checkpoint
        )


def results(spark: SparkSession, store: Address) -> DataFrame:
    """Return current answers, as :func:`spark_impl.windows.query.results` does."""
    return query.results(spark, WATERMARK, store)


def late(spark: SparkSession, store: Address) -> DataFrame:
    """Return a row for each late (tuple, window), as :func:`spark_impl.windows.query.late` does."""
    return query.late(spark, WATERMARK, store)


def corrections(spark: SparkSession, store: Address) -> DataFrame:
    """Return a row for each correction, as :func:`spark_impl.windows.query.corrections` does."""
    return query.corrections(spark, WATERMARK, store)


progress = partial(figures.progress, WATERMARK)
"""Returns the figures of the last micro-batch of a store, without Spark."""


def run_workloads(
    spark: SparkSession,
    cases: Mapping[str, Workload],
    workdir: Path,
    on_kill: OnKill = lambda _: None,
) -> dict[str, Trace]:
    """Run many workloads of one configuration in one query, as ``windows.system`` does."""
    config = next(iter(cases.values())).config
    return system.run_workloads(_room(WATERMARK.read(config)), spark, cases, workdir, on_kill)


def run_in_process(workload: Workload) -> Trace:
    """Run a workload without Spark; return the steps of the stream part."""
    return system.run_in_process(_room(WATERMARK.read(workload.config)), workload)


make_system = system_maker("watermark", run_workloads)
