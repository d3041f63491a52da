"""Damaged stores: a query gives right answers or one sentence, and half-writes nothing.

``tests/straggler/test_fuzzing.py`` does the same with the files that commands read.
"""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from model.vocabulary import GroupingConfig
from properties import profiles
from spark_impl.grouping.store import open_store as open_stream
from spark_impl.runtime.queries import read_table, require_identity
from spark_impl.runtime.storage import InputProblem, locate
from spark_impl.runtime.stores import Draft
from spark_impl.runtime.tables import TableWriter
from spark_impl.slack import SlackQuery
from spark_impl.slack.query import SLACK
from spark_impl.windows.store import load_store
from tests.golden.__main__ import FOLDER, PRESENT
from tests.golden.archive import unpack
from tests.harness.damaged_stores import KINDS, Damage, apply_damage, damages, go_on
from tests.soak.oracles import ORACLES
from tests.spark_impl.test_query import FIRST, FIXED, history

CASES = 8
"""Number of damaged stores; each is a query on Spark."""


@pytest.mark.long
@pytest.mark.fails_tasks
@pytest.mark.timeout(1_800)
@settings(max_examples=profiles.choose(CASES, nightly=40 * CASES), phases=[Phase.generate])
@given(damage=st.sampled_from(sorted(ORACLES)).flatmap(damages))
def test_a_damaged_store_gives_right_answers_or_a_sentence(
    spark: SparkSession, damage: Damage
) -> None:
    with tempfile.TemporaryDirectory(prefix="straggler-damaged-") as folder:
        taken = go_on(spark, damage, Path(folder))
    assert not taken.wrong, (damage, taken)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff"])
def test_a_state_of_a_stream_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    store = open_stream(locate(tmp_path), GroupingConfig(2))
    writer = TableWriter(store.root)
    draft = Draft(store, writer.view, 0)
    for kind in ("sender", "standing"):
        row = {"number": 0, "content": content}
        draft.write(kind, pa.Table.from_pylist([row], store.schema(kind)), "x")
    draft.commit(writer)
    file = store.states(writer.view, "sender", 0)[0]
    for read in (lambda: store.standing(writer.view, 0), lambda: store.load_sender(file)):
        with pytest.raises(InputProblem, match=r"-x\.parquet does not hold what was"):
            read()


@pytest.mark.parametrize("content", [b"", b"v1\n{}", b"[]", b"{}", b'{"id": 3}', b"\xff"])
def test_a_checkpoint_without_the_id_of_its_query_is_named(content: bytes, tmp_path: Path) -> None:
    checkpoint = locate(tmp_path / "checkpoint")
    require_identity(checkpoint)
    (checkpoint / "metadata").write_bytes(b'{"id": "c1f2"}')
    require_identity(checkpoint)
    (checkpoint / "metadata").write_bytes(content)
    (checkpoint / "offsets" / "0").write_bytes(b"v1")
    with pytest.raises(InputProblem, match="metadata does not hold the id of a query"):
        require_identity(checkpoint)
    (checkpoint / "metadata").remove()
    with pytest.raises(InputProblem, match="metadata does not hold the id of a query"):
        require_identity(checkpoint)


@pytest.mark.parametrize("named", ["{}-copy", "{} (1)", "copy-{}"])
def test_copies_beside_the_files_of_a_store_are_not_read(
    spark: SparkSession, tmp_path: Path, named: str
) -> None:
    SlackQuery(spark, FIXED, history(tmp_path / "h", FIRST), tmp_path / "s").run_available()
    _, store, view = load_store(tmp_path / "s", SLACK)
    before = read_table(spark, store, view, "result").count()
    for path in [*(tmp_path / "s").rglob("*.parquet")]:
        shutil.copy(path, path.with_name(f"{named.format(path.stem)}{path.suffix}"))
    assert store.read_all("result").num_rows == before > 0
    assert read_table(spark, store, view, "result").count() == before


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_damage_changes_a_store(kind: str, tmp_path: Path) -> None:
    unpack(FOLDER / PRESENT / "store-join.zip", tmp_path)
    store = tmp_path / "disk" / "store"
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    apply_damage(Damage("join", kind, 0.4, 0.7), store)
    after = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    changed = Counter(before.get(path) != after.get(path) for path in before | after)
    assert changed[True] == (2 if kind == "swap" else 1)
