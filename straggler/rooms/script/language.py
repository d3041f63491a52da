"""Grammar of sensor scripts (for lark, LALR), and their parser.

Rules of this file:

* A line end ends a statement. Line ends within parentheses are removed before the grammar sees
  them.
* A space may stand in a number only between groups of three digits; elsewhere it could be the place
  of a forgotten comma between two numbers.
* The grammar knows calls, but not functions: the parser checks the arguments of each function.
* The first mistake of syntax ends the parsing; mistakes in the meaning are all shown.
* Model and Spark take trees, never texts, so that they cannot read one text in two ways.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple
from zoneinfo import available_timezones

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken, v_args

from model.vocabulary.script.problems import problems
from model.vocabulary.script.tree import (
    ACROSS_OPS,
    DAY_MS,
    DEPTH_MAX,
    FUNCTIONS,
    OVERLAP_MAX,
    SPAN_MAX_MS,
    Across,
    Arithmetic,
    Expression,
    Name,
    Number,
    Sensor,
    Statement,
    Union,
    Window,
    Workflow,
    children,
    is_constant,
    is_zone,
    walk,
)
from straggler.rooms.script.mistakes import (
    SEPARATORS,
    ScriptMistake,
    Stop,
    locate,
    meaningless,
    unexpected,
)

GRAMMAR = r"""
start: _line (_END _line)*
_line: statement?
statement: NAME "=" expression
?expression: term | expression PLUS term -> arithmetic | expression MINUS term -> arithmetic
?term: factor | term TIMES factor -> arithmetic | term OVER factor -> arithmetic
?factor: atom | MINUS factor -> negative
?atom: NUMBER -> number
     | TEXT -> quoted
     | NAME -> unquoted
     | NAME "(" [argument ("," argument)*] ")" -> call
     | "(" expression ")"
?argument: expression | DAYS -> days

PLUS: "+"
MINUS: "-" | "\u2212"
TIMES: "*" | "\u00d7"
OVER: "/"
NAME: /[^\W\d]\w*/
DAYS.1: /[0-9]+d(?!\w)/
TEXT: /"[^"\x00-\x1f\x7f-\x9f\u2028\u2029]*"/
NUMBER: (GROUPED | PLAIN) /(\.[0-9]+)?([eE][+-]?[0-9]+)?/
GROUPED: /[0-9]{1,3}([ \u00a0][0-9]{3})+(?![0-9_\u2009\u202f])/
PLAIN: /[0-9][0-9_\u2009\u202f]*/
_END: /(;|\n)/
COMMENT: /\#[^\n]*/
SPACE: /[ \t\u00a0\u2009\u202f]+/
%ignore COMMENT
%ignore SPACE
"""

MINUS_SIGN = "\u2212"
TIMES_SIGN = "\u00d7"
SHOWN_MAX = 20
"""Most mistakes that are shown of one script."""
MEANT = {
    **{name: name for name in FUNCTIONS},
    "average": "avg",
    "mean": "avg",
    "minimum": "min",
    "maximum": "max",
    "total": "sum",
    "size": "count",
    "std": "stddev",
    "stdev": "stddev",
    "stddev_pop": "stddev",
    "sd": "stddev",
    "merge": "union",
    "median": "",
}
"""Functions by their names in other languages, in lower case; empty: there is no such function.

Such a word is not misspelt, so the closest name would mislead: for ``median`` it is ``min``."""


class Days(NamedTuple):
    """A number of days, each as ``DAY_MS``."""

    ms: int
    at: int


class ScriptError(ValueError):
    """A script with mistakes; the message is the first one."""

    def __init__(self, mistakes: tuple[ScriptMistake, ...]) -> None:
        first = mistakes[0]
        super().__init__(f"line {first.line}, column {first.column}: {first.sentence}")
        self.mistakes = mistakes


def parse(text: str, name: str, sensors: Collection[str] | None = None) -> Workflow:
    """Parse a script into a workflow called ``name``.

    If ``sensors`` are given, every sensor must be one of them. Raise :class:`ScriptError`.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        workflow = Workflow(name, tuple(_statements(text)))
    except Stop as stop:
        raise ScriptError((locate(text, stop.problem),)) from None
    found = [locate(text, each) for each in islice(problems(workflow, sensors), SHOWN_MAX)]
    if found:
        raise ScriptError(tuple(found))
    return workflow


