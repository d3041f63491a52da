from typing import NamedTuple

import pytest

from model.checking.diff import compare
from model.vocabulary import Trace


class Sale(NamedTuple):
    """A step with an identity of two fields."""

    shop: int
    item: str
    day: int
    price: float


class Closed(NamedTuple):
    """A step that is nothing but its identity."""

    shop: int


IDENTITY = {"sale": ("shop", "item")}
WORDS = (Sale, Closed)
SALES = (Sale(1, "a", 1, 2.5), Sale(1, "b", 1, 3.0), Sale(2, "a", 2, 4.0))
LEFT = Trace("left", (*SALES, Closed(3)))


def right(*sales: Sale) -> Trace:
    return Trace("right", (*sales, Closed(3)))


def test_equal_traces_have_no_difference() -> None:
    difference = compare(LEFT, right(*reversed(SALES)), WORDS, identity=IDENTITY)
    assert (difference.compared, difference.mismatches, difference.sentences) == (4, 0, ())


def test_missing_extra_and_different_steps_are_counted_and_described() -> None:
    observed = right(SALES[0], Sale(2, "a", 3, 4.5), Sale(9, "z", 1, 1.0))
    difference = compare(LEFT, observed, WORDS, identity=IDENTITY)
    sales, closed = difference.kinds
    assert (sales.compared, sales.missing, sales.extra, sales.different) == (2, 1, 1, 1)
    assert closed.mismatches == 0
    assert difference.sentences == (
        "sale shop 1, item 'b' is missing (day 1, price 3.0).",
        "sale shop 2, item 'a': day is 3, expected 2; price is 4.5, expected 4.0.",
        "sale shop 9, item 'z' was not expected (day 1, price 1.0).",
    )


def test_a_kind_without_identity_is_there_or_not() -> None:
    difference = compare(LEFT, Trace("right", SALES), WORDS, identity=IDENTITY)
    assert difference.sentences == ("closed shop 3 is missing.",)


def test_only_the_kinds_asked_for_are_compared() -> None:
    assert compare(LEFT, Trace("right", ()), (Closed,), identity=IDENTITY).mismatches == 1


def test_fields_that_are_left_out_take_part_in_nothing() -> None:
    observed = right(*(sale._replace(day=9) for sale in SALES))
    assert compare(LEFT, observed, WORDS, identity=IDENTITY).mismatches == 3
    assert compare(LEFT, observed, WORDS, identity=IDENTITY, ignore=("day",)).mismatches == 0


def test_without_a_field_steps_that_differ_in_nothing_else_are_one() -> None:
    twice = right(*SALES, SALES[0]._replace(day=7))
    assert compare(LEFT, twice, WORDS, identity=IDENTITY).kinds[0].extra == 1
    assert compare(LEFT, twice, WORDS, identity=IDENTITY, ignore=("day",)).mismatches == 0


def test_a_step_that_is_recorded_twice_counts_twice() -> None:
    twice = right(*SALES, SALES[0])
    for ignore in ((), ("day",)):
        assert compare(LEFT, twice, WORDS, identity=IDENTITY, ignore=ignore).kinds[0].extra == 1


def test_steps_of_one_identity_are_paired_in_order() -> None:
    second = Sale(1, "a", 2, 9.0)
    difference = compare(right(SALES[0], second), right(second), (Sale,), identity=IDENTITY)
    assert (difference.kinds[0].compared, difference.kinds[0].missing) == (1, 1)


def test_floats_may_be_close_where_the_caller_says_so() -> None:
    observed = right(SALES[0]._replace(price=2.5 * (1 + 1e-12)), *SALES[1:])
    assert compare(LEFT, observed, WORDS, identity=IDENTITY).mismatches == 1
    assert compare(LEFT, observed, WORDS, identity=IDENTITY, rel_tol=1e-9).mismatches == 0
    days = right(SALES[0]._replace(day=2), *SALES[1:])
    assert compare(LEFT, days, WORDS, identity=IDENTITY, rel_tol=1.0).mismatches == 1


def test_differences_of_cancelling_numbers_are_compared_by_the_numbers_magnitude() -> None:
    left, observed = (right(SALES[0]._replace(price=price)) for price in (0.1 + 0.2 - 0.3, 0.0))
    for rel_tol, scales, mismatches in (
        (1e-9, {}, 1),
        (None, {"price": 0.3}, 1),
        (1e-9, {"price": 0.3}, 0),
        (1e-9, {"day": 0.3}, 1),
        (1e-17, {"price": 0.3}, 1),
    ):
        found = compare(left, observed, (Sale,), identity=IDENTITY, rel_tol=rel_tol, scales=scales)
        assert found.mismatches == mismatches, (rel_tol, scales)


def test_all_differences_are_counted_and_the_first_ones_shown() -> None:
    many = Trace("left", [Sale(shop, "a", 1, 1.0) for shop in range(50)])
    difference = compare(many, Trace("right", ()), (Sale,), identity=IDENTITY, shown=2)
    assert difference.mismatches == 50
    assert [sentence[:11] for sentence in difference.sentences] == ["sale shop 0", "sale shop 1"]


def test_an_identity_of_unknown_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="sale has no field 'town'; it has shop, item"):
        compare(LEFT, LEFT, WORDS, identity={"sale": ("town",)})
