"""Text of scripts from their trees: ``parse(unparse(tree)) == tree``."""

from collections.abc import Iterator

from model.vocabulary.script.tree import (
    DAY_MS,
    Across,
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Union,
    Window,
    Workflow,
    children,
)

SUM, PRODUCT, FACTOR, ATOM = 1, 2, 3, 4
"""Binding strength of expressions."""
STRENGTH = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT}


def unparse(workflow: Workflow) -> str:
    """Return the script, one statement per line."""
    return "".join(f"{each.name} = {text_of(each.expression)}\n" for each in workflow.statements)


def text_of(expression: Expression) -> str:
    """Return an expression on one line."""
    if isinstance(expression, Number):
        return _number(expression.value)
    if isinstance(expression, Sensor):
        return f'"{expression.id}"'
    if isinstance(expression, Name):
        return expression.name
    if isinstance(expression, Arithmetic):
        return _arithmetic(expression)
    function = "union" if isinstance(expression, Union) else expression.op
    return f"{function}({', '.join(_arguments(expression))})"


def _arguments(expression: Union | Across | Window) -> Iterator[str]:
    yield from (text_of(child) for child in children(expression))
    if isinstance(expression, Window):
        spans_ms = expression.length_ms, expression.slide_ms
        if expression.zone:
            yield from (f"{span_ms // DAY_MS}d" for span_ms in spans_ms)
            yield f'"{expression.zone}"'
        else:
            yield from (f"{span_ms:_}" for span_ms in spans_ms)


def _number(value: float) -> str:
    return f"{int(value):_}" if float(value).is_integer() and value < 2**53 else repr(float(value))


def _is_sign(expression: Arithmetic) -> bool:
    return expression.op == "-" and expression.left == Number(0)


def _strength(expression: Expression) -> int:
    if not isinstance(expression, Arithmetic):
        return ATOM
    return FACTOR if _is_sign(expression) else STRENGTH[expression.op]


def _arithmetic(expression: Arithmetic) -> str:
    left, right = expression.left, expression.right
    if _is_sign(expression):
        return f"-{_within(right, FACTOR)}"
    # Operators of equal strength associate to the left.
    least = STRENGTH[expression.op]
    return f"{_within(left, least)} {expression.op} {_within(right, least + 1)}"


def _within(expression: Expression, least: int) -> str:
    text = text_of(expression)
    return text if _strength(expression) >= least else f"({text})"
