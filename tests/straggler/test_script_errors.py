"""Sensor scripts as they are written: what is wrong and where, and the usual form.

``pytest --snapshot-update`` stores places and sentences anew.
"""

import pytest
from syrupy.assertion import SnapshotAssertion

from straggler.rooms.script.formatter import formatted, unparse
from straggler.rooms.script.language import ScriptError, parse

SENSORS = ("S1", "S2", "temp")
WRONG = (
    "",
    "A",
    'A =\nB = "S1"',
    'A = "S1" "S2"',
    # Spaces stand between groups of three digits only.
    *(f'A = avg("S1", {number}, 1)' for number in ("600 00", "6000 000", "6 00_000")),
    "A = avg(8MD1, 1, 1)",
    'A = (\n  "S1"\nB = 3',
    'A = "S1',
    "A = “S1”",
    'A = "S1" ^ 2',
    'A = "S1"\x00',
    'A = ""',
    # Functions by other names.
    *(f'A = {name}("S1", 1, 1)' for name in ("agv", "mean", "median")),
    # Times with units.
    *(f'A = avg("S1", {time}, 1)' for time in ("1h", "5 min", "1_000ms", "7us")),
    'A = "S1" * 5 s',
    "A = avg()",
    'A = avg("S1", 1)',
    'A = avg("S1", 1, 1, 1)',
    'A = avg("S1", "600_000", 1)',
    'A = avg("S1", "1h", "1h")',
    'A = avg(5, "S1")',
    'A = union("S1", 2 + 3)',
    'A = avg("S1", 0, 1)',
    'A = avg("S1", 10, 2.5)',
    'A = avg("S1", 1_000_000, 1)',
    "A = 3 * 4",
    'A = "S1" / (2 - 2)',
    'A = "S1" * (1 / 0)',
    f'A = "S1" * {"9" * 400}',
    'A = "S1"\nA = "S2"',
    'temp = "S1"',
    "A = temp",
    'A = "tmep"',
    'wind = "S1"; A = wnid',
    'A = B\nB = "S1"',
    'A = max("B", 1, 1)\nB = A',
    "A = A + 1",
    'max = "S1"',
    'A = "S1" + min',
    f'A = {"-" * 101}"S1"',
    f'A = "S1"{" + 1" * 9_999}',
    f"A = sum(1{' + 1' * 9_999})",
    # A union that doubles line by line.
    "\n".join(['A0 = union("S1", "S2")', *(f"A{n + 1} = union(A{n}, A{n})" for n in range(40))]),
)


def mistakes(text: str) -> ScriptError:
    with pytest.raises(ScriptError) as caught:
        parse(text, "w", SENSORS)
    return caught.value


def test_an_error_says_where_and_what(snapshot: SnapshotAssertion) -> None:
    said = []
    for text in WRONG:
        shown = repr(text) if len(text) < 80 else f"{text[:30]!r}..."
        said += [shown, f"    {mistakes(text)}".splitlines()[0]]
    assert "\n".join(said) == snapshot


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('A = avg("S1", 600\u2009000, 300_000)', 'A=avg("S1",6e5,300000);'),
        ('A = "S1" * 12 000.5e1 - 1 000', 'A = "S1" * 120005 - 1000'),
        ('A = "S1"; B = avg("A", 1, 1)', 'A = "S1"\nB = avg(A, 1, 1)'),
        ('A = "S1" \u2212 2 \u00d7 "S2"', 'A = ("S1" - (2 * ("S2")))'),
        ('A = union( # which\n"S1",\n\n"S2")\r\r\n', 'A = union("S1", "S2")'),
        (f'A = {"(" * 9_999}"S1"{")" * 9_999}', 'A = "S1"'),
    ],
)
def test_spelling_makes_no_difference(written: str, meant: str) -> None:
    assert parse(written, "w").statements == parse(meant, "w").statements


def test_the_usual_form(snapshot: SnapshotAssertion) -> None:
    text = """\
# head
a=avg( "S1" ,600000,# length
 300000) # behind
# before b

b = -a*2;c=a-(b-1)/3 # c


# tail
long=union("sensor number 1","sensor number 2","sensor number 3","sensor number 4", "sensor no. 5")
# end"""
    assert formatted(text) == snapshot
    assert formatted(formatted(text)) == formatted(text)
    assert parse(unparse(parse(text, "w")), "w").statements == parse(text, "w").statements


def test_the_example_of_the_source_is_read_as_printed() -> None:
    printed = """\
MD1Z=avg("8MD1-AZ",600 000,300 000);
UNI=union("8MD2-A","8MD3-A");
MD23=avg("UNI",600 000,300 000);
UNIF=union("MD1Z","MD23");
out_MZ=max("UNIF",600 000,300 000);
out_AZ=avg("UNIF",600 000,300 000)
"""
    assert formatted(printed).splitlines()[0] == 'MD1Z = avg("8MD1-AZ", 600_000, 300_000)'
    spaceless = printed.replace(" ", "")
    assert parse(printed, "w").statements == parse(spaceless, "w").statements
