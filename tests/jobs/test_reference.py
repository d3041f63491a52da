"""Comparison of the answers of a job with what was right."""

from collections import Counter
from collections.abc import Sequence

from straggler.jobs.reference import (
    Answers,
    Reference,
    final,
    fits,
    guards_of,
    subsets,
)
from straggler.jobs.rows import Answer, Row, text_of
from straggler.jobs.running import MicroBatch, Run
from straggler.jobs.shapes import Shape
from straggler.jobs.streams import Stream, Times

ONE: Answer = ("a", "1")
TWO: Answer = ("b", "2")
FAR: Answer = ("z", "9")
TIMES = Times((5,), ())


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
    assert final(run, Shape(TIMES, "update", ("key",))) == Counter([("a", "5"), TWO])
    assert final(run, Shape(TIMES)) == Counter([("a", "1"), TWO, ("a", "5")])
    assert final(run, Shape(TIMES, "complete")) == Counter([("a", "5")])
    assert final(run, Shape(TIMES, "complete"), 0) == Counter([("a", "1"), TWO])


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
    assert text_of({"b": 1, "a": None}) == "{'a': null, 'b': 1}"


def test_other_values_have_other_texts() -> None:
    texts = [None, "null", "'null'", repr("'null'"), "", "a"]
    assert len({text_of(each) for each in texts}) == len(texts)
    lists = [["a, b"], ["a", "b"], ["a', 'b"], [None], ["null"], [], [""]]
    assert len({text_of(each) for each in lists}) == len(lists)


class Answering(Reference):
    """A reference whose answers are the windows of 10 that slide by 5 and their numbers of rows."""

    def __init__(self) -> None:
        self.is_batch, self.shape = True, Shape(TIMES, divides=True)

    def answers(self, rows: Sequence[Row]) -> Answers:
        found = Counter(start for row in rows for start in starts(row))
        return Counter({(str(start), str(n)): 1 for start, n in found.items()})


def starts(row: Row) -> tuple[int, int]:
    last = row.time_us // 5 * 5
    return last - 5, last


def test_a_late_row_may_count_in_one_of_its_windows_and_not_in_the_other() -> None:
    stream = Stream(((Row(0, 22, ()),), (Row(0, 12, ()),)))
    in_time: list[Answer] = [("15", "1"), ("20", "1")]
    for more, is_right in ((("10", "1"), True), (("5", "1"), True), (("0", "1"), False)):
        run = Run([MicroBatch(0, 0, [*in_time, more])])
        assert Answering().is_right_in_parts(run, stream, ()) is is_right
    lost = Run([MicroBatch(0, 0, in_time[:1])])
    assert not Answering().is_right_in_parts(lost, stream, ())


def test_a_row_behind_a_filter_is_late_only_if_the_querys_own_watermark_has_reached_it() -> None:
    stream = Stream(((Row(0, 100, ()),), (Row(0, 50, ()),), (Row(0, 40, ()),)))
    run = Run([MicroBatch(0, 0, [], 0), MicroBatch(1, 1, [], 45), MicroBatch(2, 2, [], 45)])
    assert guards_of(stream, run, {1, 2})["late"] == 2
    assert guards_of(stream, run, {1, 2}, is_filtered=True)["late"] == 1
    unmoved = Run([MicroBatch(n, n, [], 0) for n in range(3)])
    for of, number in ((run, 2), (unmoved, 0)):
        assert guards_of(stream, of, (), is_filtered=True)["almost late"] == number
