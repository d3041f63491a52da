"""Writes scripts: trees as text, and texts in the one usual form.

Rules of this file:

* What is written is read as the same tree: ``parse(unparse(tree)) == tree``.
* A text that is written anew keeps its comments, and a blank line where there was one.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from model.vocabulary.script import (
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
from properties.script.language import LARK, parse, with_plain_line_ends

WIDTH = 100
"""Columns; a longer call has an argument a line."""
SUM, PRODUCT, FACTOR, ATOM = 1, 2, 3, 4
"""How strongly an expression holds together."""
STRENGTH = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT}
LINE_END = re.compile("\n")
COMMENT = re.compile(r'"[^"\n]*"|(#[^\n]*)')


def unparse(workflow: Workflow) -> str:
    """The script, a statement a line."""
    return "".join(f"{written(each.name, each.expression)}\n" for each in workflow.statements)


def written(name: str, expression: Expression) -> str:
    """A statement; on several lines if one would be too long."""
    line = f"{name} = {text_of(expression)}"
    if len(line) <= WIDTH or not isinstance(expression, Union | Across | Window):
        return line
    arguments = "".join(f"    {argument},\n" for argument in _arguments(expression))
    return f"{name} = {_function(expression)}(\n{arguments[:-2]}\n)"


def text_of(expression: Expression) -> str:
    """An expression on one line."""
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
    # What is alike is read from left to right.
    least = STRENGTH[expression.op]
    return f"{_within(left, least)} {expression.op} {_within(right, least + 1)}"


def _within(expression: Expression, least: int) -> str:
    text = text_of(expression)
    return text if _strength(expression) >= least else f"({text})"


# ---------------------------------------------------------------------------- texts, with comments


class _Piece(NamedTuple):
    """A statement or a comment, and the lines where it stood."""

    first: int
    last: int
    text: str


def formatted(text: str) -> str:
    """The same script in the usual form; raises :class:`ScriptError` if it means nothing."""
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
                # Before what comes next, or is around it.
                line = min([line, *firsts[place : place + 1]])
                before[place].append(_Piece(line, line, comment))
    pieces = []
    for place, each in enumerate(workflow.statements):
        statement = written(each.name, each.expression) + behind.get(place, "")
        pieces += [*before[place], _Piece(firsts[place], lasts[place], statement)]
    return _joined([*pieces, *before[len(spans)]])


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where statements begin and end."""
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
