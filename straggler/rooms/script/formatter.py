"""Formatter of scripts: trees become text, and texts get their standard form.

Rules of this file:

* The text of a tree parses to the same tree: ``parse(unparse(tree)) == tree``.
* A formatted text keeps its comments; several blank lines in a row become one.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from model.vocabulary.script.tree import (
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
from straggler.rooms.script.language import LARK, parse, with_plain_line_ends

WIDTH = 100
"""Most columns of a line; a longer call has one argument per line."""
SUM, PRODUCT, FACTOR, ATOM = 1, 2, 3, 4
"""Binding strength of expressions."""
STRENGTH = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT}
LINE_END = re.compile("\n")
COMMENT = re.compile(r'"[^"\n]*"|(#[^\n]*)')


def unparse(workflow: Workflow) -> str:
    """Return the script, one statement per line."""
    return "".join(
        f"{statement_text(each.name, each.expression)}\n" for each in workflow.statements
    )


def statement_text(name: str, expression: Expression) -> str:
    """Return a statement, on several lines if one would be too long."""
    line = f"{name} = {text_of(expression)}"
    if len(line) <= WIDTH or not isinstance(expression, Union | Across | Window):
        return line
    arguments = "".join(f"    {argument},\n" for argument in _arguments(expression))
    return f"{name} = {_function(expression)}(\n{arguments[:-2]}\n)"


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
    return f"{_function(expression)}({', '.join(_arguments(expression))})"


def _function(expression: Union | Across | Window) -> str:
    return "union" if isinstance(expression, Union) else expression.op


def _arguments(expression: Union | Across | Window) -> Iterator[str]:
    yield from (text_of(child) for child in children(expression))
    if isinstance(expression, Window):
        yield f"{expression.length_ms:_}"
        yield f"{expression.slide_ms:_}"


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


# ---------------------------------------------------------------------------- texts, with comments


class _Piece(NamedTuple):
    """A statement or a comment, with its lines in the original text."""

    first: int
    last: int
    text: str


def formatted(text: str) -> str:
    """Return the script in its standard form; raise :class:`ScriptError` for mistakes."""
    workflow = parse(text, "script")
    text = with_plain_line_ends(text)
    starts = [0, *(found.end() for found in LINE_END.finditer(text))]
    spans = list(_spans(text))
    firsts = [bisect_right(starts, start) for start, _ in spans]
    lasts = [bisect_right(starts, end) for _, end in spans]
    before: dict[int, list[_Piece]] = defaultdict(list)
    behind: dict[int, str] = {}
    for found in COMMENT.finditer(text):
        if found.group(1):
            line, comment = bisect_right(starts, found.start()), found.group(1).rstrip()
            place = bisect_right(lasts, line)
            if place and lasts[place - 1] == line and line not in firsts[place : place + 1]:
                behind[place - 1] = f"  {comment}"
            else:
                # The comment stands before the next statement, or before the one around it.
                line = min([line, *firsts[place : place + 1]])
                before[place].append(_Piece(line, line, comment))
    pieces = []
    for place, each in enumerate(workflow.statements):
        statement = statement_text(each.name, each.expression) + behind.get(place, "")
        pieces += [*before[place], _Piece(firsts[place], lasts[place], statement)]
    return _joined([*pieces, *before[len(spans)]])


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each statement."""
    for is_end, group in groupby(LARK.lex(text), lambda token: token.type == "_END"):
        if not is_end:
            tokens = list(group)
            yield tokens[0].start_pos or 0, tokens[-1].end_pos or 0


def _joined(pieces: list[_Piece]) -> str:
    lines: list[str] = []
    last = 0
    for piece in pieces:
        if lines and piece.first > last + 1:
            lines.append("")
        lines.append(piece.text)
        last = piece.last
    return "\n".join(lines) + "\n"
