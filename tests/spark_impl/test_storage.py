"""Locations: their addresses, and the same checks of files on every kind of file system."""

import errno
import os
import pickle
import re
from pathlib import Path

import pytest
from pyarrow import fs

from spark_impl.runtime.storage import InputProblem, Location, NameTaken, locate
from spark_impl.slack import SlackQuery
from tests.spark_impl.test_slack_query import FIRST, FIXED, history


@pytest.mark.parametrize(
    "address",
    [
        "/",
        "/data/x",
        "/data/a b/?#*[c]",
        "s3://bucket",
        "s3://bucket/x",
        "s3://bucket/x/a b#c?region=us-east-1&scheme=http",
        "hdfs://host:8020/x",
        "hdfs:///x?user=me",
    ],
)
def test_an_address_survives_a_round_trip(address: str) -> None:
    location = locate(address)
    assert str(location) == address
    assert locate(location) == pickle.loads(pickle.dumps(location)) == location
    inside = location / "part-1.json"
    assert locate(str(inside)) == inside
    assert (inside.parent, inside.name, inside.stem) == (location, "part-1.json", "part-1")
    assert location.is_local == address.startswith("/")


@pytest.mark.parametrize(
    "address",
    [
        "gs://bucket/x",
        "s3:///x",
        "file://host/x",
        "http://host/x",
        "hdfs:/x",
        "dbfs:/x",
        Path("s3a://bucket/x"),
    ],
)
def test_other_file_systems_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str | Path
) -> None:
    monkeypatch.chdir(tmp_path)
    source = history(tmp_path / "h", FIRST)
    before = sorted(tmp_path.rglob("*"))
    sentence = f"^{address} is not on a supported file system; supported are local paths, s3:// and"
    for given in ((source, address), (address, tmp_path / "s")):
        with pytest.raises(InputProblem, match=sentence):
            SlackQuery(None, FIXED, *given)  # type: ignore[arg-type]  # no session is needed
    assert sorted(tmp_path.rglob("*")) == before


def test_file_is_written_read_and_replaced(place: Location) -> None:
    file = place / "deep" / "a b%20" / "x.json"
    for content in (b"one", b"", b"three"):
        file.write_bytes(content)
        assert file.read_bytes() == content
        assert file.parent.children() == [file], "there is a scratch file"
        assert (file.info().type, file.info().size) == (fs.FileType.File, len(content))
    assert file.exists()
    assert not file.is_folder()
    assert file.parent.is_folder()


@pytest.mark.parametrize("links", [None, errno.EPERM, errno.ENOTSUP])
def test_a_file_that_must_be_new_replaces_no_other(
    place: Location, monkeypatch: pytest.MonkeyPatch, links: int | None
) -> None:
    if links is not None:  # some file systems have no hard links

        def refuse(*_: object) -> None:
            raise OSError(links, os.strerror(links))

        monkeypatch.setattr(os, "link", refuse)
    first, second, scratch = place / "x" / "1", place / "x" / "2", place / "scratch"
    first.write_bytes(b"one", is_new=True)
    scratch.write_bytes(b"two")
    scratch.publish(second)
    assert not scratch.exists()
    for file in (first, second):
        sentence = f"^{re.escape(str(file))} is there already: another process has written it"
        with pytest.raises(NameTaken, match=sentence):
            file.write_bytes(b"three", is_new=True)
        scratch.write_bytes(b"four")
        with pytest.raises(NameTaken, match=sentence):
            scratch.publish(file)
    assert (first.read_bytes(), second.read_bytes()) == (b"one", b"two")
    assert (place / "x").children() == [first, second], "there is a scratch file"


def test_a_missing_folder_is_empty(place: Location) -> None:
    nowhere = place / "nowhere"
    assert nowhere.entries() == nowhere.entries(is_deep=True) == nowhere.children() == []
    assert not nowhere.exists()
    assert not nowhere.is_folder()
    nowhere.remove()
    with pytest.raises(FileNotFoundError):
        nowhere.read_bytes()


def test_entries_are_chosen_by_name_and_sorted(place: Location) -> None:
    names = ["b.json", "a.json", ".a.json", "a.txt", "c/d.json", "c/e/f.json", "[x].json"]
    for name in names:
        (place / name).write_bytes(b"1")
    assert place.children(r".*\.json") == [place / each for each in (".a.json", "[x].json")] + [
        place / each for each in ("a.json", "b.json")
    ]
    assert place.children(r"[^._].*\.json") == [
        place / each for each in ("[x].json", *names[1::-1])
    ]
    deep = [entry.path for entry in place.entries(r".\.json", is_deep=True)]
    assert deep == [(place / each).path for each in ("a.json", "b.json", *names[4:6])]
    assert (place / "c").is_folder()


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(InputProblem, match=r"^/.*/x cannot be written: File exists$"):
        (locate(tmp_path) / "x" / "y").write_bytes(b"1")
    with pytest.raises(InputProblem, match=r"^/.*/x cannot be read: Not a directory$"):
        (locate(tmp_path) / "x").children()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_missing_bucket_cannot_be_written(bucket: Location) -> None:
    other = Location("other/x", bucket.system.replace("&allow_bucket_creation=true", ""))
    with pytest.raises(InputProblem, match=r"^s3://other.* cannot be written: .*does not exist.*$"):
        (other / "y").write_bytes(b"1")
    assert not other.exists()
