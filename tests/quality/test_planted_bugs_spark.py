"""At night, claims break on the traces of Spark jobs whose driver and workers have a planted bug.

A workload that shows a bug is found without Spark: by the same bug in process, or, of what only
jobs do, by the bug of the model that breaks the claim.
"""

from functools import partial

import pytest
from pyspark.sql import SparkSession

from model.join.run import run as run_chain
from model.vocabulary import Workload
from properties.forks import first_in_forks
from straggler.rooms import find_room
from tests.quality.claims import broken, shown
from tests.quality.model_bugs import MODEL
from tests.quality.operator_bugs import JOBS, ONLY_JOBS, keep
from tests.quality.test_planted_bugs import in_process, recorded


@pytest.mark.long
@pytest.mark.parametrize(
    ("room", "claim"), [(room, claim) for room, bugs in JOBS.items() for claim in bugs]
)
def test_a_bug_of_a_job_breaks_its_claim(spark: SparkSession, room: str, claim: str) -> None:
    if not str(spark.sparkContext.master).startswith("local"):
        pytest.skip("workers of a cluster are no forks of ours, and would make no mistake")
    workload = find_workload(room, claim)
    with (
        JOBS[room][claim].in_force(),
        first_in_forks(spark.sparkContext.environment, partial(keep, room, claim)),
    ):
        wrong = find_room(room).spark()(workload)
    assert claim in broken(room, workload, wrong)
    assert broken(room, workload, find_room(room).spark()(workload)) == set()


def find_workload(room: str, claim: str) -> Workload:
    """Return a workload on which the claim can break."""
    if claim not in ONLY_JOBS.get(room, {}):
        return next(shown(room, claim, in_process(room), JOBS[room][claim], recorded(room)))
    bug = MODEL[room][claim]
    if isinstance(bug, str):
        return find_room(room).explorer.variants[bug].example
    right = run_chain if room == "join" else find_room(room).reference()
    return next(shown(room, claim, right, bug))
