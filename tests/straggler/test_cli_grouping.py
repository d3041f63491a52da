"""Room ``grouping`` on the command line, without Spark."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from model.grouping import run
from model.vocabulary import System, Trace, Workload
from model.vocabulary.grouping import POLICIES, Answer
from straggler.cli import explore
from straggler.rooms.grouping import inputs
from straggler.rooms.grouping.room import ROOM
from tests.straggler.command import Straggler, assert_refused

MODEL = "model.grouping:make_system"
VARIANTS = "model.grouping.variants"
STEPS = ("--level", "steps")
FILE = ("diff", "grouping", "--input", "hits.csv", "--key", "page", "--value", "bytes", *STEPS)


@pytest.fixture
def hits(tmp_path: Path) -> Path:
    """Write a hundred rows without times; every second one has the same key."""
    rows = [f"{'hot' if n % 2 else f'p{n % 30}'},{n % 9}" for n in range(100)]
    text = "\n".join(["page,bytes", *rows, ""])
    (tmp_path / "hits.csv").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_file_without_times_under_every_policy(straggler: Straggler, hits: Path) -> None:
    done = straggler(*FILE, "--policy", "all", "--system", MODEL, "--json", "verdict.json")
    assert (done.code, done.err.count("\n")) == (0, 13)
    assert "13 comparisons, none broken" in done.out
    assert "1,300 routes, tuple by tuple, and" in done.out
    rows = json.loads((hits / "verdict.json").read_text(encoding="utf-8"))
    assert [row["config"]["policy"] for row in rows] == list(POLICIES)
    found = {row["query"]: row for row in rows}
    assert all(row["verdict"] == "holds" for row in rows)
    assert found["tag"]["rho"] < found["tag-literal"]["rho"] < found["key"]["rho"]
    assert 1 == found["key"]["replication"] < found["tag"]["replication"]
    assert found["key"]["busiest_us"] > found["tag"]["busiest_us"] > 0
    assert found["tag"]["heavy"] > 0
    assert len(set(found["tag"]["config"]["times_us"][0][1])) == 2, "unequal by default"


def test_settings_are_those_of_the_router(straggler: Straggler, hits: Path) -> None:
    wanted = {
        "instances": "3",
        "times_us": "1,1,5/1:5,1,1",
        "latency_us": "7,0,7",
        "senders": "1",
        "window_tuples": "20",
        "theta": "0.1",
        "eps": "0.05",
        "gamma": "1",
        "alpha": "0.25",
        "draw_tuples": "4",
        "tiers": "0,1,2",
        "hash_seed": "7",
        "top": "2",
    }
    sets = [part for name, text in wanted.items() for part in ("--set", f"{name}={text}")]
    done = straggler(*FILE, "--policy", "tag", *sets, "--system", MODEL, "--json", "verdict.json")
    assert (done.code, done.err) == (0, "")
    (row,) = json.loads((hits / "verdict.json").read_text(encoding="utf-8"))
    config = row["config"]
    assert config["times_us"] == [[0, [1, 1, 5]], [1, [5, 1, 1]]]
    assert (config["latency_us"], config["tiers"]) == ([7, 0, 7], [0, 1, 2])
    for name in set(wanted) - {"times_us", "latency_us", "tiers"}:
        assert config[name] == float(wanted[name]), name
    assert row["query"].startswith("tag, instances=3, times_us=1,1,5/1:5,1,1, ")


def test_words_of_the_standard_library_have_an_input(straggler: Straggler) -> None:
    ask = ("--input", "tokens", "--policy", "tag", "--system", MODEL, "--seed", "5", *STEPS)
    done = straggler("diff", "grouping", *ask)
    assert (done.code, done.err) == (0, "")
    assert f"1 comparison, none broken: {MODEL} agrees with the reference in" in done.out
    assert f"{inputs.TOKENS:,} routes" in done.out
    assert done.out.endswith("Seed 5.\n")


def test_one_window_alone_is_undetermined(straggler: Straggler, hits: Path) -> None:
    done = straggler(*FILE, "--set", "window_tuples=1000", "--system", MODEL)
    assert done.code == 3
    assert "there was one window, so that nothing was rebalanced in hits.csv" in done.out
    done = straggler(*FILE, "--set", "theta=0.9", "--system", MODEL)
    assert (done.code, "no key was heavy in hits.csv" in done.out) == (3, True)
    done = straggler(*FILE, "--set", "instances=1", "--system", MODEL)
    assert (done.code, "no key went to several instances" in done.out) == (3, True)


def sums_by_instance() -> System:
    """Return a System that takes the partial aggregate of one instance for the answer."""

    def system(workload: Workload, /) -> Trace:
        trace = run(workload)
        answers = [each._replace(n=max(1, each.n - 1)) for each in trace.of(Answer)]
        others = [step for step in trace.steps() if not isinstance(step, Answer)]
        return Trace("sums", [*others, *answers])

    return system


def answers_alone() -> System:
    """Return a System that does not record where its tuples went."""
    return lambda workload: Trace("alone", run(workload).of(Answer))


@pytest.mark.parametrize(
    ("factory", "sentence"),
    [
        (f"{VARIANTS}:last_of_equals", "every tuple goes where its sender has sent the least work"),
        (f"{VARIANTS}:uniform_if_light", "every tuple goes to a candidate of its key"),
        (f"{__name__}:sums_by_instance", "answers are those of all tuples: The answer for key"),
    ],
)
def test_a_planted_bug_is_caught_made_small_and_stored(
    straggler: Straggler, hits: Path, factory: str, sentence: str
) -> None:
    done = straggler(*FILE, "--system", factory)
    assert done.code == 1
    assert "1 of 1 comparison broken" in done.out
    assert sentence in done.out
    (stored,) = (hits / "counterexamples").iterdir()
    arrivals = json.loads(stored.read_text(encoding="utf-8"))["workload"]["arrivals"]
    assert len(arrivals) <= 2
    assert straggler("replay", "--trust", f"counterexamples/{stored.name}").code == 1
    mended = straggler("replay", f"counterexamples/{stored.name}", "--system", MODEL)
    assert mended.code == 0


def test_steps_that_a_system_does_not_record_have_no_figures(
    straggler: Straggler, hits: Path
) -> None:
    ask = ("--system", f"{__name__}:answers_alone", "--kinds", "answer", "--json", "verdict.json")
    straggler(*FILE, *ask)
    (row,) = json.loads((hits / "verdict.json").read_text(encoding="utf-8"))
    assert (row["rho"], row["busiest_us"], row["mismatches"]) == (None, None, 0)
    assert (row["routes"], row["answers"] > 0) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--input tokns", ("'tokns'", "tokens, flights, tailnum", "did you mean 'tokens'?")),
        ("--input nasa_http", ("STRAGGLER_DATA is not set",)),
        ("--input nowhere.csv", ("there is no file 'nowhere.csv'",)),
        ("--input empty.csv", ("empty.csv is empty",)),
        ("--input header.csv --key page --value bytes", ("header.csv has no rows",)),
        ("--input latin.csv", ("latin.csv is not utf-8", "line 2", "--encoding")),
        ("--input nulls.csv --key page --strict", ("1 of 2 rows set aside", "'page'", "line 3")),
        ("--input hits.csv", ("no keys in hits.csv", "--key names a column")),
        ("--input hits.csv --value bytes", ("no keys in hits.csv", "--key names a column")),
        ("--input hits.csv --value bytes --key pages", ("'pages'", "did you mean 'page'?")),
        (
            "--input hits.csv --value page --key page",
            ("no row can be used of hits.csv", "'page' has 'p0'"),
        ),
        ("--input hits.csv --value bytes --event-time at", ("no column 'at'",)),
        ("--input large.csv --key page --value bytes", ("values of large.csv add up to more",)),
        ("--policy tga", ("no policy 'tga'", "round-robin", "did you mean 'tag'?")),
        ("--set instances", ("'instances' is not NAME=VALUE",)),
        ("--set instnces=3", ("'instnces'", "did you mean 'instances'?")),
        ("--set policy=tag", ("that is --policy",)),
        ("--set instances=0", ("--set: instances is 0", "an integer > 0")),
        ("--set instances=-3", ("--set: instances is -3", "an integer > 0")),
        ("--set instances=129", ("instances is 129", "at most 128")),
        ("--set instances=many", ("instances is 'many'", "an integer")),
        ("--set senders=65", ("senders is 65", "at most 64")),
        ("--set times_us=1,2", ("--set: times_us is (1, 2)", "each of the 8 instances")),
        ("--set times_us=1;2", ("times_us is '1;2'", "integers with commas between")),
        ("--set instances=2 --set times_us=0,1", ("times_us is 0", "at least 1")),
        (
            f"--set instances=1 --set times_us={10**13}",
            ("times_us is 10000000000000", "at most 1000000000000"),
        ),
        (f"--set instances=1 --set latency_us={10**13}", ("latency_us is 10000000000000",)),
        ("--set theta=2", ("theta is 2.0", "< 1")),
        ("--set theta=nan", ("theta is nan",)),
        ("--set theta=0.1 --set eps=0.09", ("eps is 0.09", "at most half of theta")),
        ("--set hash_seed=-1", ("hash_seed is -1",)),
        ("--batches 0", ("--batches is 0",)),
        ("--window 5s", ("--window is a length of time", "window_tuples")),
        ("--tasks 3", ("--tasks is an option of rooms slack and watermark, not of grouping",)),
        ("--kinds rout", ("'rout'", "route, heavy, partial, answer, rejected")),
    ],
)
def test_refusals_are_one_sentence_that_names_the_value(
    straggler: Straggler, hits: Path, arguments: str, words: tuple[str, ...]
) -> None:
    (hits / "empty.csv").write_text("", encoding="utf-8")
    (hits / "large.csv").write_text("page,bytes\na,1e308\nb,-1e308\n", encoding="utf-8")
    (hits / "header.csv").write_text("page,bytes\n", encoding="utf-8")
    (hits / "latin.csv").write_bytes("page,bytes\ncafé,1\n".encode("latin-1"))
    (hits / "nulls.csv").write_text("page,bytes\na,1\n,2\n", encoding="utf-8")
    assert_refused(
        straggler("diff", "grouping", *arguments.split(), "--system", MODEL, *STEPS), *words
    )


def test_a_stored_workload_that_cannot_be_run_is_refused(straggler: Straggler, hits: Path) -> None:
    straggler(*FILE, "--system", f"{__name__}:sums_by_instance")
    (stored,) = (hits / "counterexamples").iterdir()
    text = stored.read_text(encoding="utf-8")
    for old, new, word in (
        ('"instances": 8', '"instances": 999', "instances"),
        ('"policy": "tag"', '"policy": "gat"', "policy is 'gat'"),
        ('"top": 3', '"top": 0', "top is 0"),
    ):
        assert old in text
        stored.write_text(text.replace(old, new), encoding="utf-8")
        assert_refused(straggler("replay", f"counterexamples/{stored.name}"), word)


def test_explore_shows_a_shortest_stream(straggler: Straggler) -> None:
    done = straggler("explore", "grouping", "--variant", "heavy_drawn")
    assert done.code == 1
    assert "breaks 'few instances a key' in scope tag:" in done.out
    assert "4. A tuple of key a arrives: arrived have ab | a." in done.out


def test_explore_tells_what_is_wrong_on_an_example_once(straggler: Straggler) -> None:
    done = straggler("explore", "grouping", "--variant", "floors_forgotten")
    assert done.out.count("Key 'e' is not heavy in window 1, with 5 of 9 tuples before it.") == 1


def test_a_bug_that_breaks_no_claim_is_found_by_comparison() -> None:
    room = replace(ROOM, explorer=ROOM.explorer._replace(homes={}))
    finding = explore._find(room, "too_few_counters", ())
    assert finding.claim == "equal to the reference"
