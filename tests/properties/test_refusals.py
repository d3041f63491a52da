"""Refusals of queries and inputs, in one sentence and before anything is written.

Columns, streams and times that users give are taken as they are, or refused.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import GroupingConfig, JoinConfig, ScriptConfig, SlackConfig, WatermarkConfig
from model.vocabulary.join import And
from model.vocabulary.script.plan import compile_plan
from properties.promised import Reached, promised
from spark_impl.grouping.query import times_of
from spark_impl.join.given import read_select
from spark_impl.runtime.histories import file_of, history_schema
from spark_impl.runtime.sources import PATH
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.script import processor
from spark_impl.script.query import ScriptQuery
from spark_impl.script.store import ScriptStore
from spark_impl.slack import SLACK, SlackQuery
from spark_impl.watermark import WatermarkQuery
from spark_impl.windows import blocks
from spark_impl.windows.arrival_files import FileShares
from straggler.rooms.script.language import parse

SECOND_US = 1_000_000
SCRIPTS = ScriptConfig((parse('mean = avg("A", 4, 2)', "mine", ["A"]),), (("A", 3_600),))
QUERIES: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "slack": (
        SlackQuery,
        SlackConfig(4 * SECOND_US, SECOND_US),
        SlackConfig(8 * SECOND_US, SECOND_US),
    ),
    "watermark": (
        WatermarkQuery,
        WatermarkConfig(4 * SECOND_US, SECOND_US, max_wait_us=SECOND_US),
        WatermarkConfig(8 * SECOND_US, SECOND_US, max_wait_us=SECOND_US),
    ),
    "script": (ScriptQuery, SCRIPTS, replace(SCRIPTS, lateness_us=SECOND_US)),
}
"""A query of each room, its configuration and another one."""
WRONG_TYPES = {"key": pa.float64(), "value": pa.string(), "device": pa.float64()}
TAKEN = ("task_slot", "key", "Value", "BATCH", "event_time_us")
"""Names that a grouping column cannot have, because columns of the answers have them."""


class Asked(NamedTuple):
    """A query, and what is wrong with it, if anything is."""

    room: str
    flaw: str
    about: str
    """A column, or a number."""

    @property
    def sentence(self) -> str:
        """Pattern of the refusal; none if there is nothing wrong."""
        return {
            "": "",
            "no folder": "there is no folder ",
            "no column": f"has no column '{self.about}'; its columns are ",
            "wrong type": f"column '{self.about}' of .* holds .*; it must hold ",
            "taken": f"a grouping column cannot be called '{self.about}', which is ",
            "another query": "belongs to ",
        }[self.flaw]


FLAWS = {
    "": [""],
    "no folder": [""],
    "no column": ["key", "value", "seq", "event_time_us", "source_id", "device"],
    "wrong type": [*WRONG_TYPES, "seq", "event_time_us"],
    "taken": list(TAKEN),
    "another query": [""],
}
ASKED = st.builds(
    lambda room, flaw: Asked(room, *flaw),
    st.sampled_from(sorted(QUERIES)),
    st.sampled_from([(flaw, about) for flaw, every in FLAWS.items() for about in every]),
)


def write_history(folder: Path, asked: Asked) -> None:
    """Write a history of one file with a grouping column ``device``, and with the flaw."""
    schema = history_schema(pa.field("device", pa.string()))
    columns = {each.name: pa.array([0], pa.int64()).cast(each.type) for each in schema}
    if asked.flaw == "no column":
        del columns[asked.about]
    elif asked.flaw == "wrong type":
        columns[asked.about] = pa.array([0]).cast(WRONG_TYPES.get(asked.about, pa.float64()))
    folder.mkdir()
    pq.write_table(pa.table(columns), file_of(locate(folder), 0).path)


def content(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder with their bytes."""
    found = folder.rglob("*")
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in found}


