"""Durations as users write them."""

import pytest

from model.vocabulary.durations import parse_duration_us
from straggler.inputs.durations import write_duration


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("5us", 5),
        ("500ms", 500_000),
        ("1.5s", 1_500_000),
        ("6h", 21_600_000_000),
        (" 2 D ", 172_800_000_000),
        ("-1s", -1_000_000),
        ("10 seconds", 10_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("INTERVAL 1 week", 604_800_000_000),
    ],
)
def test_durations_are_read(text: str, us: int) -> None:
    assert parse_duration_us(text) == us


@pytest.mark.parametrize(
    "text", ["", "5", "s", "5 parsecs", "1e3s", "five s", "1 month", "1 hour 5", "interval"]
)
def test_an_invalid_duration_is_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration") as refused:
        parse_duration_us(text)
    assert repr(text) in str(refused.value)
    with pytest.raises(ValueError, match=r"'0\.5us' is not a whole number of microseconds"):
        parse_duration_us("0.5us")


@pytest.mark.parametrize("text", ["0s", "1us", "1500ms", "5s", "5min", "6h", "1d"])
def test_durations_are_written_as_they_are_read(text: str) -> None:
    assert write_duration(parse_duration_us(text)) == text
