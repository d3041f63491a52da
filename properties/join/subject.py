"""Chains whose driver is killed: each goes on with another number of workers at every start."""

from model.vocabulary import Workload
from properties.join.driver import prepare
from properties.join.long_streams import long_case
from tests.harness.background_kills import Subject

BATCHES = 5


def workload_of(number: int, seed: int) -> Workload:
    """Without queries of some epochs: what an epoch is depends on when the driver is killed."""
    case = long_case(3, seed + number, BATCHES)
    return case.with_(config={**case.config, "epochs": []}, name=f"chain-{number}")


SUBJECT = Subject("properties.join.driver", prepare, workload_of, kills_a_query=3)
