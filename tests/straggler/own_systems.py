"""Systems of users, right ones and wrong ones, that the command line is pointed at."""

from collections.abc import Callable
from math import sqrt

from model.grouping import run as run_grouping
from model.join import run as run_join
from model.join.oracle import nested_loop_join
from model.script import run as run_script
from model.slack import run as run_slack
from model.vocabulary import System, Trace, Workload
from model.vocabulary.grouping import Answer
from model.vocabulary.join import Match, Receive, Rejected
from model.vocabulary.script.config import Hosted, Result
from model.vocabulary.windows import Final, Late


def answers_only() -> System:
    """Return a System that records final answers and nothing else."""
    return lambda workload: Trace("answers", run_slack(workload).of(Final))


def says_nothing() -> System:
    """Return a System that records no step, so that no claim about steps can be broken."""
    return lambda _: Trace("nothing", ())


def raises() -> System:
    """Return a System that raises an error."""

    def system(_workload: Workload, /) -> Trace:
        raise RuntimeError("no\nmore disk")

    return system


def forgets_late() -> System:
    """Return a System that records no late pairs."""

    def system(workload: Workload, /) -> Trace:
        steps = run_slack(workload).steps()
        return Trace("forgets", [step for step in steps if not isinstance(step, Late)])

    return system


def loses_pairs() -> System:
    """Return a System that loses the pairs of tuples from two epochs."""

    def system(workload: Workload, /) -> Trace:
        epoch = {e.source_id: n for n, batch in enumerate(workload.batches()) for e in batch}
        trace = nested_loop_join(workload)
        kept = [each for each in trace.of(Match) if epoch[each.r_id] == epoch[each.s_id]]
        return Trace("loses", [*kept, *trace.of(Rejected)])

    return system


def doubles_pairs() -> System:
    """Return a System whose matches come twice, in two epochs."""

    def system(workload: Workload, /) -> Trace:
        trace = nested_loop_join(workload)
        last = sum(1 for _ in workload.batches())
        again = [each._replace(batch=last) for each in trace.of(Match)]
        return Trace("doubles", [*trace.steps(), *again])

    return system


def miscounts_copies() -> System:
    """Return a System whose chain records that blocks met more copies than there were."""

    def system(workload: Workload, /) -> Trace:
        steps = [
            step._replace(copies=step.copies + 1) if isinstance(step, Receive) else step
            for step in run_join(workload).steps()
        ]
        return Trace("miscounts", steps)

    return system


def answers_one_less() -> System:
    """Return a System that takes the partial aggregate of one instance for the answer."""

    def system(workload: Workload, /) -> Trace:
        trace = run_grouping(workload)
        answers = [each._replace(n=max(1, each.n - 1)) for each in trace.of(Answer)]
        others = [step for step in trace.steps() if not isinstance(step, Answer)]
        return Trace("sums", [*others, *answers])

    return system


def _scripts(changed: Callable[[Result], Result]) -> System:
    def system(workload: Workload, /) -> Trace:
        steps = [
            changed(each) if isinstance(each, Result) else each
            for each in run_script(workload).steps()
        ]
        return Trace("floats", [each for each in steps if not isinstance(each, Hosted)])

    return system


def scripts_in_float64() -> System:
    """Return a System for room ``script`` whose results are moved a little."""
    return _scripts(lambda each: each._replace(value=each.value * (1 + 1e-12)))


def scripts_far_off() -> System:
    """Return a System whose results are too far from the right ones."""
    return _scripts(lambda each: each._replace(value=each.value + sqrt(2)))
