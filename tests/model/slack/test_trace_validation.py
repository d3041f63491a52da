"""Validation of recorded tasks accepts the model and names the first departure."""

from hypothesis import given

from model.checking.claims import Outcome
from model.slack import run
from model.vocabulary import SlackConfig, Trace, Workload
from model.vocabulary.windows import Late, Result
from tests.model.slack.strategies import stream_of, workloads
from tests.model.slack.trace_validation import validate_task

STREAM = Workload(
    "slack",
    stream_of((20, 1.0), (12, 4.0), (60, 8.0)),
    {"size_us": 10, "slide_us": 5, "control": "max"},
    cuts=(1, 2),
)


@given(workloads())
def test_a_trace_of_the_model_is_a_behaviour_of_the_model(workload: Workload) -> None:
    trace = run(workload)
    tasks = SlackConfig.from_json(workload.config).tasks
    outcomes = {validate_task(workload, trace, task).outcome for task in range(tasks)}
    assert outcomes <= {Outcome.HOLDS, Outcome.UNDETERMINED}


def test_the_first_batch_that_departs_from_the_model_is_named() -> None:
    trace = run(STREAM)
    gone = trace.of(Late)[0]
    observed = Trace("observed", [step for step in trace.steps() if step != gone])
    verdict = validate_task(STREAM, observed, 0)
    assert verdict.outcome is Outcome.BROKEN
    assert verdict.sentence == "Step 1 is not allowed: batch 1 of task 0."
    assert verdict.witness == (
        "Not recorded: late task 0, start_us 5, key 'a', source_id 1, event_time_us 12, batch 1.",
    )


def test_a_wrong_value_is_shown_beside_the_right_one() -> None:
    trace = run(STREAM)
    steps = [s._replace(value=9.0) if isinstance(s, Result) else s for s in trace.steps()]
    verdict = validate_task(STREAM, Trace("observed", steps), 0, words=(Result,))
    assert verdict.sentence == "Step 2 is not allowed: batch 2 of task 0."
    assert [line.split(":")[0] for line in verdict.witness] == ["Not recorded"] * 2 + [
        "Not allowed"
    ] * 2