def _statements(text: str) -> Iterator[Statement]:
    try:
        read: list[Statement] = LARK.parse(text)  # type: ignore[assignment]  # the grammar says what it returns
    except UnexpectedToken as error:
        raise unexpected(text, error) from None
    except UnexpectedCharacters as error:
        raise meaningless(text, error.pos_in_stream or 0) from None
    if not read:
        raise Stop(0, "", "there is no statement in it")
    names: set[str] = set()
    for statement in read:
        yield _resolve(statement, names)
        names.add(statement.name)


def _resolve(statement: Statement, names: Collection[str]) -> Statement:
    """Turn each sensor that has the name of an earlier statement into a reference to it."""
    nodes = list(walk(statement.expression))
    is_too_deep = any(depth > DEPTH_MAX for _, depth in nodes)  # it is reported as a problem
    if is_too_deep or not any(isinstance(node, Sensor) and node.id in names for node, _ in nodes):
        return statement
    return replace(statement, expression=_with_names(statement.expression, names))


def _with_names(expression: Expression, names: Collection[str]) -> Expression:
    if isinstance(expression, Sensor):
        known = expression.id in names
        return Name(expression.id, at=expression.at) if known else expression
    if isinstance(expression, Union | Across):
        return replace(
            expression, parts=tuple(_with_names(each, names) for each in expression.parts)
        )
    if isinstance(expression, Window):
        return replace(expression, source=_with_names(expression.source, names))
    if isinstance(expression, Arithmetic):
        left, right = (_with_names(side, names) for side in children(expression))
        return replace(expression, left=left, right=right)
    return expression


