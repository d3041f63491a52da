from collections.abc import Callable

import pytest
import sim.disorder
import sim.distributions
import sim.network
import sim.plan

from sim.kernel.disorder import Gap
from sim.kernel.distributions import Constant, Exponential
from sim.kernel.faults import Clog, Duplicate, Lose, Pause, Slow
from sim.kernel.link import Noise, Place, Tier, Tiers
from sim.kernel.plan import EPOCH_2020_US, Plan, replay
from sim.kernel.source import Recording, Row, Source
from sim.kernel.station import Worker

ROW = Row(EPOCH_2020_US, EPOCH_2020_US + 5, "a", 1.0)


def test_plans_are_values_that_print_as_python() -> None:
    def build() -> Plan:
        return Plan(
            (Source(3, place=Place(1)), Recording((ROW,), worker=0)),
            workers=(Worker(Exponential(5.0)),),
            disturbances=(Gap(1, 2),),
            faults=(
                Slow("worker-0", 1, 2, 3.0),
                Clog("source-0", 1, 2),
                Duplicate("source-1", 0, 1),
            ),
        )

    assert build() == build()
    assert hash(build()) == hash(build())
    names = {**vars(sim.disorder), **vars(sim.plan), **vars(sim.distributions), **vars(sim.network)}
    assert eval(repr(build()), names) == build()


def test_replay_starts_at_the_first_time() -> None:
    rows = [Row(500, 900, "a", 1.0), Row(400, 950, "b", 2.0)]
    assert replay(rows, "recorded").epoch_us == 400
    assert replay([], "nothing").sources == (Recording(()),)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Source(-1), r"Source.events is -1; it must be between 0 and 999999999"),
        (lambda: Source(1, start_us=-1), r"Source.start_us is -1; it must be at least 0"),
        (lambda: Source(1, keys=()), r"Source.keys is \(\); it must be at least one key"),
        (lambda: Source(1, zipf=-1), r"Source.zipf is -1; it must be at least 0"),
        (lambda: Source(1, low=2, high=1), r"Source.high is 1; it must be between low, 2, and"),
        (lambda: Source(1, low=-(2**54)), r"Source.low is -18014398509481984; it must be"),
        (lambda: Source(1, bits=-1), r"Source.bits is -1; it must be at least 0"),
        (lambda: Recording((), bits=-1), r"Recording.bits is -1; it must be at least 0"),
        (lambda: Plan((), epoch_us=0), r"Plan.epoch_us is 0; it must be after 1970"),
        (lambda: Plan((Source(1, worker=0),)), r"worker of source 0 is 0; it must be one of the 0"),
        (
            lambda: Plan((Recording((ROW,)),), epoch_us=ROW.arrival_us),
            r"a row of source 0 is Row\(",
        ),
        (lambda: Plan((), disturbances=(Gap(0, 0),)), r"gap.length_us is 0; it must be above 0"),
        (lambda: Plan((), noise=Noise(loss=-0.1)), r"Noise.loss is -0.1; it must be"),
        (lambda: Plan((), tiers=Tiers(node=Tier(1, 0))), r"Tier.bandwidth_mbps is 0; it must be"),
        (
            lambda: Plan((), faults=(Pause("worker-0", 1, 1),)),
            r"target of pause is 'worker-0'; it must be one of \[\]",
        ),
        (
            lambda: Plan((Source(1),), faults=(Lose("source-0", 1),)),
            r"target of lose is 'source-0'; it must be one of \[\]",
        ),
        (
            lambda: Plan((Source(1),), faults=(Duplicate("source-1", 1, 1),)),
            r"target of duplicate is 'source-1'; it must be one of \['source-0'\]",
        ),
        (lambda: Plan((Source(1, delay=Constant(-1)),)), r"Constant.us is -1; it must be finite"),
    ],
)
def test_bad_values_are_named(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()
