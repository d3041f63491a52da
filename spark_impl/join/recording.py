"""Recording what a worker does (docs/join.md, section 9)."""

from collections.abc import Callable

from model.vocabulary.join import Admit
from model.vocabulary.trace import Step


class Recorder:
    """Numbers the steps of one worker in one epoch and hands them on; silent without ``sink``."""

    def __init__(self, epoch: int, worker: int, sink: Callable[[Step], None] | None) -> None:
        self._who = (epoch, worker)
        self._sink = sink
        self._steps = 0
        self._admit: Admit | None = None

    def admit(self, stream: str, first: int, tuples: int, pairs: int) -> None:
        """Consecutive admissions of one stream are one step, handed on before the next one."""
        step = self._admit
        if step is None or step.stream != stream:
            self._close()
            step = Admit(*self._who, 0, stream, first, 0, 0)
        self._admit = step._replace(tuples=step.tuples + tuples, pairs=step.pairs + pairs)

    def step(self, word: Callable[..., Step], *values: object) -> None:
        """Any other step, from what follows its number."""
        self._close()
        self._hand_on(word(*self._who, self._steps, *values))

    def _close(self) -> None:
        if self._admit is not None:
            step, self._admit = self._admit, None
            self._hand_on(step._replace(number=self._steps))

    def _hand_on(self, step: Step) -> None:
        self._steps += 1
        if self._sink is not None:
            self._sink(step)
