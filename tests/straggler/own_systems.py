"""Systems of users, right ones and wrong ones, that the command line is pointed at."""

from collections.abc import Callable, Iterable
from typing import Any

from model.grouping import run as run_grouping
from model.grouping.variants import VARIANTS as OF_GROUPING
from model.join import run as run_join
from model.join.oracle import oracle_join
from model.script import run as run_script
from model.slack import run as run_slack
from model.slack.variants import VARIANTS as OF_SLACK
from model.vocabulary import System, Trace, Workload
from model.vocabulary.grouping import Answer
from model.vocabulary.join import Match, Receive
from model.vocabulary.script.config import Result
from model.vocabulary.windows import Late
from model.watermark.variants import VARIANTS as OF_WATERMARK

Steps = Iterable[Any]


def editing(
    run: System, edit: Callable[[Workload, list[Any]], Steps], name: str = "edited"
) -> Callable[[], System]:
    """Return a factory of Systems that record other steps than a right one."""
    return lambda: lambda workload: Trace(name, edit(workload, list(run(workload).steps())))


def changing(run: System, kind: type, **changes: Callable[[Any], Any]) -> Callable[[], System]:
    """Return a factory of Systems that change some fields of all steps of a kind."""

    def changed(step: Any) -> Any:
        return step._replace(**{name: change(getattr(step, name)) for name, change in each})

    each = changes.items()
    return editing(run, lambda _, steps: [changed(s) if isinstance(s, kind) else s for s in steps])


def without(run: System, *kinds: type) -> Callable[[], System]:
    """Return a factory of Systems that record no steps of these kinds."""
    return editing(run, lambda _, steps: [s for s in steps if not isinstance(s, kinds)])


def losing(workload: Workload, steps: list[Any]) -> Steps:
    """Lose the pairs of tuples from two epochs."""
    epoch = {e.source_id: n for n, batch in enumerate(workload.batches()) for e in batch}
    return [s for s in steps if not isinstance(s, Match) or epoch[s.r_id] == epoch[s.s_id]]


def doubling(workload: Workload, steps: list[Any]) -> Steps:
    """Repeat all matches in the last epoch."""
    last = sum(1 for _ in workload.batches())
    return [*steps, *(s._replace(batch=last) for s in steps if isinstance(s, Match))]


def raises() -> System:
    """Return a System that raises an error."""

    def system(_workload: Workload, /) -> Trace:
        raise RuntimeError("no\nmore disk")

    return system


says_nothing = editing(run_slack, lambda _, steps: (), "nothing")
forgets_late = without(run_slack, Late)
loses_pairs = editing(oracle_join, losing)
doubles_pairs = editing(oracle_join, doubling)
miscounts_copies = changing(run_join, Receive, copies=lambda copies: copies + 1)
answers_one_less = changing(run_grouping, Answer, n=lambda n: max(1, n - 1))
"""Takes the partial aggregate of one instance for the answer."""
stamps_the_end = changing(run_script, Result, ts_us=lambda ts_us: ts_us + 1_000)
lost_update = OF_SLACK["lost_update"].make_system
literal = OF_WATERMARK["literal"].make_system
uniform_if_light = OF_GROUPING["uniform_if_light"].make_system
