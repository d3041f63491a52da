"""Operators and expressions of a plan of Spark, as far as remarks need them.

Rules of this file:

* Operators wrap Java's own objects. Expressions are read from Spark's JSON, one call each.
* A column is known by its number, which is unique within a plan.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from straggler.jobs.rows import INPUT_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DELAY = "spark.watermarkDelayMs"
"""Name under which Spark notes in a column that it has a watermark."""


class Expression(NamedTuple):
    """An expression, as Spark writes it in JSON."""

    name: str
    fields: Mapping[str, Any]
    children: tuple["Expression", ...]

    def walk(self) -> Iterator["Expression"]:
        """Yield the expression and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def attribute(self) -> int | None:
        """The number of the column that the expression reads or names."""
        found = self.fields.get("exprId")
        return found["id"] if isinstance(found, dict) else None

    @property
    def bare(self) -> tuple[Any, ...]:
        """The expression without its alias, as a value that can be compared."""
        if self.name == "Alias":
            return self.children[0].bare
        told = ["value", "ordinal", "dataType", "udfName"]
        told += ["name", "resultId"] if self.name == "PythonUDF" else []
        values = [str(self.fields.get(name)) for name in told]
        return (self.name, self.attribute, *values, *[each.bare for each in self.children])

    def reads(self) -> set[int]:
        """Return the numbers of the columns that the expression reads."""
        return {
            each.attribute
            for each in self.walk()
            if each.name == "AttributeReference" and each.attribute is not None
        }


class Operator:
    """An operator of a plan."""

    def __init__(self, java: Any) -> None:
        self.java = java
        self.name: str = java.nodeName()
        self.is_streaming: bool = java.isStreaming()
        self.children = tuple(Operator(each) for each in items(java.children()))

    def walk(self) -> Iterator["Operator"]:
        """Yield the operators below, and then this one."""
        for child in self.children:
            yield from child.walk()
        yield self

    def expressions(self) -> list[Expression]:
        """Return the expressions of the operator."""
        return [expression_of(each) for each in items(self.java.expressions())]

    def outputs(self, *, timed: bool = False) -> dict[int, str]:
        """Return the columns of the output by number; if ``timed``, those with a watermark."""
        return {
            each.exprId().id(): each.name()
            for each in items(self.java.output())
            if not timed or each.metadata().contains(DELAY)
        }

    def inputs(self, *, timed: bool = False) -> dict[int, str]:
        """Return the columns of the input by number; if ``timed``, those with a watermark."""
        return {k: v for child in self.children for k, v in child.outputs(timed=timed).items()}


def optimised(frame: "DataFrame") -> Operator:
    """Return the plan of a frame after Spark has moved and merged its operators."""
    optimiser = frame.sparkSession._jsparkSession.sessionState().optimizer()
    return Operator(optimiser.execute(frame._jdf.queryExecution().analyzed()))


def filtered_watermarks(plan: Operator, *, is_optimised: bool = False) -> list[Operator]:
    """Return the watermarks that see only rows which a filter of the job lets pass.

    In a plan that Spark has optimised, joins have filters of their own, which drop nulls.
    """
    return [
        mark
        for mark in plan.walk()
        if mark.name == "EventTimeWatermark"
        and any(
            _read_names(each) - {INPUT_COLUMN}
            for each in mark.walk()
            if each.name == "Filter" and not (is_optimised and _only_drops_nulls(each))
        )
    ]


def _only_drops_nulls(node: Operator) -> bool:
    parts = {each.name for expression in node.expressions() for each in expression.walk()}
    return parts <= {"And", "IsNotNull", "AttributeReference"}


def _read_names(node: Operator) -> set[str]:
    parts = [each for expression in node.expressions() for each in expression.walk()]
    return {str(each.fields["name"]) for each in parts if each.name == "AttributeReference"}


def java_keys(node: Operator) -> list[Any]:
    """Return the expressions, as Java's objects, by which an operator keeps state."""
    if node.name == "Aggregate":
        return items(node.java.groupingExpressions())
    if node.name == "Distinct":
        return items(node.java.output())
    if node.name in ("Deduplicate", "DeduplicateWithinWatermark"):
        return items(node.java.keys())
    return []


