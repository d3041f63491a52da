"""Remarks on the plan of a job, without a stream.

Rules of this file:

* A remark is broken only if the plan alone proves the mistake: the state grows as long as rows
  come, the answer depends on the clock of the machine, or Spark refuses the query.
* Spark itself says which sides of a join can be cleaned up, and which queries it refuses.
* Besides these, only what no stream can decide is told.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from straggler.jobs.operators import (
    Expression,
    Operator,
    expression_of,
    filtered_watermarks,
    has_timed_key,
    items,
    java_keys,
    key_types,
    name_of,
    optimised,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATE = "state stays bounded"
EXACT = "ends exact"
ORDER = "order does not matter"
CLOCKS = {
    "CurrentTimestamp": "current_timestamp()",
    "CurrentDate": "current_date()",
    "CurrentTime": "current_time()",
    "LocalTimestamp": "localtimestamp()",
    "Now": "now()",
}
ARRIVALS = {"AnyValue", "CollectList", "CollectSet", "First", "Last"}
"""Aggregates whose answer depends on the order of rows, as streams show."""
ESTIMATES = {
    "ApproximatePercentile": "percentile_approx()",
    "HyperLogLogPlusPlus": "approx_count_distinct()",
}
LATER_US = 4_000_000_000_000
"""Any watermark (us) that Java takes for a long."""


@dataclass(frozen=True)
class Remark:
    """A fact about a job that its plan alone tells."""

    sentence: str
    is_broken: bool
    """True if the plan alone proves a mistake."""
    claim: str = ""
    """Claim that is broken; if ``is_broken`` is false, the claim that nobody can decide."""


def remarks(frame: "DataFrame", *, mode: str = "append") -> tuple[Remark, ...]:
    """Return what the plan of a streaming DataFrame tells, for an output mode of its query."""
    analysed = frame._jdf.queryExecution().analyzed()
    plan = Operator(analysed)
    found = [
        *_functions(plan),
        *_processing_time(plan),
        *_states(plan, mode),
        # Conditions that follow a join are part of it only in the optimised plan.
        *_joins(optimised(frame), frame.sparkSession._jvm),
        *_waiting(plan),
        *_tables(plan),
    ]
    if not any(each.is_broken for each in found):
        found += _refusal(frame, analysed, mode)
    return tuple(dict.fromkeys(found))


def _refusal(frame: "DataFrame", plan: Any, mode: str) -> Iterator[Remark]:
    """Yield what Spark says if it refuses the query."""
    from pyspark.errors import AnalysisException

    jvm: Any = frame.sparkSession._jvm
    spark = jvm.org.apache.spark.sql
    output_mode = getattr(spark.streaming.OutputMode, mode.capitalize())()
    checker = getattr(spark.catalyst.analysis, "UnsupportedOperationChecker$")
    try:
        getattr(checker, "MODULE$").checkForStreaming(plan, output_mode)
    except AnalysisException as error:
        yield Remark(f"Spark refuses the query: {str(error).splitlines()[0]}", True, EXACT)


# --------------------------------------------------------------------------------------- functions


def _functions(plan: Operator) -> Iterator[Remark]:
    """Yield remarks on functions whose value depends on more than the rows."""
    for node in plan.walk():
        for java, expression in zip(
            items(node.java.expressions()), node.expressions(), strict=True
        ):
            names = [each.name for each in expression.walk()]
            for name in [*filter(None, map(CLOCKS.get, names)), *_chances(java)]:
                yield Remark(f"{name} has another value in each run", False, EXACT)
            for name in filter(None, map(ESTIMATES.get, names)):
                yield Remark(f"{name} is an estimate, not an exact answer", False)


def _chances(java: Any) -> Iterator[str]:
    """Yield the functions of an expression whose value Spark itself cannot predict."""
    if java.deterministic() or java.nodeName() in {*ARRIVALS, *ESTIMATES}:
        return
    below = [each for each in items(java.children()) if not each.deterministic()]
    for each in below:
        yield from _chances(each)
    if not below:
        yield f"{java.name() if java.nodeName() == 'PythonUDF' else java.prettyName()}()"


def _processing_time(plan: Operator) -> Iterator[Remark]:
    """Yield remarks on keys and watermarks that come from the clock of the machine."""
    of_clock: set[int] = set()
    for node in plan.walk():
        for expression in node.expressions():
            for each in expression.walk():
                if each.name == "Alias" and _is_of_clock(each, of_clock) and each.attribute:
                    of_clock.add(each.attribute)
        if not node.is_streaming:
            continue
        for java in java_keys(node):
            if _is_of_clock(expression_of(java), of_clock):
                above = [each for each in plan.walk() if each is not node and node in each.walk()]
                is_last = all(each.name != "Aggregate" for each in above)
                sentence = (
                    f"{name_of(java)} is a key, and made of the time at which a row is processed"
                )
                yield Remark(sentence, is_last, ORDER)
        if node.name == "EventTimeWatermark" and of_clock & node.expressions()[0].reads():
            sentence = "the watermark is on the time at which a row is processed"
            yield Remark(sentence, False, ORDER)


def _is_of_clock(expression: Expression, of_clock: set[int]) -> bool:
    return any(each.name in CLOCKS for each in expression.walk()) or bool(
        expression.reads() & of_clock
    )


# ------------------------------------------------------------------------------------------- state


def _states(plan: Operator, mode: str) -> Iterator[Remark]:
    """Yield remarks on aggregations and deduplications whose state nothing cleans up."""
    marks = [node for node in plan.walk() if node.name == "EventTimeWatermark"]
    for node in plan.walk():
        if not node.is_streaming:
            continue
        if node.name == "Aggregate" and mode != "complete" and not has_timed_key(node):
            is_followed = any(node in mark.walk() for mark in marks)
            yield from _aggregation(node, mode, is_followed=is_followed)
        is_distinct = node.name == "Distinct" and mode != "complete"
        if (node.name == "Deduplicate" or is_distinct) and not has_timed_key(node):
            names = ", ".join(key_types(node))
            reason = (
                "the column of the watermark is not among them"
                if node.inputs(timed=True) or (is_distinct and {*marks} & {*node.walk()})
                else "withWatermark comes later"
                if any(node in mark.walk() for mark in marks)
                else "there is no watermark"
            )
            what = "SELECT DISTINCT" if is_distinct else "dropDuplicates"
            sentence = f"{what} keeps every value of {names} forever: {reason}"
            yield Remark(sentence, True, STATE)


def _aggregation(node: Operator, mode: str, *, is_followed: bool) -> Iterator[Remark]:
    """Yield remarks on an aggregation none of whose keys has a watermark."""
    names, timed = key_types(node), node.inputs(timed=True)
    times = [name for name, kind in names.items() if "timestamp" in kind]
    if not times:
        if mode == "update":
            of = f"value of {', '.join(names)}" if names else "query"
            yield Remark(f"the state keeps a row for each {of} forever", False)
        return
    if timed:
        marked = ", ".join(sorted(set(timed.values())))
        why = f"the watermark is on {marked}, and not on what {', '.join(times)} is made of"
    elif is_followed:
        why = "withWatermark comes after the aggregation, and not before it"
    else:
        why = f"there is no watermark before groupBy({', '.join(times)})"
    yield Remark(f"windows never close: {why}", True, STATE)


def _joins(plan: Operator, jvm: Any) -> Iterator[Remark]:
    """Yield remarks on joins of two streams that keep rows of a side forever."""
    analysis = jvm.org.apache.spark.sql.catalyst.analysis
    helper = getattr(getattr(analysis, "StreamingJoinHelper$"), "MODULE$")
    for node in plan.walk():
        if node.name != "Join" or not all(child.is_streaming for child in node.children):
            continue
        if helper.isWatermarkInJoinKeys(node.java):
            continue
        watermark = jvm.scala.Some(LATER_US)
        for side, other, word in zip(
            node.children, node.children[::-1], ("left", "right"), strict=True
        ):
            bounded = (
                side.outputs(timed=True)
                and helper.getStateValueWatermark(
                    side.java.outputSet(), other.java.outputSet(), node.java.condition(), watermark
                ).isDefined()
            )
            if not bounded:
                yield Remark(_join_sentence(side, other, word), True, STATE)


def _join_sentence(side: Operator, other: Operator, word: str) -> str:
    """Return why a join keeps the rows of one of its sides."""
    begin = f"the join keeps all rows of its {word} side forever"
    missing = [
        name
        for name, each in ((f"the {word}", side), ("the other", other))
        if not each.outputs(timed=True)
    ]
    if missing:
        return f"{begin}: {' and '.join(missing)} side has no watermark"
    return f"{begin}: its condition does not bound their times by those of the other side"


def _waiting(plan: Operator) -> Iterator[Remark]:
    """Yield remarks on watermarks that a filter holds back, and with them those of other inputs."""
    marks = [node for node in plan.walk() if node.name == "EventTimeWatermark"]
    for mark in filtered_watermarks(plan):
        if any(each not in mark.walk() and mark not in each.walk() for each in marks):
            column = mark.java.eventTime().name()
            sentence = (
                f"a filter comes before the watermark on {column}: while no row passes it, state "
                "and answers of the other side wait as well"
            )
            yield Remark(sentence, False)


def _tables(plan: Operator) -> Iterator[Remark]:
    """Yield remarks on tables that are read beside the stream."""
    for node in plan.walk():
        if not node.children and not node.is_streaming and plan.is_streaming:
            if node.name in ("LocalRelation", "LogicalRDD", "Range", "OneRowRelation"):
                continue  # a constant
            sentence = (
                f"the job reads another table ({node.java.simpleString(4)}): an answer depends on "
                "when it is read"
            )
            yield Remark(sentence, False)
