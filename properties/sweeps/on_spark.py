"""Jobs of a sweep on Spark: a task each, on whichever executor is free.

Rules of this file:

* Every job is a Spark job of its own, asked for by a thread of its own, so that what comes of it
  is stored as soon as it is there.
* The simulation knows nothing of Spark: workers are sent its sources.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager

from pyspark.sql import SparkSession

from properties.errors import UsageError
from properties.judging.systems import interrupts_held_back
from properties.sweeps.reachable import refuse_silent
from sim.sweep.jobs import ENDED, Done, Job, Mapper, bounded
from spark_impl.runtime.failures import sentence_of, without_stack_traces
from spark_impl.runtime.session import EnvironmentProblem, session

SHIPPED = ("model", "sim")
MASTERS = ("local", "spark:", "k8s:", "yarn")
AT_ONCE = 64
"""Jobs that Spark is asked for at a time, if nobody says otherwise; it queues what has no slot."""


@contextmanager
def on_spark(master: str, at_once: int = AT_ONCE) -> Iterator[Mapper]:
    """A mapper in a session that lasts as long as this block.

    Raises :class:`UsageError` with one sentence when there is none to be had.
    """
    if not master.startswith(MASTERS):
        known = "processes nor a Spark master like local[4] or spark://name:7077"
        raise UsageError(f"--on {master!r} is neither {known}")
    refuse_silent(master)
    with ExitStack() as stack:
        try:
            with interrupts_held_back():
                spark = stack.enter_context(session(master, shipped=SHIPPED))
        except EnvironmentProblem as problem:
            raise UsageError(f"--on {master!r}: {problem}") from problem
        with without_stack_traces():
            yield lambda jobs: _done(spark, jobs, at_once)


def _done(spark: SparkSession, jobs: Sequence[Job], at_once: int) -> Iterator[Done]:
    with ThreadPoolExecutor(at_once) as threads:
        asked = [threads.submit(_one, spark, job) for job in jobs]
        try:
            for each in as_completed(asked):
                yield each.result()
        finally:  # after Ctrl-C nothing of the rest is wanted
            for each in asked:
                each.cancel()
            spark.sparkContext.cancelAllJobs()


def _one(spark: SparkSession, job: Job) -> Done:
    try:
        (done,) = spark.sparkContext.parallelize([job], 1).map(bounded).collect()
    except Exception as error:  # Spark's: what goes wrong in the job itself is in what it returns
        has_ended = "exited unexpectedly" in str(error)
        sentence = ENDED if has_ended else f"Spark could not do it: {sentence_of(error)}"
        return Done(job, (), sentence, 0.0, 0.0)
    assert isinstance(done, Done)
    return done
