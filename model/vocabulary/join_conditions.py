"""Conditions of room ``join`` as text: one grammar for Python, the command line and files.

Source: docs/join.md, section 1.

Rules of this file:

* What is written is parsed to the same predicate. Both need the kinds of the columns, because
  ``1h`` is a distance of times and ``1`` one of numbers.
* A bare column stands for the column of that name in both streams.
"""

import json
import re
from collections.abc import Mapping
from typing import NamedTuple, NoReturn, assert_never

from model.vocabulary.durations import parse_duration_us, write_duration
from model.vocabulary.iso_times import parse_time_us, write_time
from model.vocabulary.join_predicates import (
    BOOLEAN,
    BUILT_IN,
    GRAMMAR_WORDS,
    INTEGER,
    NUMBER,
    OPERATORS,
    SELECTIONS,
    STREAMS,
    TEXT,
    TIME,
    And,
    Apart,
    Band,
    Between,
    Constant,
    Equi,
    Ineq,
    Kinds,
    Predicate,
    R,
    S,
    Where,
    check_predicate,
    kind_of_column,
    parts_of,
)
from model.vocabulary.settings import nearest

ANY = "any"
"""The condition that every pair within the window meets."""
AND = " and "
NEAR, FAR = "within", "apart"
GRAMMAR = (
    "write key (the same in both), value within 2, value apart 2, value < (R's against S's),"
    " r.a = s.b, r.a within 2 of s.b, r.a apart 2 of s.b, r.a <= s.b, -1 <= s.b - r.a <= 2,"
    f' r.a > 2 or s.a = "x", several with{AND}between, or {ANY};'
    f" operators are {' '.join(OPERATORS)}"
)
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<quoted>"(?:[^"\\]|\\.)*"|'[^']*')
    |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?P<unit>[^\W\d]*)
    |(?P<name>[^\W\d]\w*)
    |(?P<sign><=|>=|!=|[<>=.-])
    |(?P<odd>\S+))""",
    re.VERBOSE,
)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!=", "=": "="}


class _Token(NamedTuple):
    kind: str
    text: str
    unit: str = ""

    @property
    def written(self) -> str:
        """The token as it stands in the condition."""
        return self.text + self.unit


class _Reference(NamedTuple):
    """A column of a stream, or of both."""

    stream: str
    column: str


# ---------------------------------------------------------------------------------------- reading


def parse_condition(text: str, r_kinds: Kinds = BUILT_IN, s_kinds: Kinds = BUILT_IN) -> Predicate:
    """Parse a condition on streams whose columns have these kinds.

    Raise ``ValueError`` with one sentence for anything else, and for a column that is not there or
    of a kind for which the condition is not.
    """
    kinds = {R: {**BUILT_IN, **r_kinds}, S: {**BUILT_IN, **s_kinds}}
    predicate = _Parser(text, kinds).condition()
    check_predicate(text, predicate, kinds[R], kinds[S])
    return predicate


class _Parser:
    """Reads a condition from left to right, one token ahead."""

    def __init__(self, text: str, kinds: Mapping[str, Kinds]) -> None:
        self.text, self.kinds = text, kinds
        self.tokens = [
            _Token(str(each.lastgroup), each[0].strip())
            if each["number"] is None
            else _Token("number", each["number"], each["unit"])
            for each in _TOKEN.finditer(text.rstrip())
        ]
        self.at = 0

    def condition(self) -> Predicate:
        """Read all of the text."""
        if self.found("name", ANY):
            predicate: Predicate = And()
        else:
            parts = [self.part()]
            while self.found("name", AND.strip()):
                parts.append(self.part())
            predicate = parts[0] if len(parts) == 1 else And(tuple(parts))
        if self.at < len(self.tokens):
            self.refuse()
        return predicate

    def part(self) -> Predicate:
        """Read one condition without ``and``."""
        if self.next.kind == "number":
            return self.between(low=self.token())
        left = self.reference()
        if self.next[:2] == ("sign", "-"):
            return self.between(difference_from=left)
        if not left.stream:
            return self.bare(left.column)
        if self.found("name", NEAR) or self.found("name", FAR):
            relation = self.tokens[self.at - 1].text
            number = self.token()
            if not self.found("name", "of"):
                self.refuse()
            column, other, _ = self.in_order(left, self.reference())
            eps = self.extent(number, column)
            return Band(column, eps, other) if relation == NEAR else Apart(column, eps, other)
        op = self.operator(SELECTIONS)
        if self.next.kind == "name" and self.next.text not in ("true", "false"):
            right = self.reference()
            if not right.stream:
                msg = (
                    f"{right.column!r} in {self.text!r} is neither r.{right.column} nor"
                    f" s.{right.column}; a text stands in quotes"
                )
                raise ValueError(msg)
            column, other, is_mirrored = self.in_order(left, right)
            op = _MIRRORED[op] if is_mirrored else op
            return Equi(column, other) if op == "=" else Ineq(column, op, other)
        return Where(left.stream, left.column, op, self.constant(left))

    def bare(self, column: str) -> Predicate:
        """Read what comes after a column that stands for both streams."""
        if self.found("name", NEAR):
            return Band(column, self.extent(self.token(), column))
        if self.found("name", FAR):
            return Apart(column, self.extent(self.token(), column))
        if self.next.text in OPERATORS:
            return Ineq(column, self.operator(OPERATORS), column)
        return Equi(column)

    def between(
        self, low: _Token | None = None, difference_from: _Reference | None = None
    ) -> Predicate:
        """Read ``low <= s.b - r.a <= high``, of which one bound may be missing."""
        if low is not None:
            self.operator(("<=",))
        minuend = difference_from or self.reference()
        if not self.found("sign", "-"):
            self.refuse()
        column, other, is_mirrored = self.in_order(self.reference(), minuend)
        high = None
        if low is None or self.next.text == "<=":
            self.operator(("<=",))
            high = self.token()
        least, most = (
            None if each is None else self.distance(each, column) for each in (low, high)
        )
        if low and high and least is not None and most is not None and least > most:
            msg = f"{low.written!r} in {self.text!r} is more than {high.written!r}"
            raise ValueError(msg)
        if is_mirrored:
            least, most = (None if each is None else -each for each in (most, least))
        return Between(column, least, most, other)

    def reference(self) -> _Reference:
        """Read ``r.column``, ``s.column`` or a bare column."""
        name = self.name()
        if name.lower() in ("r", "s") and self.found("sign", "."):
            return _Reference(name.upper(), self.name())
        return _Reference("", name)

    def in_order(self, one: _Reference, two: _Reference) -> tuple[str, str, bool]:
        """Return the column of R, that of S, and whether S came first."""
        by_stream = {one.stream: one.column, two.stream: two.column}
        if set(by_stream) != set(STREAMS):
            self.refuse()
        return by_stream[R], by_stream[S], one.stream == S

    def kind_of(self, stream: str, column: str) -> str:
        """Return the kind of a column of a stream."""
        try:
            return kind_of_column(self.kinds, stream, column)
        except ValueError as error:
            msg = f"query {self.text!r}: {error}"
            raise ValueError(msg) from None

    def distance(self, token: _Token, column: str) -> float:
        """Return a distance of values of a column of R."""
        kind = self.kind_of(R, column)
        number = token.written
        if kind == TIME:
            return parse_duration_us(number)
        if token.kind == "number" and not token.unit:
            return self.integer(token) if kind == INTEGER else float(number)
        msg = f"{number!r} in {self.text!r} is not a number"
        raise ValueError(msg)

    def extent(self, token: _Token, column: str) -> float:
        """Return a distance of values of a column of R that is not negative."""
        found = self.distance(token, column)
        if found < 0:
            msg = f"{token.written!r} in {self.text!r} is negative; a distance is at least 0"
            raise ValueError(msg)
        return found

    def constant(self, column: _Reference) -> Constant:
        """Read a constant of the column's kind."""
        kind, token = self.kind_of(*column), self.token()
        if token.kind == "quoted" and kind in (TEXT, TIME):
            try:
                is_plain = token.text.startswith("'")
                content: str = token.text[1:-1] if is_plain else json.loads(token.text)
            except ValueError:
                self.refuse()
            return content if kind == TEXT else parse_time_us(content)
        if token.kind == "name" and kind == BOOLEAN and token.text in ("true", "false"):
            return token.text == "true"
        if token.kind == "number" and kind in (NUMBER, INTEGER):
            return self.distance(token, "value") if kind == NUMBER else self.integer(token)
        what = {
            TEXT: 'a text in quotes, like "x"',
            TIME: 'a time in quotes, like "2014-03-01T00:30:00Z"',
            BOOLEAN: "true or false",
        }.get(kind, f"a plain {kind}")
        msg = f"{token.written!r} in {self.text!r} is not {what}"
        raise ValueError(msg)

    def integer(self, token: _Token) -> int:
        """Return the integer that a token stands for."""
        if token.unit or not token.text.lstrip("+-").isdecimal():
            msg = f"{token.written!r} in {self.text!r} is not an integer"
            raise ValueError(msg)
        return int(token.text)

    # ------------------------------------------------------------------------------------ tokens

    @property
    def next(self) -> _Token:
        """The token that is read next."""
        return self.tokens[self.at] if self.at < len(self.tokens) else _Token("end", "")

    def token(self) -> _Token:
        """Read any token but the end."""
        token = self.next
        if token.kind == "end":
            self.refuse()
        self.at += 1
        return token

    def found(self, kind: str, text: str) -> bool:
        """Read a certain token, if it is the next one."""
        if self.next[:2] != (kind, text):
            return False
        self.at += 1
        return True

    def name(self) -> str:
        """Read a name that is no word of the grammar."""
        if self.next.kind != "name" or self.next.text in GRAMMAR_WORDS:
            self.refuse()
        return self.token().text

    def operator(self, known: tuple[str, ...]) -> str:
        """Read an operator."""
        if self.next.kind != "sign" or self.next.text not in known:
            self.refuse()
        return self.token().text

    def refuse(self) -> NoReturn:
        """Raise ``ValueError`` for a text that is no condition."""
        columns = {**self.kinds[R], **self.kinds[S]}
        names = [each.text for each in self.tokens if each.kind == "name"]
        odd = [each for each in names if each not in (*columns, *GRAMMAR_WORDS, "r", "s")]
        msg = (
            f"{self.text!r} is not a condition: {GRAMMAR}{nearest(odd[0], columns) if odd else ''}"
        )
        raise ValueError(msg)


