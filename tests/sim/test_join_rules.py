"""A simulated chain at the end of an epoch: decisions by its busy time, and what goes on."""

from model.join.control import decide, start
from model.vocabulary import JoinConfig
from model.vocabulary.join import Decision, Equi, Match
from model.vocabulary.join_load import LoadRules
from sim.join import ChainRun, simulate
from sim.join.tuning import ChainTuning, Control, Costs
from sim.kernel.distributions import Constant
from sim.kernel.plan import Plan
from sim.kernel.source import Source
from sim.kernel.trigger import Every
from tests.sim.chains import assert_is_the_model_s, small

RULES = LoadRules(
    least=2,
    most=4,
    tau0=0.13,
    tau1=0.4,
    tau2=0.4,
    out_after_us=500_000,
    in_after_us=1_000_000,
    capacity=40,
    blocks="adaptive",
    shed="linear",
    block_size=8,
)
CONFIG = JoinConfig(500_000, (("same", Equi("key")),), workers=2, block_size=8, lateness_us=0)
EPOCH_US, COMMIT_US = 500_000, 10_000


def rising_and_falling() -> ChainRun:
    """Run two streams whose rates are three times as high in the second of four parts."""
    sources = [
        Source(events, Constant(interval_us), start_us=start_us, keys=("a", "b"))
        for events, interval_us, start_us in ((120, 50_000.0, 0), (120, 12_500.0, 1_500_000))
        for _ in "RS"
    ]
    tuning = ChainTuning(
        Costs(comparison_us=900), Control(rules=RULES), pace_us=50_000, commit_us=COMMIT_US
    )
    plan = Plan(tuple(sources), tuning=tuning, trigger=Every(EPOCH_US))
    return simulate(plan, CONFIG, 3)


def test_the_decisions_are_those_of_the_controller() -> None:
    run = rising_and_falling()
    state, taken = start(RULES, CONFIG.workers), Decision(0, CONFIG.workers, CONFIG.block_size, 0.0)
    for number, (measured, decision) in enumerate(run.concluded):
        assert measured.epoch == number
        assert len(measured.busy_us) == taken.workers
        assert max(measured.busy_us) <= measured.elapsed_us
        assert (measured.shed > 0) <= (taken.share > 0)
        state, taken = decide(RULES, state, measured)
        assert decision == taken
    workers = [each.decision.workers for each in run.concluded]
    assert workers[0] == workers[-1] == 2
    assert max(workers) > 2
    assert len({each.decision.block_size for each in run.concluded}) > 2


def test_what_is_measured_adds_up() -> None:
    run = rising_and_falling()
    measured = [each.measured for each in run.concluded]
    assert sum(each.offered for each in measured) == run.summary["arrivals"]
    assert sum(each.shed for each in measured) == run.summary["shed"]
    assert sum(each.shed for each in measured) > 0
    # An epoch is cut at a multiple of its interval, and is over when the chain is quiet.
    ends_us = [sum(each.elapsed_us for each in measured[: n + 1]) for n in range(len(measured))]
    assert all(end_us >= n * EPOCH_US for n, end_us in enumerate(ends_us[:-1], 1))


def test_results_are_exact_over_what_was_not_shed() -> None:
    run = rising_and_falling()
    assert JoinConfig.from_json(run.workload.config).decisions
    assert_is_the_model_s(run)


def test_overdue_tuples_go_on_at_the_end_of_an_epoch() -> None:
    given = {"block_size": "64", "trigger_interval_us": "1000000", "window_us": "300000"}
    runs = [small(3, blocks="fixed", drains=drains, **given) for drains in ("no", "yes")]
    stayed, gone = ([each.batch for each in run.trace.of(Match)] for run in runs)
    assert len(gone) == len(stayed)
    assert sum(gone) < sum(stayed)
    assert_is_the_model_s(runs[1])
