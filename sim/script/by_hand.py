"""Batch jobs with Spark's DataFrames for the same workflows, written as by hand, to count lines.

Rules of this file:

* A job is the shortest equivalent of the workflows: it reads a complete table of tuples, without
  lateness, state or placement. A streaming job takes more lines.
* Workflows share nothing, as if analysts had written their own. Only the combination of latest
  values is written once. A function for windows, too, would be the beginning of this language.
* The lines of a script are its statements; those of a job are its lines that are not blank.
"""

from collections.abc import Sequence

from model.vocabulary.script.problems import constant
from model.vocabulary.script.tree import (
    ARITHMETIC_OPS,
    Across,
    Arithmetic,
    Expression,
    Name,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
    children,
    is_constant,
)
from model.vocabulary.settings import require

HEAD = '''\
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F


def latest(*streams: DataFrame) -> DataFrame:
    """The latest value of each stream, from when all have had one, whenever one has a tuple."""
    joined = None
    for n, stream in enumerate(streams):
        one = stream.groupBy("ts").agg(F.max("value").alias(f"v{n}"))
        joined = one if joined is None else joined.join(one, "ts", "full")
    before = Window.orderBy("ts").rowsBetween(Window.unboundedPreceding, 0)
    names = [f"v{n}" for n in range(len(streams))]
    filled = [F.last(name, ignorenulls=True).over(before).alias(name) for name in names]
    return joined.select("ts", *filled).dropna()
'''
AGGREGATES = {"stddev": "stddev_pop"}
"""Aggregates with another name in Spark."""


def script_lines(workflows: Sequence[Workflow]) -> int:
    """Return the number of lines of the scripts."""
    return sum(len(each.statements) for each in workflows)


def job_lines(workflows: Sequence[Workflow]) -> int:
    """Return the number of lines of the job by hand."""
    return sum(bool(line.strip()) for line in job(workflows).splitlines())


def job(workflows: Sequence[Workflow]) -> str:
    """Return a module with a function for each workflow, from tuples to results by name.

    Raises ``ValueError`` for a window that slides by more than its length, which Spark lacks.
    """
    return "\n\n".join([HEAD, *(_function(n, each) for n, each in enumerate(workflows))])


def _function(number: int, workflow: Workflow) -> str:
    writing = _FunctionWriter()
    for statement in workflow.statements:
        writing.enter(statement)
    lines = [
        f"def workflow_{number}(tuples: DataFrame) -> dict[str, DataFrame]:",
        *(f"    {line}" for line in writing.lines),
        f"    return {{{', '.join(f'{name!r}: {at}' for name, at in writing.results.items())}}}",
    ]
    return "\n".join(lines) + "\n"


class _FunctionWriter:
    """Writes the function of a workflow, with a DataFrame for each window and operation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.results: dict[str, str] = {}
        """Variables of the job, by names of results."""
        self._said: dict[str, str] = {}

    def enter(self, statement: Statement) -> None:
        """Write a statement; variables of its parts have numbers."""
        expression, name = statement.expression, statement.name
        at = self._stream(expression, f"_{name}")
        self._said[name] = at
        is_name = isinstance(expression, Name) and expression.name in self.results
        if is_name or not isinstance(expression, Name | Sensor | Union):
            self.results[name] = at

    def _stream(self, expression: Expression, name: str) -> str:
        """Return the expression of a stream; lines that it needs are written before."""
        if isinstance(expression, Name):
            return self._said[expression.name]
        if isinstance(expression, Sensor):
            return f'tuples.where(F.col("sensor") == {expression.id!r}).select("ts", "value")'
        if isinstance(expression, Union):
            return self._union(expression.parts, name)
        if isinstance(expression, Window):
            self._window(expression, name)
        else:
            assert isinstance(expression, Across | Arithmetic)
            self._operation(expression, name)
        return name

    def _union(self, parts: Sequence[Expression], name: str) -> str:
        sensors = [part.id for part in parts if isinstance(part, Sensor)]
        if len(parts) == len(set(sensors)) > 1:
            listed = ", ".join(map(repr, sensors))
            return f'tuples.where(F.col("sensor").isin({listed})).select("ts", "value")'
        first, *others = [self._stream(part, f"{name}_{n}") for n, part in enumerate(parts)]
        return first + "".join([f".unionByName({each})" for each in others])

    def _window(self, window: Window, name: str) -> None:
        good = window.slide_ms <= window.length_ms
        require(good, "the slide of a window", window.slide_ms, f"at most {window.length_ms}")
        source = self._stream(window.source, f"{name}_0")
        aggregate = AGGREGATES.get(window.op, window.op)
        spans = [window.length_ms, window.slide_ms]
        # Spark aligns starts of windows with the epoch, scripts align ends.
        spans += [first] if (first := -window.length_ms % window.slide_ms) else []
        span = ", ".join([f'"{each} milliseconds"' for each in spans])
        self.lines += [
            f"{name} = (",
            f"    {source}",
            f'    .groupBy(F.window("ts", {span}))',
            f'    .agg(F.{aggregate}("value").cast("double").alias("value"))',
            '    .select((F.col("window.end") - F.expr("INTERVAL 1 MILLISECOND")).alias("ts"), '
            '"value")',
            ")",
        ]

    def _operation(self, operation: Across | Arithmetic, name: str) -> None:
        places: dict[str, str] = {}
        columns = [
            self._column(part, f"{name}_{n}", places) for n, part in enumerate(children(operation))
        ]
        value = _written(operation.op, columns)
        self.lines.append(f"{name} = latest({', '.join(places)})")
        self.lines.append(f'{name} = {name}.select("ts", ({value}).alias("value")).dropna()')

    def _column(self, expression: Expression, name: str, places: dict[str, str]) -> str:
        """Return the column with the latest value of a stream, or a constant."""
        if is_constant(expression):
            return f"F.lit({constant(expression)!r})"
        stream = self._stream(expression, name)
        return places.setdefault(stream, f'F.col("v{len(places)}")')


def _written(op: str, columns: Sequence[str]) -> str:
    """Return an operation on columns."""
    listed = ", ".join(columns)
    if op in ARITHMETIC_OPS:
        return f"F.try_divide({listed})" if op == "/" else f" {op} ".join(columns)
    if op in ("max", "min") and len(columns) > 1:
        return f"F.{'greatest' if op == 'max' else 'least'}({listed})"
    total = " + ".join(columns)
    return f"({total}) / {len(columns)}" if op == "avg" else total


def figures(workflows: Sequence[Workflow]) -> dict[str, int]:
    """Return the lines of scripts and jobs."""
    script, by_hand = script_lines(workflows), job_lines(workflows)
    return {
        "workflows": len(workflows),
        "script_lines": script,
        "job_lines": by_hand,
        "lines_saved": by_hand - script,
    }
