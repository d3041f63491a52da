"""Identities that were landed as text, by the numbers that stores and queries have."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_impl.runtime.histories import SOURCE_TEXT, files_of
from spark_impl.runtime.queries import read_files
from spark_impl.runtime.storage import InputProblem, Location


def list_identities(spark: SparkSession, history: Location, schema: pa.Schema) -> DataFrame:
    """Return each identity of a history once: grouping columns, ``source_id``, ``source_text``.

    Raise :class:`InputProblem` if the identities were no text. ``schema`` is that of the history.
    """
    if SOURCE_TEXT not in schema.names:
        raise InputProblem("the identities were landed as numbers, which have no text")
    groups = schema.names[schema.names.index(SOURCE_TEXT) + 1 :]
    fields = [schema.field(name) for name in (*groups, "source_id", SOURCE_TEXT)]
    return read_files(spark, files_of(history), pa.schema(fields)).distinct()
