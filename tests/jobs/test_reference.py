"""Comparison of the answers of a job with what was right."""

from collections import Counter

from straggler.jobs.reference import Rules, final, fits, subsets
from straggler.jobs.rows import Row, text_of
from straggler.jobs.running import MicroBatch, Run

ONE, TWO, FAR = ("a", "1"), ("b", "2"), ("z", "9")


def test_answers_lie_between_the_rows_in_time_and_those_with_the_far_future() -> None:
    low, high = Counter([ONE, TWO]), Counter([ONE, TWO, FAR])
    assert fits(low, Counter([ONE, TWO]), high)
    assert fits(low, Counter([ONE, TWO, FAR]), high)
    assert not fits(low, Counter([ONE]), high)
    assert not fits(low, Counter([ONE, TWO, TWO]), high)
    assert not fits(low, Counter([ONE, TWO, ("c", "3")]), high)


def test_the_last_answer_of_a_key_counts_in_update_mode() -> None:
    batches = [MicroBatch(0, 0, [("a", "1"), TWO]), MicroBatch(1, 1, [("a", "5")])]
    run = Run(batches, columns=("key", "sum"))
    assert final(run, Rules("update", ("key",))) == Counter([("a", "5"), TWO])
    assert final(run, Rules("append")) == Counter([("a", "1"), TWO, ("a", "5")])
    assert final(run, Rules("complete")) == Counter([("a", "5")])
    assert final(run, Rules("complete"), 0) == Counter([("a", "1"), TWO])


def test_late_rows_are_left_out_first_and_kept_all_second() -> None:
    rows = [Row(0, n, ()) for n in range(3)]
    chosen = list(subsets(rows))
    assert chosen[:2] == [(), tuple(rows)]
    assert len(chosen) == len(set(chosen)) == 8


def test_equal_values_have_equal_texts() -> None:
    assert text_of(float("nan")) == text_of(-float("nan")) == "NaN"
    assert text_of(-0.0) == text_of(0.0) == "0"
    assert text_of(0.1 + 0.2) == text_of(0.3)
    assert text_of(0.25) != text_of(0.250001)
    assert text_of({"b": 1, "a": None}) == "{a: null, b: 1}"
