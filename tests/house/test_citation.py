"""``CITATION.cff``: that it is current, and says the same as the list of sources."""

import re
import tomllib

from tests.house.repository import ROOT, room_names

CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
SOURCES = (ROOT / "docs" / "published.md").read_text(encoding="utf-8").partition("\n## HPM")[0]


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\nversion: {project['version']}\n" in CITATION


def test_every_reference_is_in_the_list_of_sources() -> None:
    dois = re.findall(r"doi: (\S+)", CITATION)
    assert dois == re.findall(r"\[(10\.\S+?)\]", SOURCES)
    families = re.findall(r"family-names: (\w+), given-names: (\w+)", CITATION)
    assert len(families) == 6
    for family, given in families:
        assert f"{family} {given}" in SOURCES
    for year in re.findall(r"year: (\d+)", CITATION):
        assert f"| {year} |" in SOURCES


def test_every_room_has_its_source() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", SOURCES, re.MULTILINE)
    assert set(listed) == room_names()
