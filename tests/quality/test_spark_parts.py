"""Bugs planted in parts of the Spark side are caught by the properties of these parts."""

from collections.abc import Callable

import pytest

from properties.agreement import Agreement
from properties.promised import Reached
from properties.test_slack import FROM_VALUES
from spark_impl.grouping import instances
from spark_impl.join import messages
from spark_impl.slack.retained_values import RetainedValues
from straggler.strategies.examples import collect
from straggler.strategies.streams import workloads
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


def test_values_that_a_wrong_guess_leaves_behind_are_noticed(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(RetainedValues, "undo_to", lambda _self, _mark: None)
    slack = Agreement.of("slack", Reached())

    def compare() -> None:
        for case in collect(FROM_VALUES.flatmap(workloads), 30, seed):
            slack.of_steps(case, slack.room.reference()(case))

    with pytest.raises(CAUGHT):
        compare()