class _LineEnds:
    """Filter that removes line ends within parentheses."""

    always_accept = ("_END",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Yield all tokens but line ends within parentheses; a semicolon stays."""
        opened = 0
        for token in stream:
            opened += (token.type == "LPAR") - (token.type == "RPAR" and opened > 0)
            if token.type != "_END" or token == ";" or not opened:
                yield token


# ----------------------------------------------------------------------------- from text to trees


@v_args(inline=True)
class _TreeBuilder(Transformer[Token, list[Statement]]):
    """Stateless transformer that makes nodes while lark reads."""

    def start(self, *statements: Statement) -> list[Statement]:
        return list(statements)

    def statement(self, name: Token, expression: Expression) -> Statement:
        _refuse_function(name)
        return Statement(str(name), expression, at=_at(name))

    def number(self, token: Token) -> Number:
        value = float(SEPARATORS.sub("", token))
        if value == float("inf"):
            raise Stop(_at(token), token, "this number is too large")
        return Number(value, at=_at(token))

    def quoted(self, token: Token) -> Sensor:
        inside = token[1:-1]
        if not inside:
            raise Stop(_at(token), token, "there is nothing between the quotes")
        return Sensor(inside, at=_at(token))

    def unquoted(self, token: Token) -> Name:
        _refuse_function(token)
        return Name(str(token), at=_at(token))

    def negative(self, sign: Token, expression: Expression) -> Arithmetic:
        return Arithmetic("-", Number(0, at=_at(sign)), expression, at=_at(sign))

    def arithmetic(self, left: Expression, sign: Token, right: Expression) -> Arithmetic:
        op = {MINUS_SIGN: "-", TIMES_SIGN: "*"}.get(sign, str(sign))
        return Arithmetic(op, left, right, at=_at(sign))

    def days(self, token: Token) -> Days:
        digits = token[:-1].lstrip("0")[:9]  # nine digits are too many days already
        return Days(int(digits or 0) * DAY_MS, _at(token))

    def call(self, function: Token, *parts: Expression | Days) -> Expression:
        if function not in FUNCTIONS:
            sentence = f"there is no function {str(function)!r}, only {', '.join(FUNCTIONS)}"
            meant = MEANT.get(function.lower())
            known = FUNCTIONS if meant is None else ()
            hint = f"; did you mean {meant!r}?" if meant else ""
            raise Stop(_at(function), function, sentence + hint, known)
        if not parts:
            raise Stop(_at(function), function, f"{_takes(function)}; here is nothing")
        expressions = tuple(part for part in parts if not isinstance(part, Days))
        if len(expressions) < len(parts):
            return _calendar_window(function, parts)
        if function == "union":
            return Union(_streams(function, expressions), at=_at(function))
        return _aggregate(function, expressions)


LARK = Lark(
    GRAMMAR,
    parser="lalr",
    lexer="basic",
    postlex=_LineEnds(),
    transformer=_TreeBuilder(),
    maybe_placeholders=False,
)


def _at(token: Token) -> int:
    return token.start_pos or 0


def _refuse_function(token: Token) -> None:
    if token in FUNCTIONS:
        raise Stop(_at(token), token, f"{str(token)!r} is a function, and no name")


def _takes(function: str) -> str:
    """Return which arguments a function takes, in words."""
    if function == "union":
        return "union takes streams"
    window = "a stream with a length and a slide, both in milliseconds"
    return f"{function} takes {f'streams, or {window}' if function in ACROSS_OPS else window}"


def _streams(function: Token, parts: tuple[Expression, ...]) -> tuple[Expression, ...]:
    for part in parts:
        if is_constant(part):
            raise Stop(part.at, "", f"{_takes(function)}; this is a number")
    return parts


def _aggregate(function: Token, parts: tuple[Expression, ...]) -> Expression:
    """Return an aggregate across streams if all arguments are streams, otherwise of a window."""
    source, *spans = parts
    if function in ACROSS_OPS and not any(is_constant(part) for part in parts):
        return Across(str(function), parts, at=_at(function))
    takes = _takes(function)
    if is_constant(source):
        raise Stop(source.at, "", f"{takes}; this is a number")
    stream = next((part for part in spans if not is_constant(part)), None)
    if stream is not None:
        word = f'"{stream.id}"' if isinstance(stream, Sensor) else ""
        raise Stop(stream.at, word, f"{takes}; this is a stream")
    if len(spans) > 2:
        raise Stop(spans[2].at, "", f"{takes}; this is one number too many")
    if len(spans) < 2:
        missing = "the slide is" if spans else "length and slide are"
        raise Stop(_at(function), function, f"{takes}; {missing} missing")
    length_ms, slide_ms = _span("length", spans[0]), _span("slide", spans[1])
    _refuse_overlap(length_ms, slide_ms, spans[1].at)
    return Window(str(function), source, length_ms, slide_ms, at=_at(function))


def _calendar_window(function: Token, parts: tuple[Expression | Days, ...]) -> Expression:
    match parts:
        case (source, Days(length_ms, length_at), Days(slide_ms, at), Sensor(zone) as named) if (
            function != "union" and not isinstance(source, Days) and not is_constant(source)
        ):
            pass
        case _:
            first = next(part.at for part in parts if isinstance(part, Days))
            how = 'stands between a stream and a time zone: avg("S1", 7d, 1d, "Europe/Berlin")'
            raise Stop(first, "", f"a length or slide in days {how}")
    if not is_zone(zone):
        sentence = f"there is no time zone {zone!r}"
        raise Stop(named.at, f'"{zone}"', sentence, tuple(sorted(available_timezones())))
    if not 0 < min(length_ms, slide_ms) <= max(length_ms, slide_ms) <= SPAN_MAX_MS:
        sentence = f"a length or slide in days is a number from 1 to {SPAN_MAX_MS // DAY_MS:_}"
        raise Stop(at if 0 < length_ms <= SPAN_MAX_MS else length_at, "", sentence)
    _refuse_overlap(length_ms, slide_ms, at)
    return Window(str(function), source, length_ms, slide_ms, zone, at=_at(function))


def _refuse_overlap(length_ms: int, slide_ms: int, at: int) -> None:
    if length_ms > OVERLAP_MAX * slide_ms:
        raise Stop(at, "", f"a window is at most {OVERLAP_MAX:_} times as long as its slide")


def _span(what: str, expression: Expression) -> int:
    span_ms = expression.value if isinstance(expression, Number) else 0.0
    if not (1 <= span_ms <= SPAN_MAX_MS and span_ms.is_integer()):
        sentence = f"the {what} of a window is a whole number of milliseconds, 1 to {SPAN_MAX_MS:_}"
        raise Stop(expression.at, "", sentence)
    return int(span_ms)
