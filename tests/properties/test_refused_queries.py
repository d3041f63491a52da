"""A query that cannot run is refused with one sentence, before anything is written."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.vocabulary import ScriptConfig, SlackConfig, WatermarkConfig
from properties.promised import Reached, promised
from spark_impl.runtime.histories import file_of, history_schema
from spark_impl.runtime.sources import PATH
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.script import processor
from spark_impl.script.plan import compile_plan
from spark_impl.script.query import ScriptQuery
from spark_impl.script.store import ScriptStore
from spark_impl.slack.query import SLACK, SlackQuery
from spark_impl.watermark.query import WatermarkQuery
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
        if self.flaw == "since" and int(self.about) in range(0, 1 << 61, 1_000):
            return ""
        return {
            "": "",
            "no folder": "there is no folder ",
            "no column": f"has no column '{self.about}'; its columns are ",
            "wrong type": f"column '{self.about}' of .* holds .*; it must hold ",
            "taken": f"a grouping column cannot be called '{self.about}', which is ",
            "another query": "belongs to ",
            "since": f"since_us is {self.about}; it must be whole milliseconds, from 0 to ",
        }[self.flaw]


LAST_US = str((1 << 61) // 1_000 * 1_000)
FLAWS = {
    "": [""],
    "no folder": [""],
    "no column": ["key", "value", "seq", "event_time_us", "source_id", "device"],
    "wrong type": [*WRONG_TYPES, "seq", "event_time_us"],
    "taken": list(TAKEN),
    "another query": [""],
    "since": ["-1000", "0", "1", "999", "1000", "1001", "7000", LAST_US, str(1 << 61)],
}
ASKED = st.builds(
    lambda room, flaw: Asked(room if flaw[0] != "since" else "script", *flaw),
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
    options = {"since_us": int(asked.about)} if asked.flaw == "since" else {}
    before = content(folder)
    if asked.sentence:
        with pytest.raises(InputProblem, match=asked.sentence) as refused:
            query(None, config, source, store, groups, **options)
        assert "\n" not in str(refused.value)
        assert content(folder) == before
    else:
        query(None, config, source, store, groups, **options)
        assert content(folder).items() > before.items()
        query(None, config, source, store, groups, **options)


def read_file(reader: str, folder: Path) -> None:
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
        store = ScriptStore(nowhere, groups, since_us=0)
        rows = processor.pack_files(batches, store, compile_plan(SCRIPTS), since_us=0)
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
        read_file(reader, folder)
    else:
        with pytest.raises(InputProblem, match=asked.sentence) as refused:
            read_file(reader, folder)
        assert "\n" not in str(refused.value)


REFUSED = {f"{room}: {flaw}" for room in QUERIES for flaw in FLAWS if flaw != "since"}


@promised(*sorted(REFUSED), "script: since", examples=150)
@given(asked=ASKED)
def test_a_query_is_refused_before_it_writes(
    tmp_path_factory: pytest.TempPathFactory, reached: Reached, asked: Asked
) -> None:
    ask(tmp_path_factory.mktemp("query"), asked)
    reached.add({f"{asked.room}: {asked.flaw}": 1})
