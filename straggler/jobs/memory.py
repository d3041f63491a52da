"""Sources in the memory of Java: all inputs of a query in one, so that they are cut alike."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from straggler.errors import UsageError
from straggler.jobs.rows import Frames, Row
from straggler.jobs.shapes import INPUT_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Memory:
    """Maker of sources."""

    def __init__(self, spark: "SparkSession", frames: Frames) -> None:
        from pyspark.sql import types as sql

        if not hasattr(spark, "_jsparkSession"):
            raise UsageError("the session is one of Spark Connect; a classic session is needed")
        self.spark, self.frames = spark, frames
        self.is_single = len(frames.inputs) == 1
        if self.is_single:
            self.schema = frames.inputs[0].schema
        else:
            fields = [sql.StructField(f"r{n}", i.schema) for n, i in enumerate(frames.inputs)]
            self.schema = sql.StructType(
                [sql.StructField(INPUT_COLUMN, sql.IntegerType()), *fields]
            )
        jvm: Any = spark._jvm
        self.jvm = jvm
        runtime = jvm.org.apache.spark.sql.execution.streaming.runtime
        java = spark._jsparkSession.parseDataType(self.schema.json())
        self._encoder = jvm.org.apache.spark.sql.Encoders.row(java)
        self._make = runtime.MemoryStream
        self._lock = threading.Lock()

    def open(self) -> "Source":
        """Return a new source."""
        with self._lock:
            return Source(self, self._make.apply(self.spark._jsparkSession, self._encoder))

    def rows(self, batches: Sequence[Sequence[Row]]) -> Any:
        """Return the rows of all micro-batches as Java keeps them."""
        from pyspark.sql import functions as F  # noqa: N812 (Spark's own habit)

        if self.is_single:
            return self.frames.frame(0, [r for b in batches for r in b])._jdf.collectAsList()
        union = None
        for source in range(len(self.frames.inputs)):
            rows = [row for batch in batches for row in batch if row.source == source]
            packed = self.frames.frame(source, rows).select(F.struct("*").alias("r"))
            columns = [F.lit(source).alias(INPUT_COLUMN)]
            for n, other in enumerate(self.frames.inputs):
                column = F.col("r") if n == source else F.lit(None)
                columns.append(column.cast(other.schema).alias(f"r{n}"))
            packed = packed.select(*columns)
            union = packed if union is None else union.union(packed)
        assert union is not None
        return union._jdf.collectAsList()


class Source:
    """The inputs of one query."""

    def __init__(self, of: Memory, stream: Any) -> None:
        self._of, self._stream = of, stream

    def frames(self) -> list["DataFrame"]:
        """Return the inputs as streaming frames."""
        from pyspark.sql import DataFrame

        whole = DataFrame(self._stream.toDF(), self._of.spark)
        if self._of.is_single:
            return [whole]
        inputs = self._of.frames.inputs
        return [whole.where(whole[INPUT_COLUMN] == n).select(f"r{n}.*") for n in range(len(inputs))]

    def chunks(self, batches: Sequence[Sequence[Row]]) -> Callable[[int], None]:
        """Return a function that adds a micro-batch, whose rows Java has from now on."""
        of = self._of
        java = of.rows(batches)
        if of.is_single:
            order = list(range(sum(map(len, batches))))
        else:  # Java has the rows of one input after those of another
            flat = [row.source for batch in batches for row in batch]
            ranked = sorted(range(len(flat)), key=lambda n: (flat[n], n))
            order = [0] * len(flat)
            for place, n in enumerate(ranked):
                order[n] = place
        ends = [sum(map(len, batches[: n + 1])) for n in range(len(batches))]
        convert = of.jvm.scala.jdk.javaapi.CollectionConverters

        def add(number: int) -> None:
            first = ends[number] - len(batches[number])
            chosen = of.jvm.java.util.ArrayList()
            for place in order[first : ends[number]]:
                chosen.add(java.get(place))
            self._stream.addData(convert.asScala(chosen).toSeq())

        return add