# ---------------------------------------------------------------------------------------- writing


def write_condition(
    predicate: Predicate, r_kinds: Kinds = BUILT_IN, s_kinds: Kinds = BUILT_IN
) -> str:
    """Return the text that :func:`parse_condition`, with the same kinds, parses to the predicate.

    An ``And`` in another one is read again as its parts, an ``And`` of one part as this part.
    Raise ``ValueError`` with one sentence for a column that is not there.
    """
    kinds = {R: {**BUILT_IN, **r_kinds}, S: {**BUILT_IN, **s_kinds}}
    return AND.join(_write_part(part, kinds) for part in parts_of(predicate)) or ANY


def _write_part(part: Predicate, kinds: Mapping[str, Kinds]) -> str:
    match part:
        case And():
            return ANY
        case Equi(column, other):
            return column if column == other else f"r.{column} = s.{other}"
        case Ineq(left, op, right):
            return f"{left} {op}" if left == right else f"r.{left} {op} s.{right}"
        case Band(column, eps, other) | Apart(column, eps, other):
            relation = NEAR if isinstance(part, Band) else FAR
            far = f"{relation} {_write(kind_of_column(kinds, R, column), eps)}"
            return f"{column} {far}" if column == other else f"r.{column} {far} of s.{other}"
        case Between(column, low, high, other):
            kind = kind_of_column(kinds, R, column)
            least = "" if low is None else f"{_write(kind, low)} <= "
            most = "" if high is None else f" <= {_write(kind, high)}"
            return f"{least}s.{other} - r.{column}{most}"
        case Where(stream, column, op, constant):
            kind = kind_of_column(kinds, stream, column)
            return f"{stream.lower()}.{column} {op} {_write_constant(kind, constant)}"
    assert_never(part)


def _write(kind: str, distance: float) -> str:
    if kind == TIME:
        return write_duration(int(distance))
    if kind == INTEGER:
        return str(distance)
    short = f"{distance:g}"
    return short if float(short) == distance else repr(float(distance))


def _write_constant(kind: str, constant: Constant) -> str:
    if kind == TIME:
        assert isinstance(constant, int)
        return f'"{write_time(constant)}"'
    if isinstance(constant, bool | str):
        return json.dumps(constant, ensure_ascii=False)
    return _write(kind, constant)