def ask(folder: Path, asked: Asked) -> None:
    """Open a query with a flaw, which is refused, or one without."""
    query, config, other = QUERIES[asked.room]
    source, store = folder / "history", folder / "store"
    if asked.flaw != "no folder":
        write_history(source, asked)
    if asked.flaw == "another query":
        query(None, other, source, store, ["device"])
    groups = ["device", asked.about] if asked.flaw == "taken" else ["device"]
    before = content(folder)
    if asked.sentence:
        with pytest.raises(InputProblem, match=asked.sentence) as refused:
            query(None, config, source, store, groups)
        assert "\n" not in str(refused.value)
        assert content(folder) == before
    else:
        query(None, config, source, store, groups)
        assert content(folder).items() > before.items()
        query(None, config, source, store, groups)


def read_in_task(reader: str, folder: Path) -> None:
    """Read the file of a history as the tasks of a query do, ``reader`` says of which."""
    file, nowhere = file_of(locate(folder), 0).path, locate("nowhere")
    settings = SLACK.settings(QUERIES["slack"][1])
    if reader == "windows without grouping columns":
        FileShares(settings, nowhere).read(0, [file])
        return
    batches, groups = [pa.record_batch({PATH: [file]})], (pa.field("device", pa.string()),)
    if reader == "windows":
        rows = blocks.pack_files(batches, nowhere, groups, settings, blocks.slots(1))
    else:
        store = ScriptStore(nowhere, groups)
        rows = processor.pack_files(batches, store, compile_plan(SCRIPTS))
    list(rows)


@given(
    st.sampled_from(["windows", "windows without grouping columns", "script"]),
    ASKED.filter(lambda asked: asked.flaw in ("", "no column", "wrong type")),
)
def test_a_file_that_comes_later_is_refused_when_it_is_read(
    tmp_path_factory: pytest.TempPathFactory, reader: str, asked: Asked
) -> None:
    folder = tmp_path_factory.mktemp("query") / "history"
    write_history(folder, asked)
    is_unread = reader == "windows without grouping columns" and asked.about == "device"
    if is_unread or not asked.flaw:
        read_in_task(reader, folder)
    else:
        with pytest.raises(InputProblem, match=asked.sentence) as refused:
            read_in_task(reader, folder)
        assert "\n" not in str(refused.value)


REFUSED = {f"{room}: {flaw}" for room in QUERIES for flaw in FLAWS}


@promised(*sorted(REFUSED), examples=300)
@given(asked=ASKED)
def test_a_query_is_refused_before_it_writes(
    tmp_path_factory: pytest.TempPathFactory, reached: Reached, asked: Asked
) -> None:
    ask(tmp_path_factory.mktemp("query"), asked)
    reached.add({f"{asked.room}: {asked.flaw}": 1})


@given(text=st.text(max_size=8))
def test_a_text_is_no_list_of_columns(text: str) -> None:
    with pytest.raises(InputProblem) as refused:
        read_select(JoinConfig(1, (("own", And()),)), text)
    assert str(refused.value) == f"select is {text!r}; it must be a list of columns such as 'r.key'"


def test_a_column_is_selected_only_if_its_name_in_answers_is_free() -> None:
    config = JoinConfig(1, (("own", And()),), r_columns=(("ID", "text"),))
    assert read_select(config, ["r.ID"]) == {"r_ID": ("R", "ID", "text")}
    with pytest.raises(InputProblem, match=r"^select has 'r.ID', but pairs have a column 'r_id'"):
        read_select(config, ["r.ID"], ["r_id", "s_id"])


# ------------------------------------------------------------------------------ times of a router

WHOLE = st.sampled_from([1, 2, 7, 1 << 40, np.int64(5)])
TIMES = st.one_of(
    st.lists(WHOLE, min_size=1, max_size=4),
    st.lists(WHOLE | st.sampled_from([0, -1]), min_size=2, max_size=2),
    st.lists(WHOLE | st.sampled_from([1.5, "3", None]), max_size=4),
)


@given(st.integers(2, 3), TIMES)
def test_times_are_taken_as_they_are_or_refused(instances: int, given_times: list[Any]) -> None:
    config = GroupingConfig(instances)
    is_whole = all(isinstance(each, int | np.integer) for each in given_times)
    if is_whole and len(given_times) == instances and all(each >= 1 for each in given_times):
        assert times_of(config, given_times) == tuple(given_times)
        return
    sentence = rf"are not {instances} whole microseconds, each at least 1$"
    with pytest.raises(InputProblem, match=sentence):
        times_of(config, given_times)
