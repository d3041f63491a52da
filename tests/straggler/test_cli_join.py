"""Room ``join`` on the command line, without Spark."""

import json
from pathlib import Path

import pytest

from model.join import run
from model.join.oracle import nested_loop_join
from model.vocabulary import System, Trace, Workload
from model.vocabulary.join import Match, Receive, Rejected
from tests.straggler.command import Straggler, assert_refused

ORACLE = "model.join.oracle:make_system"
CHAIN = "model.join:make_system"
OPTIONS = ("--time-unit", "s", "--window", "5s", "--lateness", "4s", "--batches", "3")
FILES = ("diff", "join", "--r", "r.csv", "--s", "s.csv", *OPTIONS)
STEPS = ("--level", "steps")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write sixty tuples of each stream with three keys; every fifth tuple of R is late."""
    for name, late in (("r", 9), ("s", 0)):
        rows = [f"{n - late * (n % 5 == 0)},{n % 7},{'abc'[n % 3]}" for n in range(20, 80)]
        text = "\n".join(["event_time,value,key", *rows, ""])
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    return tmp_path


def test_two_files_through_the_chain(straggler: Straggler, files: Path) -> None:
    done = straggler(*FILES, "--system", CHAIN, *STEPS, "--json", "verdict.json", "--on", "key")
    assert (done.code, done.err) == (0, "")
    assert "r.csv, s.csv, key, +-5s, late after 4s, recording: " in done.out
    assert " steps of 3 workers are a behaviour of the protocol.\n" in done.out
    assert "1 comparison, none broken: model.join:make_system agrees with the reference" in done.out
    (row,) = json.loads((files / "verdict.json").read_text(encoding="utf-8"))
    assert row["verdict"] == "holds"
    assert row["matches"] > row["across_epochs"] > 0
    assert row["rejected"] > 0
    assert min(row["blocks"], row["copies"], row["in_the_middle"], row["steps"]) > 0
    assert row["remarks"][0]["outcome"] == "holds"


def test_a_chain_takes_decisions(straggler: Straggler, files: Path) -> None:
    decisions = ("--decisions", "1:5:4:0.25,2:2:9:0,3:4:1:0.5")
    done = straggler(*FILES, "--system", CHAIN, *STEPS, "--json", "verdict.json", *decisions)
    assert (done.code, done.err) == (0, "")
    (row,) = json.loads((files / "verdict.json").read_text(encoding="utf-8"))
    assert row["verdict"] == "holds"
    assert row["workers"] == 5
    assert row["remarks"][0]["outcome"] == "holds"
    done = straggler(*FILES, "--system", CHAIN, *STEPS, "--json", "verdict.json")
    (undecided,) = json.loads((files / "verdict.json").read_text(encoding="utf-8"))
    assert row["rejected"] > undecided["rejected"], "nothing was shed"


def test_several_conditions_share_one_chain(straggler: Straggler, files: Path) -> None:
    conditions = ("--on", "key and value within 2", "--on", "value apart 3", "--on", "any")
    done = straggler(*FILES, "--system", ORACLE, *conditions, "--json", "verdict.json")
    assert done.code == 0
    assert "results alone were compared" in done.out
    (row,) = json.loads((files / "verdict.json").read_text(encoding="utf-8"))
    names = [name for name, _ in row["config"]["queries"]]
    assert names == ["key and value within 2", "value apart 3", "any"]
    assert row["blocks"] is None


def test_a_file_is_joined_with_itself(straggler: Straggler, files: Path) -> None:
    options = (*OPTIONS, "--system", CHAIN, "--json", "verdict.json", "--lateness", "10s")
    assert straggler("diff", "join", "--r", "s.csv", "--s", "s.csv", *options).code == 0
    (row,) = json.loads((files / "verdict.json").read_text(encoding="utf-8"))
    assert row["matches"] >= 60, "every tuple with itself"


def without_key(files: Path, name: str) -> None:
    path = files / f"{name}.csv"
    rows = [line.rpartition(",")[0] for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("\n".join([*rows, ""]), encoding="utf-8")


def test_keys_that_are_not_there_are_not_compared(straggler: Straggler, files: Path) -> None:
    without_key(files, "s")
    done = straggler(*FILES, "--system", ORACLE, "--on", "value >", "--on", "key and value >")
    assert_refused(done, "--on is 'key and value >'", "no keys in S", "--key", "--on any")
    without_key(files, "r")
    assert_refused(straggler(*FILES, "--system", ORACLE), "--on is 'key'", "no keys in R and S")
    assert straggler(*FILES, "--system", ORACLE, "--on", "value >").code == 0


def test_pairs_of_one_epoch_are_no_test(straggler: Straggler, files: Path) -> None:
    done = straggler(*FILES, "--system", ORACLE, "--window", "0s", "--on", "value apart 9")
    assert done.code == 3
    assert "nothing matched in r.csv, s.csv: the cases that matter never came up" in done.out


def forgets() -> System:
    """Return a System that loses the pairs of tuples from two epochs."""

    def system(workload: Workload, /) -> Trace:
        case = {e.source_id: n for n, batch in enumerate(workload.batches()) for e in batch}
        trace = nested_loop_join(workload)
        kept = [each for each in trace.of(Match) if case[each.r_id] == case[each.s_id]]
        return Trace("forgets", [*kept, *trace.of(Rejected)])

    return system


def doubles() -> System:
    """Return a System whose matches come twice, in two epochs."""

    def system(workload: Workload, /) -> Trace:
        trace = nested_loop_join(workload)
        last = sum(1 for _ in workload.batches())
        again = [each._replace(batch=last) for each in trace.of(Match)]
        return Trace("doubles", [*trace.steps(), *again])

    return system


def miscounts() -> System:
    """Return a System whose chain records that blocks met more copies than there were."""

    def system(workload: Workload, /) -> Trace:
        steps = [
            step._replace(copies=step.copies + 1) if isinstance(step, Receive) else step
            for step in run(workload).steps()
        ]
        return Trace("miscounts", steps)

    return system


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        ("forgets", " is missing."),
        ("doubles", " was not expected."),
        ("miscounts", "the recorded steps are a behaviour of the protocol: Step "),
    ],
)
def test_a_planted_bug_is_caught_made_small_and_stored(
    straggler: Straggler, files: Path, factory: str, sentence: str
) -> None:
    done = straggler(*FILES, "--system", f"{__name__}:{factory}", *STEPS)
    assert done.code == 1
    assert "1 of 1 comparison broken" in done.out
    assert sentence in done.out
    (stored,) = (files / "counterexamples").iterdir()
    arrivals = json.loads(stored.read_text(encoding="utf-8"))["workload"]["arrivals"]
    assert len(arrivals) <= 4
    assert straggler("replay", f"counterexamples/{stored.name}", "--trust").code == 1
    mended = straggler("replay", f"counterexamples/{stored.name}", "--system", ORACLE)
    assert mended.code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--input flihgts", ("'flihgts'", "did you mean 'flights'?")),
        ("--input r.csv", ("--r FILE --s FILE",)),
        ("--input iot_umts", ("STRAGGLER_DATA is not set",)),
        ("--r r.csv", ("--s is missing",)),
        ("--s r.csv", ("--r is missing",)),
        ("--r r.csv --s nowhere.csv", ("there is no file 'nowhere.csv'",)),
        ("--r r.csv --s empty.csv", ("empty.csv is empty",)),
        ("--r r.csv --s s.csv --input flights", ("two ways to name an input",)),
        ("--r r.csv --s s.csv --value valu", ("no column 'valu'", "did you mean 'value'?")),
        ("--r r.csv --s s.csv --wrokers 2", ("'--wrokers'", "did you mean '--workers'?")),
        ("--r r.csv --s s.csv --workers 0", ("--workers is 0", "an integer > 0")),
        ("--r r.csv --s s.csv --workers 33", ("--workers is 33", "at most 32")),
        ("--r r.csv --s s.csv --block-size 0", ("--block-size is 0",)),
        ("--r r.csv --s s.csv --credit 0", ("--credit is 0",)),
        ("--r r.csv --s s.csv --decisions 1:2", ("--decisions has '1:2'", "EPOCH:WORKERS:BLOCK")),
        ("--r r.csv --s s.csv --decisions 1:2:x:0", ("--decisions has '1:2:x:0'",)),
        (
            "--r r.csv --s s.csv --decisions 2:2:4:0,1:2:4:0",
            ("the epoch of a decision is 1", "an integer, at least 3"),
        ),
        ("--r r.csv --s s.csv --decisions 1:0:4:0", ("workers from epoch 1 on is 0",)),
        ("--r r.csv --s s.csv --decisions 1:33:4:0", ("workers from epoch 1 on is 33",)),
        ("--r r.csv --s s.csv --decisions 1:2:4:1.5", ("the share from epoch 1 on is 1.5",)),
        ("--r r.csv --s s.csv --window -1s", ("--window",)),
        ("--r r.csv --s s.csv --window 99999999d", ("--window is 99999999d", "at most")),
        ("--r r.csv --s s.csv --lateness 5", ("'5'", "500ms")),
        ("--r r.csv --s s.csv --batches 0", ("--batches is 0",)),
        ("--r r.csv --s s.csv --on kee", ("'kee' is not a condition", "did you mean 'key'?")),
        ("--r r.csv --s s.csv --on key --on key", ("--on is 'key'", "given once")),
        (
            "--r r.csv --s s.csv --slide 5s",
            ("--slide is an option of rooms slack and watermark, not of join",),
        ),
        ("--r r.csv --s s.csv --kinds final", ("'final'", "match, rejected")),
    ],
)
def test_refusals_are_one_sentence_that_names_the_value(
    straggler: Straggler, files: Path, arguments: str, words: tuple[str, ...]
) -> None:
    (files / "empty.csv").write_text("", encoding="utf-8")
    assert_refused(straggler("diff", "join", *arguments.split(), "--system", ORACLE), *words)


def test_a_stored_workload_that_cannot_be_run_is_refused(straggler: Straggler, files: Path) -> None:
    straggler(*FILES, "--system", f"{__name__}:doubles")
    (stored,) = (files / "counterexamples").iterdir()
    text = stored.read_text(encoding="utf-8")
    for old, new, word in (
        ('"flush": true', '"flush": false', "flush is False"),
        ('"workers": 3', '"workers": 99', "workers is 99"),
        ('"R"]', '"T"]', "stream is 'T'"),
    ):
        assert old in text
        stored.write_text(text.replace(old, new), encoding="utf-8")
        assert_refused(straggler("replay", f"counterexamples/{stored.name}", "--trust"), word)


def test_sim_prints_figures_and_draws(straggler: Straggler, tmp_path: Path) -> None:
    settings = ("--set", "seconds=5", "--set", "pace_us=never", "--set", "window_us=500ms")
    done = straggler("sim", "join", "--seed", "2", *settings, "--json", "run.json")
    assert (done.code, done.err) == (0, "")
    assert "Scheduling and batches changed no step" in done.out
    figures = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert figures["verdict"] == "holds"
    assert figures["remarks"] == []
    assert straggler("sim", "join", *settings, "--plot", "run.svg").code == 0
    assert "<svg" in (tmp_path / "run.svg").read_text(encoding="utf-8")


def test_sim_says_when_there_was_nothing_to_change(straggler: Straggler) -> None:
    done = straggler("sim", "join", "--set", "seconds=5", "--set", "window_us=5")
    assert done.code == 3
    assert "There was no step that scheduling and batches could have changed: " in done.out


def test_sim_says_when_a_worker_was_too_full(straggler: Straggler, tmp_path: Path) -> None:
    done = straggler("sim", "join", "--json", "run.json")
    assert done.code == 0
    assert "bursts, simulated, load: not kept in every moment: no worker is above tau1" in done.out
    (remark,) = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["remarks"]
    assert remark["outcome"] == "broken"


def test_sim_draws_nothing_but_svg_and_png(straggler: Straggler, tmp_path: Path) -> None:
    for name in ("run.pdf", "run"):
        words = f"--plot is '{name}'", "must end in .svg or .png"
        assert_refused(straggler("sim", "join", "--plot", name), *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("queries=100000", ("queries is 100000", "at most 1,000")),
        ("control_us=1", ("control_us is 1", "at most 1,000,000 times")),
        ("hint_us=1", ("hint_us is 1", "too often")),
        ("faults=fail worker-0 1000000 863913600000000", ("control_us is", "too often")),
        ("trigger_interval_us=9999d", ("control_us is", "too often")),
        ("loss=0.99, retry_us=9999s", ("control_us is", "too often")),
        ("faults=fail worker-0 1000000", ("is not a fault", "write fail worker at_us for_us")),
        ("faults=fail worker-9 5 1", ("target of fail is 'worker-9'", "one of worker-0")),
        (
            "predicate=less, window_us=1000s, rate_r_hz=1000, rate_s_hz=1000, seconds=50",
            ("predicate is less", "1,250,000,000 results or more"),
        ),
        ("queries=900, eps=5000", ("predicate is band", "at most 1,000,000")),
    ],
)
def test_sim_refuses_what_would_not_end(
    straggler: Straggler, settings: str, words: tuple[str, ...]
) -> None:
    given = [part for setting in settings.split(", ") for part in ("--set", setting)]
    assert_refused(straggler("sim", "join", *given), *words)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("sekonds=1", ("'sekonds'", "did you mean 'seconds'?")),
        ("seconds=1e9", ("seconds is 1e9", "at most")),
        ("seconds=inf", ("inf",)),
        ("workers=99", ("workers is 99", "at most 32")),
        ("window_us=5parsecs", ("'5parsecs'",)),
        (f"commit_us={2**70}", ("commit_us is",)),
        ("pace_us=sometimes", ("pace_us", "'sometimes'")),
    ],
)
def test_sim_refuses_in_one_sentence(
    straggler: Straggler, setting: str, words: tuple[str, ...]
) -> None:
    assert_refused(straggler("sim", "join", "--set", setting), *words)
