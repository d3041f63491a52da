"""``straggler report``: a page from what a sweep has stored, and one sentence where that is bad."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from sim.report.page import POLICY
from straggler.sweeps.files import read_report, read_table
from tests.sim import made_up
from tests.sim.experiments import SMALL
from tests.straggler.browser import look
from tests.straggler.command import Straggler, assert_refused

STEM = "watermark-alone-quick"


def store(folder: Path, *stored: tuple[made_up.Record, made_up.Columns]) -> Path:
    """Write the files that a sweep would leave for these records, and return their folder."""
    folder.mkdir()
    for record, columns in stored or made_up.ALL:
        stem = f"{record['experiment']['name']}-{record['effort']}"
        (folder / f"{stem}.json").write_text(json.dumps(record), encoding="utf-8")
        parquet.write_table(pa.table(columns), folder / f"{stem}.parquet")
    return folder


@pytest.fixture
def sweeps(tmp_path: Path) -> Path:
    """Return the default folder of results, with results."""
    return store(tmp_path / "sweeps")


def test_all_results_are_on_the_page(straggler: Straggler, sweeps: Path, tmp_path: Path) -> None:
    done = straggler("report")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "report.html: 6 experiments, 168 runs: 1 reproduced, 1 reproduced under stated assumptions,"
        " 1 refuted, 1 undetermined, 1 not as expected, 1 not judged.\n"
    )
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<article") == 6
    # Rooms in their usual order, wherever in the alphabet they are.
    rooms = ("slack", "join", "grouping", "watermark", "script")
    assert re.findall(r'<h2 id="room-(\w+)"', page) == list(rooms)
    assert straggler("report", "--output", "again.html").code == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page
    assert {path.name for path in tmp_path.iterdir()} == {"sweeps", "report.html", "again.html"}


def test_a_full_sweep_goes_before_a_quick_one(straggler: Straggler, sweeps: Path) -> None:
    record, _ = made_up.ALONE
    for old in sweeps.glob(f"{STEM}.*"):
        name = old.name.replace("quick", "full")
        (sweeps / name).write_bytes(old.read_bytes())
    full = {**record, "effort": "full", "again": "straggler sweep watermark-alone --full"}
    (sweeps / "watermark-alone-full.json").write_text(json.dumps(full), encoding="utf-8")
    entries = {entry.name: entry for entry in read_report(sweeps)}
    assert len(entries) == 6
    assert entries["watermark-alone"].effort == "full"
    assert {entry.effort for entry in read_report(sweeps, ["quick"])} == {"quick"}
    done = straggler("report", "--effort", "full")
    assert done.out.startswith("report.html: 1 experiment, 3 runs: 1 reproduced.")


def test_a_report_reads_the_results_that_a_sweep_stores(
    straggler: Straggler, tmp_path: Path
) -> None:
    (tmp_path / "small.toml").write_text(SMALL, encoding="utf-8")
    assert straggler("sweep", "small.toml", "--jobs", "1").code == 0
    done = straggler("report")
    assert done.out == "report.html: 1 experiment, 8 runs: 1 reproduced.\n"
    (entry,) = read_report(tmp_path / "sweeps")
    table = read_table(tmp_path / "sweeps" / "small-quick.parquet")
    shares = zip(table["policy"], table["slower"], table["share"], strict=True)
    tag = [float(share or 0) for *levels, share in shares if levels == ["tag", 2.5]]
    (row,) = [row for row in entry.table.rows if row[:2] == ("tag", "2.5")]
    assert float(row[2].split()[0]) == pytest.approx(sum(tag) / len(tag), rel=1e-3)
    assert entry.table.header == ("policy", "slower", "share", "mean rho", "seeds")
    assert entry.decisive
    assert entry.decisive.sentence.startswith("ratio of share ")


# -------------------------------------------------------------------------------------- refusals


def test_no_folder_and_no_results_are_refused(straggler: Straggler, tmp_path: Path) -> None:
    assert_refused(straggler("report"), "no folder 'sweeps'", "`straggler sweep`")
    (tmp_path / "sweeps").mkdir()
    assert_refused(straggler("report"), "no results of a full or quick sweep in 'sweeps'")
    (tmp_path / "sweeps" / "runs").mkdir()
    (tmp_path / "sweeps" / "runs" / "0.json").write_text("{}", encoding="utf-8")
    assert_refused(straggler("report"), "only runs; `straggler sweep` resumes them")
    store(tmp_path / "results")
    wanted = straggler("report", "results", "--effort", "full")
    assert_refused(wanted, "no results of a full sweep in 'results'")
    (tmp_path / "claims.json").write_text("{}", encoding="utf-8")
    assert_refused(straggler("report", "claims.json"), "'claims.json' is a file")
    assert not (tmp_path / "report.html").exists()


def test_a_page_that_cannot_be_written_is_refused_first(
    straggler: Straggler, tmp_path: Path
) -> None:
    # There are no results either: that would be said second.
    assert_refused(straggler("report", "--output", "no/report.html"), "--output", "no such folder")
    assert_refused(straggler("report", "--output", str(tmp_path)), "--output", "is a folder")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / f"{STEM}.json").write_text("{"), [f"{STEM}.json' is damaged"]),
        (lambda f: (f / f"{STEM}.json").write_bytes(b"\xff"), [f"{STEM}.json' is damaged"]),
        (lambda f: (f / f"{STEM}.json").write_text("[]"), ["not what a sweep has stored"]),
        (lambda f: (f / f"{STEM}.json").write_text("{}"), ["not what a sweep", "'rows'"]),
        (
            lambda f: (f / f"{STEM}.json").write_bytes(
                (f / "slack-missed-quick.json").read_bytes()
            ),
            ["its table has 3 rows and not 48"],
        ),
        (
            lambda f: [
                (f / f"{STEM}.{kind}").write_bytes((f / f"slack-missed-quick.{kind}").read_bytes())
                for kind in ("json", "parquet")
            ],
            ["it is the record of slack-missed, quick"],
        ),
        (lambda f: (f / f"{STEM}.parquet").unlink(), [f"{STEM}.parquet' is missing"]),
        (lambda f: (f / f"{STEM}.parquet").write_text("PAR1"), ["not a Parquet file"]),
        (
            lambda f: parquet.write_table(pa.table({"run": [1]}), f / f"{STEM}.parquet"),
            ["1 rows and not 3"],
        ),
    ],
)
def test_a_damaged_file_is_refused_by_its_name(
    straggler: Straggler,
    sweeps: Path,
    tmp_path: Path,
    spoil: Callable[[Path], object],
    words: list[str],
) -> None:
    spoil(sweeps)
    assert_refused(straggler("report"), STEM, *words)
    assert not (tmp_path / "report.html").exists()


def test_results_of_several_versions_of_the_code_are_refused(
    straggler: Straggler, sweeps: Path
) -> None:
    path = sweeps / f"{STEM}.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    # What else was run of the room may have other sources.
    record["experiment"]["run"] = "communication"
    path.write_text(json.dumps({**record, "code": "another"}), encoding="utf-8")
    assert straggler("report").code == 0
    record["experiment"]["run"] = "sim"
    path.write_text(json.dumps({**record, "code": "another"}), encoding="utf-8")
    words = ("watermark-alone", "watermark-bare", "watermark3f2", "another")
    assert_refused(straggler("report"), *words)


# -------------------------------------------------------------------------------------- a browser


def test_a_browser_shows_every_plot_and_fetches_nothing(
    straggler: Straggler, sweeps: Path, tmp_path: Path
) -> None:
    assert straggler("report").code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    phone, desk = look(page, tmp_path, 320, dark=True), look(page, tmp_path, 1280)
    for seen in (phone, desk):
        assert seen.plots == page.count("<svg") == 5
        assert seen.fetched == []
        assert seen.refused == []
        assert seen.needed <= seen.width
        # Of a line of text; its letters are a quarter lower.
        assert seen.letters >= 8
    assert (phone.width, desk.width) == (320, 1280)
    assert phone.ground != desk.ground


def test_a_browser_finds_what_was_planted(
    sweeps: Path, straggler: Straggler, tmp_path: Path
) -> None:
    assert straggler("report").code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    planted = '<img src="other.png"><p style="min-width: 600px">wide</p></main>'
    seen = look(page.replace("</main>", planted).replace(POLICY, ""), tmp_path, 390)
    assert len(seen.fetched) == 1
    assert seen.needed > seen.width == 390
    assert look(page.replace("</main>", planted), tmp_path, 390).refused