def has_timed_key(node: Operator) -> bool:
    """Return whether one of the keys of an operator has a watermark."""
    timed = set(node.inputs(timed=True))
    keys = [each for each in java_keys(node) if each.nodeName() == "AttributeReference"]
    return any(each.exprId().id() in timed for each in keys)


def delay_us(mark: Operator) -> int:
    """Return the delay of a watermark, which Spark notes in its column."""
    number = mark.java.eventTime().exprId().id()
    (column,) = [each for each in items(mark.java.output()) if each.exprId().id() == number]
    return int(column.metadata().getLong(DELAY)) * 1_000


def key_types(node: Operator) -> dict[str, str]:
    """Return the types of the keys of an operator, by name."""
    return {name_of(each): each.dataType().simpleString() for each in java_keys(node)}


def source_names(plan: Operator, node: Operator) -> tuple[str, ...]:
    """Return the names that the keys of an operator have in the inputs, before any renaming.

    A key that is computed keeps its own name.
    """
    names: dict[int, str] = {}
    renamed: set[int] = set()
    below: dict[int, list[int]] = {}
    for each in plan.walk():
        names |= each.outputs()
        for alias in each.expressions() if each.name == "Project" else ():
            if alias.name == "Alias" and alias.children[0].name == "AttributeReference":
                assert alias.attribute is not None
                renamed.add(alias.attribute)
                below.setdefault(alias.attribute, []).extend(alias.reads())
        for child in each.children if each.name == "Union" else ():
            for one, other in zip(_numbers(each.java), _numbers(child.java), strict=True):
                below.setdefault(one, []).append(other)
    reached = [each.exprId().id() for each in java_keys(node)]
    for number in reached:  # the list grows meanwhile
        reached += [each for each in below.get(number, []) if each not in reached]
    return tuple(dict.fromkeys(names[each] for each in reached if each not in renamed))


def _numbers(java: Any) -> list[int]:
    """Return the numbers of the columns of an output, in their order."""
    return [each.exprId().id() for each in items(java.output())]


def answer_keys(plan: Operator) -> tuple[str, ...] | None:
    """Return the columns by which answers differ: keys, or the start or end of a window.

    Return ``None`` unless the plan ends with an aggregation, each row of which is one answer that
    has all keys.
    """
    node, above = plan, []
    while node.name not in ("Aggregate", "Distinct"):
        if len(node.children) != 1 or node.name in ("Generate", "Expand"):
            return None
        above.append(node)
        (node,) = node.children
    keys = {expression_of(java).bare for java in java_keys(node)}
    held: dict[int | None, set[Any]] = {}
    is_distinct = node.name == "Distinct"
    told = node.java.output() if is_distinct else node.java.aggregateExpressions()
    for each in map(expression_of, items(told)):
        held[each.attribute] = {each.bare} & keys
    for project in above[::-1]:
        for each in project.expressions() if project.name == "Project" else ():
            if each.name == "Alias" and _is_whole(each.children[0]):
                held[each.attribute] = set().union(*[held.get(n, set()) for n in each.reads()])
    found = {name: held.get(number) for number, name in plan.outputs().items()}
    if keys - set().union(*filter(None, found.values())):
        return None
    return tuple(name for name, each in found.items() if each)


def _is_whole(expression: Expression) -> bool:
    """Return whether an expression is a column, or determines it, as the start of a window does."""
    if expression.name == "GetStructField":
        kind = expression.children[0].fields.get("dataType")
        fields = kind.get("fields", ()) if isinstance(kind, dict) else ()
        return [each["name"] for each in fields] == ["start", "end"] and all(
            each["type"] in ("timestamp", "timestamp_ntz") for each in fields
        )
    return expression.name == "AttributeReference"


def name_of(java: Any) -> str:
    """Return the name of a column, or any other expression as SQL."""
    return str(java.name() if java.nodeName() == "AttributeReference" else java.sql())


def items(sequence: Any) -> list[Any]:
    """Return the items of a sequence of Scala."""
    return [sequence.apply(number) for number in range(sequence.size())]


def expression_of(java: Any) -> Expression:
    """Return an expression from its JSON, a list in which children follow their parent."""
    flat = iter(json.loads(java.toJSON()))

    def read() -> Expression:
        fields = next(flat)
        children = tuple(read() for _ in range(fields["num-children"]))
        return Expression(fields["class"].rpartition(".")[2], fields, children)

    return read()
