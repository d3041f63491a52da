"""Strategies of cells of a user's table: texts, numbers and times of every kind that matters."""

from datetime import date
from decimal import Decimal

from hypothesis import strategies as st

ZONES = ("", "Z", "+00", "+02:00", "-0530", "+23:59", "+24:00", " UTC", "z")
_DATES = st.one_of(
    st.dates(date(1, 1, 1), date(9999, 12, 31)).map(date.isoformat),
    st.sampled_from(["2024-02-29", "2023-02-29", "1900-02-29", "2024-13-01", "2024-06-31"]),
    st.sampled_from(["0000-01-01", "2024-W18-3", "2024-123", "24-05-01", "2024-5-1", "now", ""]),
)
_CLOCKS = st.sampled_from(
    ["", "T00:00", " 23:59:59", "T12:30:15.5", "T12:30:15,25", "T24:00", " 12:60", "T02:30:60"]
) | st.builds(
    "T{:02}:{:02}:{:02}.{}".format,
    *map(st.integers, (0,) * 3, (23, 59, 59)),
    st.text("0123456789", min_size=1, max_size=9),
)
BLANKS = st.sampled_from(["", "", "", " ", "\t", "  "])


def _joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map("".join)


TEXT_TIMES = _joined(BLANKS, _DATES, _CLOCKS, st.sampled_from(ZONES), BLANKS)
STAMPS = st.datetimes()  # wall clocks of all years
WHOLE = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-100, 100),
    st.integers(1, 4 * 10**9),
    st.builds(lambda power, step: 2**power + step, st.integers(50, 62), st.integers(-3, 3)),
    st.integers(0, 4 * 10**9).map(lambda s: s * 1_000),
    st.integers(0, 4 * 10**9).map(lambda s: s * 1_000_000),
)
DECIMALS = st.decimals(
    min_value=Decimal(-(10**25)), max_value=Decimal(10**25), places=9, allow_nan=False
)
LARGE = st.builds(lambda power, step: 2**power + step, st.integers(52, 70), st.integers(-9, 9))
WITH_EXPONENTS = st.builds(
    lambda number, sign, places, form: form.format(Decimal(sign * number).scaleb(places), -places),
    LARGE,
    st.sampled_from([1, -1]),
    st.integers(-20, 3),
    st.sampled_from(["{:f}e{}", "{:f}E{:+}", "{:.16e}", "{:.25e}", "{:.30f}"]),
)
"""Numbers about 2^53 and beyond, written with and without an exponent and their last digits."""
PLAIN_TEXTS = st.one_of(
    WITH_EXPONENTS,
    WHOLE.map(str),
    DECIMALS.map(lambda number: f"{number:f}"),
    st.floats().map(repr),
    st.from_regex(r"[+-]?[0-9]{0,20}\.?[0-9]{0,12}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["NaN", "-inf", "Infinity", "1e999", "0x1p3", "1f", "1_000", "1,5", "abc", ""]),
)
TEXT_NUMBERS = _joined(BLANKS, PLAIN_TEXTS, BLANKS)
IDENTITIES = st.one_of(
    st.uuids().map(str),
    WHOLE.map(str),
    st.sampled_from(["007", "-0", "+1", " 1", "", "ä", str(2**63)]),
)
