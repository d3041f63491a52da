"""Promise 3 of docs/script.md: a script is read as it is written, or refused at its mistake."""

from hypothesis import given
from hypothesis import strategies as st
from lark import Token

from model.vocabulary.script.problems import problems
from properties.promised import Reached, promised
from straggler.rooms.script.formatter import unparse
from straggler.rooms.script.language import LARK, ScriptError, parse
from straggler.strategies.script import SENSORS, workflows

WORDS = ["avg", "union", "A", "zz", '"8MD1-AZ"', '"zz"', "1", "0", "1e999", "600_000", "(", ")"]
SIGNS = ["=", ",", ";", "\n", "+", "-", "*", "/", "#", '"', "@", "\x00", "“", "\t", " ", "\\", "é"]
SCRIPTS = workflows("w").map(unparse)


def refused(text: str) -> ScriptError | None:
    """Return the error of a script, checked to point into it; ``None`` for a valid script."""
    try:
        flow = parse(text, "w", SENSORS)
    except ScriptError as error:
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for fault in error.mistakes:
            assert 1 <= fault.line <= len(lines)
            assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1
            head, excerpt, mark = fault.lines("w.script")
            assert head.startswith(f"w.script:{fault.line}:{fault.column}: ")
            assert "\n" not in head + excerpt
            assert {*mark.strip()} == {"^"}
            wrong = fault.excerpt[fault.before :][: fault.width]
            if len(wrong) == fault.width and wrong.isascii() and wrong.isprintable():
                assert len(mark.strip()) == fault.width  # a letter has up to two columns
            assert 4 + fault.before + fault.width <= max(len(excerpt), 4 + fault.before + 1)
        return error
    assert not list(problems(flow, SENSORS))
    return None


@st.composite
def damaged(draw: st.DrawFn) -> tuple[str, int]:
    """Draw a script with one token removed, added or replaced, and the place of its statement."""
    text = draw(SCRIPTS)
    tokens: list[Token] = list(LARK.lex(text))
    token = draw(st.sampled_from(tokens))
    start, end = token.start_pos or 0, token.end_pos or 0
    other = draw(st.sampled_from(tokens))
    put = {"delete": "", "insert": f" {draw(st.sampled_from(WORDS + SIGNS))} {token}"}
    put["exchange"] = f" {other} "
    put["replace"] = draw(st.sampled_from(WORDS + SIGNS))
    changed = text[:start] + put[draw(st.sampled_from(sorted(put)))] + text[end:]
    before = [each for each in tokens if each.type == "_END" and (each.end_pos or 0) <= start]
    return changed, (before[-1].end_pos or 0) if before else 0


@promised("refused", "still valid", examples=60)
@given(case=damaged())
def test_a_damaged_script_is_refused_where_the_damage_is(
    reached: Reached, case: tuple[str, int]
) -> None:
    text, statement = case
    error = refused(text)
    reached.add({"still valid" if error is None else "refused": 1})
    if error is not None:
        # What comes before has not changed, and was right.
        line = text.count("\n", 0, statement) + 1
        assert min(fault.line for fault in error.mistakes) >= line
    else:
        # Whatever it says now, it can be written again.
        flow = parse(text, "w", SENSORS)
        assert parse(unparse(flow), "w", SENSORS) == flow


@given(
    text=st.lists(st.sampled_from(WORDS + SIGNS), max_size=30).map("".join) | st.text(max_size=60)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    refused(text)
