"""The streams that engines are judged on."""

from model.vocabulary.windows import Final
from straggler.conformance.draws import OWN_TASKS, draw_workloads
from straggler.conformance.engines import Asked
from straggler.conformance.promises import PROMISES, count_cases
from straggler.judging.references import run_model


def test_the_streams_have_the_cases_that_matter() -> None:
    for name, promise in PROMISES.items():
        workloads = draw_workloads(Asked(name, "?", {}), 20, 0)
        counts = [count_cases(each, run_model(promise.scope.room, each)) for each in workloads]
        for guard in promise.guards:
            assert sum(each[guard] for each in counts), (name, guard)


def test_the_same_seed_gives_the_same_streams() -> None:
    asked = Asked("in-time", "?", {})
    assert draw_workloads(asked, 5, 0) == draw_workloads(asked, 5, 0)
    assert draw_workloads(asked, 5, 0) != draw_workloads(asked, 5, 1)


def test_no_stream_is_drawn_twice() -> None:
    drawn = draw_workloads(Asked("in-time", "?", {}), 60, 0)
    assert len(drawn) == 60
    assert len({str(workload.with_(name="").to_json()) for workload in drawn}) == 60


def test_a_stream_is_what_the_engine_can_take() -> None:
    plain = draw_workloads(Asked("in-time", "?", {}), 8, 0)
    asked = Asked("in-time", "?", {}, False, time_factor=1_000, arrivals_max=9, batch=2)
    fitted = draw_workloads(asked, 8, 0)
    for before, after in zip(plain, fitted, strict=True):
        identities = [event.source_id for event in after.arrivals]
        assert len(identities) == len(set(identities)) <= 9
        assert after.arrivals[0].event_time_us == before.arrivals[0].event_time_us * 1_000
        assert after.config["size_us"] == before.config["size_us"] * 1_000
        assert after.cuts == tuple(range(2, len(identities), 2))
        assert after.flush


def test_every_key_can_have_a_watermark_of_its_own() -> None:
    asked = Asked("in-time", "?", {"tasks": [OWN_TASKS], "keyed": [True]})
    for workload in draw_workloads(asked, 8, 0):
        truth = run_model(PROMISES["in-time"].scope.room, workload)
        tasks = {(final.task, final.key) for final in truth.of(Final)}
        assert len({task for task, _ in tasks}) == len({key for _, key in tasks}) == len(tasks)
