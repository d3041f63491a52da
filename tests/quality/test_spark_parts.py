"""Bugs planted in parts of the Spark side are caught by the properties of these parts."""

from collections.abc import Callable

import pytest

from spark_impl.grouping import instances
from spark_impl.join import messages
from tests.properties.grouping import test_kept_states
from tests.properties.join import test_messages
from tests.quality.mistakes import Mistake

CAUGHT = (AssertionError, ExceptionGroup, pytest.fail.Exception)


@pytest.mark.parametrize(
    ("mistake", "notice"),
    [
        (
            Mistake(messages._decode_blocks, "or ends[-1]", "and ends[-1]"),
            test_messages.test_blocks_whose_sizes_do_not_add_up_are_refused,
        ),
        (
            Mistake(messages.Frames.feed, "len(rest) < end", "len(rest) <= end"),
            test_messages.test_messages_arrive_as_they_were_sent,
        ),
    ],
    ids=["sizes that do not add up", "a frame waits for the next one"],
)
def test_a_wrong_message_is_noticed(
    monkeypatch: pytest.MonkeyPatch, mistake: Mistake, notice: Callable[[], None]
) -> None:
    mistake.plant(monkeypatch)
    with pytest.raises(CAUGHT):
        notice()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("Worked(0, 0, state)", "Worked(1, 0, state)"), ("Worked(0, 0, state)", "Worked(0, 0)")],
)
def test_a_wrong_note_of_a_micro_batch_without_work_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    right: str,
    wrong: str,
) -> None:
    Mistake(instances.finish_work, right, wrong).plant(monkeypatch)
    with pytest.raises(CAUGHT):
        test_kept_states.test_a_state_survives_micro_batches_without_work(tmp_path_factory)
