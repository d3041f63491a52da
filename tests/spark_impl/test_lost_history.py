"""A history that has lost rows: corrections never replace right answers by wrong ones."""

from pathlib import Path

import pytest

from spark_impl.runtime.histories import files_of, history_schema, write_parquet
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.slack.query import SLACK
from spark_impl.windows.store import open_store
from tests.spark_impl.test_failures import CONFIG, Tables, finish, stream_part, visible
from tests.spark_impl.test_query import history

Batch = list[tuple[int, float]]
LOST = "has lost rows: it holds {} for the window .* of task 0, key 'a'$"


def run(
    folder: Path, *batches: Batch, redelivered: tuple[int, ...] = ()
) -> tuple[Path, list[Tables]]:
    """Return a history and its stream tables; the last file redelivers an earlier one."""
    source = history(folder / "h", *batches)
    for number in redelivered:
        history(source, batches[number], source_id=number)
    return source, stream_part(source, open_store(folder / "scratch", SLACK, CONFIG, ()))


@pytest.mark.parametrize(
    ("batches", "lost", "fails_at", "holds"),
    [
        # the first answer and its late tuple
        ([[(3, 1.0), (20, 2.0)], [(4, 4.0)]], 0, 2, "1 of at least 2 deliveries"),
        # a late tuple itself
        ([[(3, 1.0), (20, 2.0)], [(4, 4.0)]], 1, 2, "1 of at least 2 deliveries"),
        ([[(20, 2.0)], [(4, 4.0)]], 1, 2, "0 of at least 1 tuples"),
        # what an earlier correction has found, and as many tuples again
        (
            [[(3, 1.0), (26, 2.0)], [(4, 4.0), (9, 1.0)], [(5, 4.0), (1, 4.0)]],
            1,
            2,
            "2 of at least 3 deliveries",
        ),
    ],
)
def test_correction_notices_that_the_rows_of_a_file_are_gone(
    tmp_path: Path, batches: list[Batch], lost: int, fails_at: int, holds: str
) -> None:
    source, found = run(tmp_path, *batches)
    place = open_store(tmp_path / "s", SLACK, CONFIG, ())
    for batch in range(fails_at):
        finish(place, source, batch, found[batch])
    before = visible(place)
    file = files_of(locate(source))[lost]
    whole = file.read_bytes()
    write_parquet(history_schema().empty_table(), file)
    with pytest.raises(InputProblem, match=LOST.format(holds)):
        finish(place, source, fails_at, found[fails_at])
    assert place.committed() == fails_at - 1
    assert visible(place) == before
    file.write_bytes(whole)
    for batch in range(fails_at, len(found)):
        finish(place, source, batch, found[batch])
    revisions = place.read_all("revision").sort_by("revision").to_pylist()
    windows = {row["start_us"]: row["n"] for row in revisions}
    assert windows[0] == sum(0 <= ts < 10 for rows in batches for ts, _ in rows)


def test_forgotten_redelivery_is_no_loss(tmp_path: Path) -> None:
    """A tuple in the first answer is late once more: two deliveries, one tuple."""
    source, found = run(tmp_path, [(3, 1.0)], [(60, 2.0)], redelivered=(0,))
    place = open_store(tmp_path / "s", SLACK, CONFIG, ())
    for batch, tables in enumerate(found):
        finish(place, source, batch, tables)
    assert found[2]["late"].num_rows == 1
    revisions = place.read_all("revision").to_pylist()
    assert [(row["start_us"], row["n"], row["value"]) for row in revisions] == [
        (-5, 1, 1.0),
        (0, 1, 1.0),
    ]
