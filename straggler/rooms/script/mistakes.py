"""Mistakes of a script as its author sees them: place, reason, and what to write instead."""

import re
from collections.abc import Collection
from decimal import Decimal
from typing import NamedTuple

from lark import Token, UnexpectedToken
from rich.cells import cell_len

from model.vocabulary.durations import UNITS_US
from model.vocabulary.script.config import MILLISECOND_US
from model.vocabulary.script.problems import Problem
from model.vocabulary.script.tree import SPAN_MAX_MS
from model.vocabulary.settings import nearest

TOKEN_NAMES = {
    "PLUS": "an operator",
    "MINUS": "an operator",
    "TIMES": "an operator",
    "OVER": "an operator",
    "NAME": "a name",
    "TEXT": "a sensor in quotes",
    "NUMBER": "a number",
    "_END": "the end of the statement",
    "$END": "the end of the statement",
    "EQUAL": "'='",
    "LPAR": "'('",
    "RPAR": "')'",
    "COMMA": "','",
}
"""Names of the grammar's tokens in error messages."""
SEPARATORS = re.compile("[_ \u00a0\u2009\u202f]")
"""Characters that may stand between the digits of a number."""
KNOWN_MAX = 10
"""Most sensors that are listed for one that is missing."""
LINE_MAX = 100
"""Most characters of a line that are shown with a mistake."""
WRITTEN = re.compile(
    r"(\d{1,3}([ \u00a0]\d{3})+|\d[\d_\u2009\u202f]*)(\.\d+)?([eE][+-]?\d{1,3})?$", re.ASCII
)
"""A number at the end of a text."""
QUOTED = re.compile(r'"([\d_]*\d(?:\.\d+)?) ?([a-z]*)"$', re.ASCII | re.IGNORECASE)
"""A quoted text that may be meant as a time."""
OPEN = re.compile(r"""#[^\n]*|"[^"\n]*"|[();]""")


class ScriptMistake(NamedTuple):
    """One mistake of a script."""

    line: int
    """Line number, from 1."""
    column: int
    """Character in the line, from 1."""
    sentence: str
    """Reason, without a full stop."""
    excerpt: str
    """The line, or the part of it around the mistake."""
    before: int
    """Number of characters of the excerpt before the mistake."""
    width: int
    """Number of wrong characters, at least 1."""

    def lines(self, name: str) -> list[str]:
        """Return lines for a terminal; ``name`` is that of the script."""
        before, wrong = self.excerpt[: self.before], self.excerpt[self.before :][: self.width]
        # Tabs stay tabs; some letters are two columns wide.
        indent = "".join("\t" if each == "\t" else " " * cell_len(each) for each in before)
        mark = "^" * max(1, cell_len(wrong))
        head = f"{name}:{self.line}:{self.column}: {self.sentence}"
        return [head, f"    {self.excerpt}", f"    {indent}{mark}"]


class Stop(Exception):  # noqa: N818 - becomes a ScriptError once its place in the text is known
    """The first mistake in the spelling, which ends the parsing."""

    def __init__(self, at: int, word: str, sentence: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.problem = Problem(at, word, sentence, known)


def locate(text: str, problem: Problem) -> ScriptMistake:
    """Return a problem with its place in the text."""
    at = min(problem.at, len(text))
    start = text.rfind("\n", 0, at) + 1
    whole = text[start:].split("\n", 1)[0]
    before = at - start
    first = max(0, before - LINE_MAX // 2) if len(whole) > LINE_MAX else 0
    excerpt = whole[first : first + LINE_MAX]
    width = max(1, min(len(problem.word), len(excerpt) - (before - first)))
    word = problem.word
    hint = nearest(word.strip('"'), problem.known) or _quoted_time(word) or _known(problem)
    sentence = problem.sentence + hint
    line = text.count("\n", 0, at) + 1
    return ScriptMistake(line, before + 1, sentence, _printable(excerpt), before - first, width)


def _known(problem: Problem) -> str:
    """Return which sensors and names there are, if one that is not there was named."""
    if not problem.sentence.startswith("there is no sensor") or not problem.known:
        return ""
    more = len(problem.known) - KNOWN_MAX
    return f"; there are {', '.join(problem.known[:KNOWN_MAX])}{f' and {more:,} more' * (more > 0)}"


def _printable(line: str) -> str:
    return "".join(each if each.isprintable() or each == "\t" else "\ufffd" for each in line)


def unexpected(text: str, error: UnexpectedToken) -> Stop:
    """Return the mistake of a token in the wrong place."""
    token: Token = error.token
    at = len(text.rstrip()) if token.type == "$END" else token.start_pos or 0
    is_end = token.type in ("$END", "_END")
    found = "the statement ends here" if is_end else f"{str(token)!r} cannot stand here"
    accepts = error.accepts or ()
    # Before an operand the only possible operator is a sign.
    operators = () if "PLUS" in accepts else ("MINUS",)
    kinds = [kind for kind in TOKEN_NAMES if kind in accepts and kind not in operators]
    expected = _list([TOKEN_NAMES[kind] for kind in kinds])
    hint = _hint(text, token, accepts) or _open(text, at)
    word = "" if is_end else str(token)
    return Stop(at, word, f"{found}; expected {expected}{hint}")


def _list(names: list[str]) -> str:
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} or {last}" if most else last


def _hint(text: str, token: Token, accepts: Collection[str]) -> str:
    before = text[: token.start_pos].rstrip(" \t")
    if "PLUS" in accepts and before[-1:].isdigit():
        if token.type == "NUMBER":
            return "; a space may stand only between groups of three digits, as in 600 000"
        if token.type == "NAME" and "COMMA" in accepts and token.lower() in UNITS_US:
            found = WRITTEN.search(before)
            assert found is not None
            return f"; times are in milliseconds{_in_milliseconds(found.group(), token)}"
        if token.type == "NAME":
            return "; sensors are written in quotes"
    return ""


def _in_milliseconds(number: str, unit: str) -> str:
    """Return how a time with a unit has to be written."""
    ms = Decimal(SEPARATORS.sub("", number)) * UNITS_US[unit.lower()] / MILLISECOND_US
    is_whole = 1 <= ms <= SPAN_MAX_MS and ms == int(ms)
    return f": {number}{unit} is {int(ms):_}" if is_whole else ", and whole"


def _quoted_time(word: str) -> str:
    """Return a hint if an unknown sensor may be meant as a length or a slide."""
    found = QUOTED.match(word)
    if not found:
        return ""
    number, unit = found.groups()
    if not unit:
        return f"; a length or a slide has no quotes: {number}"
    if unit.lower() not in UNITS_US:
        return ""
    written = _in_milliseconds(number, unit)
    return f"; a length or a slide has no quotes and is in milliseconds{written}"


def _open(text: str, at: int) -> str:
    """Return a hint on the innermost parenthesis that is still open."""
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
    """Return the mistake of a character that begins no token."""
    character = text[at]
    if character == '"':
        line = text[at:].split("\n", 1)[0]
        return Stop(at, line, "this quote is not closed, or there is a control character in it")
    if character in "\u201c\u201d\u201e\u2018\u2019'":
        return Stop(at, character, 'quotes are straight and double, as in "S1"')
    name = repr(character) if character.isprintable() else f"U+{ord(character):04X}"
    return Stop(at, character, f"the character {name} means nothing here")
