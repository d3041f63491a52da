"""What is wrong with a script, as its author sees it: where, what, and what instead."""

import re
from collections.abc import Collection
from decimal import Decimal
from typing import NamedTuple

from lark import Token, UnexpectedToken
from rich.cells import cell_len

from model.vocabulary.script import MILLISECOND_US, SPAN_MAX_MS, Problem
from model.vocabulary.settings import nearest
from properties.data.durations import UNITS_US
from properties.script.grammar import SEPARATORS, TOLD

LINE_MAX = 100
"""Characters of a line that are shown beside an error."""
WRITTEN = re.compile(r"\d[\d_\u2009\u202f]*(\.\d+)?([eE][+-]?\d{1,3})?$", re.ASCII)
"""A number that was just read."""
QUOTED = re.compile(r'"([\d_]*\d(?:\.\d+)?) ?([a-z]*)"$', re.ASCII | re.IGNORECASE)
"""What may be a time that stands in quotes."""
OPEN = re.compile(r"""#[^\n]*|"[^"\n]*"|[();]""")


class Fault(NamedTuple):
    """One error of a script."""

    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    sentence: str
    """Without a full stop."""
    excerpt: str
    """The line, or what of it is around the error."""
    before: int
    """Characters of the excerpt before the error."""
    width: int
    """Characters that are wrong, at least 1."""

    def told(self, name: str) -> list[str]:
        """As lines for a terminal; ``name`` is that of the script."""
        before, wrong = self.excerpt[: self.before], self.excerpt[self.before :][: self.width]
        # A tab is as wide below as above; some letters are as wide as two others.
        indent = "".join("\t" if each == "\t" else " " * cell_len(each) for each in before)
        mark = "^" * max(1, cell_len(wrong))
        head = f"{name}:{self.line}:{self.column}: {self.sentence}"
        return [head, f"    {self.excerpt}", f"    {indent}{mark}"]


class Stop(Exception):  # noqa: N818 - what stops is no error yet
    """What ends the reading."""

    def __init__(self, at: int, word: str, sentence: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.problem = Problem(at, word, sentence, known)


def fault(text: str, problem: Problem) -> Fault:
    """A problem as it shows in the text."""
    at = min(problem.at, len(text))
    start = text.rfind("\n", 0, at) + 1
    whole = text[start:].split("\n", 1)[0]
    before = at - start
    first = max(0, before - LINE_MAX // 2) if len(whole) > LINE_MAX else 0
    excerpt = whole[first : first + LINE_MAX]
    width = max(1, min(len(problem.word), len(excerpt) - (before - first)))
    hint = nearest(problem.word.strip('"'), problem.known) or _quoted_time(problem.word)
    sentence = problem.sentence + hint
    line = text.count("\n", 0, at) + 1
    return Fault(line, before + 1, sentence, _printable(excerpt), before - first, width)


def _printable(line: str) -> str:
    return "".join(each if each.isprintable() or each == "\t" else "\ufffd" for each in line)


def unexpected(text: str, error: UnexpectedToken) -> Stop:
    """A token where none, or another one, should be."""
    token: Token = error.token
    at = len(text.rstrip()) if token.type == "$END" else token.start_pos or 0
    is_end = token.type in ("$END", "_END")
    found = "the statement ends here" if is_end else f"{str(token)!r} cannot stand here"
    accepts = error.accepts or ()
    # Where an operand has to come, the one operator that may is a sign.
    operators = () if "PLUS" in accepts else ("MINUS",)
    told = _listed([TOLD[kind] for kind in TOLD if kind in accepts and kind not in operators])
    hint = _hint(text, token, accepts) or _open(text, at)
    word = "" if is_end else str(token)
    return Stop(at, word, f"{found}; expected {told}{hint}")


def _listed(names: list[str]) -> str:
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} or {last}" if most else last


def _hint(text: str, token: Token, accepts: Collection[str]) -> str:
    before = text[: token.start_pos].rstrip(" \t")
    if "PLUS" in accepts and before[-1:].isdigit():
        if token.type == "NUMBER":
            return "; between the digits of a number _ may stand, but no space"
        if token.type == "NAME" and "COMMA" in accepts and token.lower() in UNITS_US:
            found = WRITTEN.search(before)
            assert found is not None
            return f"; times are in milliseconds{_in_milliseconds(found.group(), token)}"
        if token.type == "NAME":
            return "; sensors are written in quotes"
    return ""


def _in_milliseconds(number: str, unit: str) -> str:
    """A time with a unit, as it has to be written."""
    ms = Decimal(SEPARATORS.sub("", number)) * UNITS_US[unit.lower()] / MILLISECOND_US
    is_whole = 1 <= ms <= SPAN_MAX_MS and ms == int(ms)
    return f": {number}{unit} is {int(ms):_}" if is_whole else ", and whole"


def _quoted_time(word: str) -> str:
    """A hint, where a sensor is not one and may be meant as a length or a slide."""
    found = QUOTED.match(word)
    if not found:
        return ""
    number, unit = found.groups()
    if not unit:
        return f"; a length or a slide has no quotes: {number}"
    if unit.lower() not in UNITS_US:
        return ""
    told = _in_milliseconds(number, unit)
    return f"; a length or a slide has no quotes and is in milliseconds{told}"


def _open(text: str, at: int) -> str:
    """Where the innermost parenthesis is that is still open."""
    opened: list[int] = []
    for found in OPEN.finditer(text, 0, at):
        if found.group() == "(":
            opened.append(found.start())
        elif found.group() == ")" and opened:
            opened.pop()
        elif found.group() == ";":
            opened.clear()
    if not opened:
        return ""
    place = opened[-1]
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    return f"; the '(' in line {line}, column {column} is open"


def meaningless(text: str, at: int) -> Stop:
    """A character that begins nothing."""
    character = text[at]
    if character == '"':
        line = text[at:].split("\n", 1)[0]
        return Stop(at, line, "this quote is not closed, or there is a control character in it")
    if character in "\u201c\u201d\u201e\u2018\u2019'":
        return Stop(at, character, 'quotes are straight and double, as in "S1"')
    name = repr(character) if character.isprintable() else f"U+{ord(character):04X}"
    return Stop(at, character, f"the character {name} means nothing here")
