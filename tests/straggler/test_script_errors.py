"""Error messages for wrong scripts, and the places that they point to."""

import pytest

from straggler.rooms.script.formatter import formatted, unparse
from straggler.rooms.script.language import ScriptError, parse

SENSORS = ("S1", "S2", "temp")
WINDOW = "a stream with a length and a slide, both in milliseconds"
TAKES = f"takes streams, or {WINDOW}"

WRONG = {
    "": (1, 1, "there is no statement in it"),
    "# nothing": (1, 1, "there is no statement in it"),
    "A": (1, 2, "the statement ends here; expected '='"),
    'A =\nB = "S1"': (
        1,
        4,
        "the statement ends here; expected a name, a sensor in quotes, a number or '('",
    ),
    'A = "S1" "S2"': (
        1,
        10,
        "'\"S2\"' cannot stand here; expected an operator or the end of the statement",
    ),
    **{
        f'A = avg("S1", {first}{gap}{second}, 1)': (
            1,
            15 + len(first) + len(gap),
            f"{second.split()[0]!r} cannot stand here; expected an operator, ')' or ',';"
            " a space may stand only between groups of three digits, as in 600 000",
        )
        for first, gap, second in (
            ("600", " ", "00"),
            ("600", " ", "0000"),
            ("6000", " ", "000"),
            ("600", "  ", "000"),
            ("600", "\t", "000"),
            ("6", " ", "00_000"),
            ("600 000", " ", "00"),
        )
    },
    "A = avg(8MD1, 1, 1)": (
        1,
        10,
        "'MD1' cannot stand here; expected an operator, ')' or ','; sensors are written in quotes",
    ),
    'A = (\n  "S1"\nB = 3': (
        3,
        1,
        "'B' cannot stand here; expected an operator or ')'; the '(' in line 1, column 5 is open",
    ),
    'A = "S1': (1, 5, "this quote is not closed, or there is a control character in it"),
    "A = “S1”": (1, 5, 'quotes are straight and double, as in "S1"'),
    'A = "S1" ^ 2': (1, 10, "the character '^' means nothing here"),
    'A = "S1"\x00': (1, 9, "the character U+0000 means nothing here"),
    'A = ""': (1, 5, "there is nothing between the quotes"),
    'A = agv("S1", 1, 1)': (
        1,
        5,
        "there is no function 'agv', only union, max, min, avg, sum, count, stddev;"
        " did you mean 'avg'?",
    ),
    **{
        f'A = {written}("S1", 1, 1)': (
            1,
            5,
            f"there is no function {written!r}, only union, max, min, avg, sum, count, stddev;"
            f" did you mean {meant!r}?",
        )
        for written, meant in {
            "mean": "avg",
            "Average": "avg",
            "AVG": "avg",
            "std": "stddev",
            "minimum": "min",
            "maximum": "max",
            "total": "sum",
        }.items()
    },
    'A = median("S1", 1, 1)': (
        1,
        5,
        "there is no function 'median', only union, max, min, avg, sum, count, stddev",
    ),
    **{
        f'A = avg("S1", {number}{unit}, 1)': (
            1,
            15 + len(number) + len(unit) - len(unit.lstrip()),
            f"{unit.strip()!r} cannot stand here; expected an operator, ')' or ',';"
            f" times are in milliseconds{hint}",
        )
        for number, unit, hint in (
            ("1", "h", ": 1h is 3_600_000"),
            ("5", " min", ": 5min is 300_000"),
            ("10", "s", ": 10s is 10_000"),
            ("0.5", "S", ": 0.5S is 500"),
            ("1_000", "ms", ": 1_000ms is 1_000"),
            ("7", "us", ", and whole"),
            ("1e99", "d", ", and whole"),
        )
    },
    'A = "S1" * 5 s': (
        1,
        14,
        "'s' cannot stand here; expected an operator or the end of the statement;"
        " sensors are written in quotes",
    ),
    "A = avg()": (1, 5, f"avg {TAKES}; here is nothing"),
    'A = avg("S1", 1)': (1, 5, f"avg {TAKES}; the slide is missing"),
    'A = count("S1")': (1, 5, f"count takes {WINDOW}; length and slide are missing"),
    'A = avg("S1", 1, 1, 1)': (1, 21, f"avg {TAKES}; this is one number too many"),
    'A = avg("S1", 1, "S2")': (1, 18, f"avg {TAKES}; this is a stream"),
    **{
        f"A = {written}": (
            1,
            column,
            f"{told}; a length or a slide has no quotes{hint}",
        )
        for written, column, told, hint in (
            (
                'count("S1", "1h", "5min")',
                17,
                f"count takes {WINDOW}; this is a stream",
                " and is in milliseconds: 1h is 3_600_000",
            ),
            (
                'avg("S1", 600_000, "1 h")',
                24,
                f"avg {TAKES}; this is a stream",
                " and is in milliseconds: 1h is 3_600_000",
            ),
            (
                'avg("S1", "600_000", 1)',
                15,
                f"avg {TAKES}; this is a stream",
                ": 600_000",
            ),
            (
                'avg("S1", "1h", "1h")',
                15,
                "there is no sensor and no earlier name '1h'",
                " and is in milliseconds: 1h is 3_600_000",
            ),
        )
    },
    'A = avg("S1", 1, "S1 5")': (1, 18, f"avg {TAKES}; this is a stream"),
    'A = avg(5, "S1")': (1, 9, f"avg {TAKES}; this is a number"),
    'A = union("S1", 2 + 3)': (1, 19, "union takes streams; this is a number"),
    'A = avg("S1", 0, 1)': (
        1,
        15,
        "the length of a window is a whole number of milliseconds, 1 to 1_000_000_000_000",
    ),
    'A = avg("S1", 10, 2.5)': (
        1,
        19,
        "the slide of a window is a whole number of milliseconds, 1 to 1_000_000_000_000",
    ),
    'A = avg("S1", 1_000_000, 1)': (
        1,
        26,
        "a window is at most 10_000 times as long as its slide",
    ),
    "A = 3 * 4": (1, 7, "there is no stream in it, only numbers"),
    'A = "S1" / (2 - 2)': (1, 10, "this divides by zero, always"),
    'A = "S1" * (1 / 0)': (1, 15, "this cannot be computed: it is not finite"),
    f'A = "S1" * {"9" * 400}': (1, 12, "this number is too large"),
    'A = "S1"\nA = "S2"': (2, 1, "'A' is defined a second time"),
    'temp = "S1"': (1, 1, "'temp' is the name of a sensor, which would be out of reach"),
    "A = temp": (1, 5, 'sensors are written in quotes: "temp"'),
    'A = "tmep"': (1, 5, "there is no sensor and no earlier name 'tmep'; did you mean 'temp'?"),
    'wind = "S1"; A = wnid': (1, 18, "there is no earlier name 'wnid'; did you mean 'wind'?"),
    'A = B\nB = "S1"': (1, 5, "'B' is defined later, and has to come before this"),
    'A = max("B", 1, 1)\nB = A': (
        1,
        9,
        "'B' is defined later, and needs this one: that is a cycle",
    ),
    "A = A + 1": (1, 5, "'A' is needed for itself: that is a cycle"),
    'max = "S1"': (1, 1, "'max' is a function, and no name"),
    'A = "S1" + min': (1, 12, "'min' is a function, and no name"),
    f'A = {"-" * 101}"S1"': (
        1,
        104,
        "an expression is at most 100 deep: give a part of it a name",
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_an_error_says_where_and_what(text: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(text, "w", SENSORS)
    first = caught.value.mistakes[0]
    assert (first.line, first.column, first.sentence) == WRONG[text]
    assert str(caught.value) == f"line {first.line}, column {first.column}: {first.sentence}"


def test_at_most_twenty_mistakes_of_a_script_are_reported() -> None:
    with pytest.raises(ScriptError) as caught:
        parse("A = B + C\nD = E", "w")
    assert [(each.line, each.column) for each in caught.value.mistakes] == [(1, 5), (1, 9), (2, 5)]
    with pytest.raises(ScriptError) as caught:
        parse("\n".join(f"A{n} = B{n}" for n in range(99)), "w")
    assert len(caught.value.mistakes) == 20


def test_a_union_that_doubles_line_by_line_is_refused() -> None:
    lines = ['A0 = union("S1", "S2")', *(f"A{n} = union(A{n - 1}, A{n - 1})" for n in range(1, 40))]
    assert len(parse("\n".join(lines[:16]), "w").statements) == 16
    with pytest.raises(ScriptError) as caught:
        parse("\n".join(lines), "w")
    first = caught.value.mistakes[0]
    sentence = "a union has at most 100_000 parts, those of unions in it included"
    assert (first.line, first.column, first.sentence) == (17, 7, sentence)


def test_the_line_is_shown_with_a_mark_below() -> None:
    with pytest.raises(ScriptError) as caught:
        parse('A = "S1"\r\n\tB = agv(A, 1, 1)  # why', "w")
    assert caught.value.mistakes[0].lines("x.script")[1:] == [
        "    \tB = agv(A, 1, 1)  # why",
        "    \t    ^^^",
    ]


def test_the_mark_stands_below_letters_that_are_wide_or_have_no_width() -> None:
    with pytest.raises(ScriptError) as caught:
        parse('A = union("温度", "e\u0301") + 湿度', "w")
    fault = caught.value.mistakes[0]
    assert (fault.line, fault.column) == (1, 25)
    assert fault.lines("x.script")[2] == "    " + " " * 25 + "^" * 4


def test_of_a_long_line_the_part_around_the_error_is_shown() -> None:
    text = "A = " + " + ".join(['"S1"'] * 90) + " + @"
    with pytest.raises(ScriptError) as caught:
        parse(text, "w")
    _, excerpt, mark = caught.value.mistakes[0].lines("x.script")
    assert excerpt.endswith('"S1" + @')
    assert excerpt[mark.index("^")] == "@"
    assert len(excerpt) <= 104


# ---------------------------------------------------------------------------------- correct scripts


def same(left: str, right: str) -> bool:
    return parse(left, "w").statements == parse(right, "w").statements


def test_spelling_makes_no_difference() -> None:
    assert same('A = avg("S1", 600\u2009000, 300_000)', 'A=avg("S1",6e5,300000);')
    assert same('A = avg("S1", 1 600 000, 300\u00a0000)', 'A=avg("S1",1600000,300000)')
    assert same('A = "S1" * 12 000.5e1 - 1 000', 'A = "S1" * 120005 - 1000')
    assert same('A = "S1"; B = avg("A", 1, 1)', 'A = "S1"\nB = avg(A, 1, 1)')
    assert same('A = "S1" \u2212 2 \u00d7 "S2"', 'A = ("S1" - (2 * ("S2")))')
    assert same('A = union( # which\n"S1",\n\n"S2")\r\r\n', 'A = union("S1", "S2")')
    assert same('A = -"S1" * 2', 'A = (0 - "S1") * 2')
    assert not same('A = "S1" - (1 - 2)', 'A = "S1" - 1 - 2')


def test_the_example_of_the_source_is_read_as_printed() -> None:
    printed = """\
MD1Z=avg("8MD1-AZ",600 000,300 000);
UNI=union("8MD2-A","8MD3-A");
MD23=avg("UNI",600 000,300 000);
MD4Z=avg("8MD4-AZ",600 000,300 000);
UNIF=union("MD1Z","MD23","MD4Z");
out_MZ=max("UNIF",600 000,300 000);
out_AZ=avg("UNIF",600 000,300 000)
"""
    assert same(printed, printed.replace(" ", ""))
    first, *_ = formatted(printed).splitlines()
    assert first == 'MD1Z = avg("8MD1-AZ", 600_000, 300_000)'
    assert formatted(formatted(printed)) == formatted(printed)


def test_a_time_with_a_unit_and_spaces_is_explained() -> None:
    with pytest.raises(ScriptError, match="600 000s is 600_000_000"):
        parse('A = avg("S1", 600 000s, 1)', "w")


def test_many_statements_are_read_and_nesting_does_not_matter() -> None:
    text = "\n".join(f'A{n} = avg("S{n % 100}", 600000, 300000)' for n in range(10_000))
    assert len(parse(text, "w").statements) == 10_000
    assert same(f'A = {"(" * 9_999}"S1"{")" * 9_999}', 'A = "S1"')
    with pytest.raises(ScriptError, match="at most 100 deep"):
        parse('A = "S1"' + " + 1" * 9_999, "w")
    with pytest.raises(ScriptError, match="this is a number"):
        parse(f"A = sum(1{' + 1' * 9_999})", "w")


def test_the_usual_form() -> None:
    text = """\
# head
a=avg( "S1" ,600000,# length
 300000) # behind
# before b

b = -a*2;c=a-(b-1)/3 # c


# tail
long=union("sensor number 1","sensor number 2","sensor number 3","sensor number 4", "sensor no. 5")
# end"""
    assert (
        formatted(text)
        == """\
# head
# length
a = avg("S1", 600_000, 300_000)  # behind
# before b

b = -a * 2
c = a - (b - 1) / 3  # c

# tail
long = union(
    "sensor number 1",
    "sensor number 2",
    "sensor number 3",
    "sensor number 4",
    "sensor no. 5"
)
# end
"""
    )
    assert unparse(parse(text, "w")).count("\n") == 10
