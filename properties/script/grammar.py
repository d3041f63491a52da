"""The grammar of sensor scripts, for lark (LALR).

Rules of this file:

* A line end ends a statement, except within parentheses: there it is left out before the grammar
  sees it.
* The grammar knows calls, not functions: what a function takes is said by ``parser``, in words.
"""

import re
from collections.abc import Iterator
from typing import Any

from lark import Lark, Token, Transformer

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
     | NAME "(" [expression ("," expression)*] ")" -> call
     | "(" expression ")"

PLUS: "+"
MINUS: "-" | "\u2212"
TIMES: "*" | "\u00d7"
OVER: "/"
NAME: /[^\W\d]\w*/
TEXT: /"[^"\x00-\x1f\x7f-\x9f\u2028\u2029]*"/
NUMBER: /[0-9][0-9_\u2009\u202f]*(\.[0-9]+)?([eE][+-]?[0-9]+)?/
_END: /(;|\n)/
COMMENT: /\#[^\n]*/
SPACE: /[ \t\u00a0\u2009\u202f]+/
%ignore COMMENT
%ignore SPACE
"""

TOLD = {
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
"""How tokens are called in errors."""

MINUS_SIGN = "\u2212"
TIMES_SIGN = "\u00d7"
SEPARATORS = re.compile("[_\u2009\u202f]")
"""What may stand between the digits of a number."""


class Lines:
    """Leaves out line ends within parentheses."""

    always_accept = ("_END",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The tokens that the grammar sees."""
        opened = 0
        for token in stream:
            opened += (token.type == "LPAR") - (token.type == "RPAR" and opened > 0)
            if token.type != "_END" or token == ";" or not opened:
                yield token


def make_lark(transformer: Transformer[Token, Any]) -> Lark:
    """A parser that makes what the transformer makes, while it reads."""
    return Lark(
        GRAMMAR,
        parser="lalr",
        lexer="basic",
        postlex=Lines(),
        transformer=transformer,
        maybe_placeholders=False,
    )
