"""Pages say what the code says: generated ones are current, and tables what commands print."""

import re

import pytest

from benchmarks.pages import DOCS, pages, schemas
from model.vocabulary.durations import parse_duration_us
from sim.join import STANDARD
from straggler.cli.render import markdown
from straggler.inputs.schemas import FOLDER
from straggler.rooms.slack.guide import TABLES


def test_generated_pages_are_current() -> None:
    for name, text in pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"make docs writes {name} anew"


def test_published_schemas_are_current() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(schemas())
    for name, text in schemas().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"make docs writes {name} anew"


def test_the_standard_scenario_of_join_is_the_one_on_its_page() -> None:
    page = (DOCS / "join.md").read_text(encoding="utf-8")
    line = re.findall(r"^straggler sim join (--set scenario=steady .*)$", page, flags=re.M)[0]
    given = {
        name: str(parse_duration_us(text)) if name.endswith("_us") else text
        for name, text in re.findall(r"--set (\w+)=(\S+)", line)
    }
    assert given == STANDARD


@pytest.mark.parametrize(
    "name",
    [name if name == "required" else pytest.param(name, marks=pytest.mark.long) for name in TABLES],
)
def test_the_guide_has_every_line_of_its_tables(name: str) -> None:
    header, rows = TABLES[name]
    known = set((DOCS / "slack-guide.md").read_text(encoding="utf-8").splitlines())
    absent = [
        line
        for each in rows()
        for line in markdown(header, [each]).splitlines()
        if line not in known
    ]
    assert not absent, "\n".join(absent)
