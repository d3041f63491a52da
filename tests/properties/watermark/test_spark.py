"""Promise 4 of docs/watermark.md: Spark = model, on packs of generated cases.

``properties/test_watermark.py`` does the same in process. Drivers that are killed, of both rooms
that answer windows, are with the tests of the pipeline.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import pytest
from pyspark.sql import SparkSession

from model.vocabulary import Event, Fault, WatermarkConfig, Workload
from model.vocabulary.windows import Late
from properties import profiles, stream_packs
from properties.stream_packs import StreamPack
from straggler.inputs import inputs
from straggler.inputs.tables import Recording, cuts_into
from straggler.rooms import find_room
from straggler.rooms.windows.queries import BATCHES

WATERMARK = find_room("watermark")
SHAPES = (("disorder", "sum", True), ("scaled", "median", False))
"""Reading, aggregate and whether late pairs are corrected for, of one pack after the other."""
SECOND_US = 1_000_000


# ----------------------------------------------------------------------------------------- packs


FAULTS = (Fault("restart", 0), Fault("kill", 1))


def draw_pack(number: int, seed: int, size: int) -> StreamPack:
    reading, aggregate, corrections = SHAPES[number]
    config = WatermarkConfig(9_000, 4_000, 9_000, reading=reading, k=5, tasks=2, gamma_us=9_000)
    config = replace(config, aggregate=aggregate, corrections=corrections)
    chosen = stream_packs.draw_pack(config, size, seed + number)
    return chosen._replace(cases={n: w.with_(flush=True) for n, w in chosen.cases.items()})


def test_pack_with_corrections_equals_model_whatever_restarts_and_replays(
    spark: SparkSession, seed: int
) -> None:
    chosen = draw_pack(0, seed, profiles.effort().cases)
    batches = max(len(list(case.batches())) for case in chosen.cases.values())
    assert batches > 2, "the faults would come after the end"
    crashed = {name: case.with_(faults=FAULTS) for name, case in chosen.cases.items()}
    traces = stream_packs.run_in_spark(spark, crashed)
    broken = stream_packs.list_failing(WATERMARK, crashed, traces)
    assert not broken, stream_packs.report(WATERMARK, chosen._replace(cases=crashed), broken)
    guards = Counter[str]()
    for name, case in crashed.items():
        guards.update(WATERMARK.check(case, traces[name]).guards)
    for guard in ("calm arrivals", "stormy arrivals", "early answers", "late pairs", "corrections"):
        assert guards[guard], f"there were no {guard}"


def test_pack_with_operators_upstream_equals_model_whatever_restarts_and_kills(
    spark: SparkSession, seed: int
) -> None:
    config = WatermarkConfig(9_000, 4_000, 9_000, k=5, tasks=2, upstreams=2, insert_every_us=500)
    config = replace(config, idle_after_us=6_000)
    chosen = stream_packs.draw_pack(config, profiles.effort().cases, seed)
    cases = {n: w.with_(flush=True, faults=FAULTS) for n, w in chosen.cases.items()}
    assert max(len(list(case.batches())) for case in cases.values()) > 2
    traces = stream_packs.run_in_spark(spark, cases)
    broken = stream_packs.list_failing(WATERMARK, cases, traces)
    assert not broken, stream_packs.report(WATERMARK, chosen._replace(cases=cases), broken)
    guards = Counter[str]()
    for name, case in cases.items():
        guards.update(WATERMARK.check(case, traces[name]).guards)
    for guard in ("passings", "insertions", "late pairs"):
        assert guards[guard], f"there were no {guard}"


@profiles.except_in_dev()
def test_pack_with_a_side_output_equals_model(spark: SparkSession, seed: int) -> None:
    chosen = draw_pack(1, seed, profiles.effort().cases)
    traces = stream_packs.run_in_spark(spark, chosen.cases)
    broken = stream_packs.list_failing(WATERMARK, chosen.cases, traces)
    assert not broken, stream_packs.report(WATERMARK, chosen, broken)
    assert any(trace.of(Late) for trace in traces.values()), "nothing was late"


# --------------------------------------------------------------------------------------- devices


DEVICES = WatermarkConfig(5 * SECOND_US, 5 * SECOND_US, 5 * SECOND_US)


def by_device(recording: Recording) -> dict[str, Workload]:
    """Return one query per device with its arrivals, cut where the whole stream is cut."""
    whole = recording.events
    found = {}
    for device in sorted({event.key for event in whole}):
        own = [position for position, event in enumerate(whole) if event.key == device]
        ends = [bisect_left(own, cut) for cut in cuts_into(len(whole), BATCHES)]
        events = tuple(whole[position] for position in own)
        found[device] = Workload("watermark", events, DEVICES.to_json(), tuple(ends), name=device)
    return found


def behind(events: Sequence[Event]) -> int:
    """Count the tuples whose event time lies behind that of an earlier one."""
    largest = accumulate((event.event_time_us for event in events), max)
    return sum(event.event_time_us < most for event, most in zip(events, largest, strict=True))


@profiles.except_in_dev()
def test_every_device_in_spark_has_a_watermark_of_its_own(spark: SparkSession, seed: int) -> None:
    """The name of a case is a grouping column, so the query sees every device alone."""
    devices = by_device(inputs.umts(seed))
    traces = stream_packs.run_in_spark(spark, devices)
    assert not stream_packs.list_failing(WATERMARK, devices, traces)
    assert len(devices) > 1


@pytest.mark.parametrize("name", ["umts", "iot_umts"])
def test_disorder_is_between_devices(name: str, seed: int) -> None:
    if name not in inputs.NAMED and name not in inputs.recordings_by_name():
        pytest.skip(inputs.missing_recording(name))
    recording = inputs.load(name, seed)
    devices = by_device(recording)
    size = len(recording.events)
    assert 0.16 < behind(recording.events) / size < 0.34
    assert sum(behind(case.arrivals) for case in devices.values()) < size / 1_000
    late = sum(len(WATERMARK.in_process(case).of(Late)) for case in devices.values())
    together = Workload("watermark", recording.events, DEVICES.to_json(), name=name)
    assert late < len(WATERMARK.in_process(together).of(Late)) / 3
