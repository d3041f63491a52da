"""The page of results: it fetches nothing, escapes its texts, and its numbers are right."""

import re
from copy import deepcopy
from html.parser import HTMLParser

import pytest

from sim.report.entries import entry_of
from sim.report.page import POLICY, page
from tests.sim import made_up

VOID = {"meta", "br", "col"}


@pytest.fixture(scope="module")
def text() -> str:
    return page(tuple(entry_of(*each) for each in made_up.ALL))


class Reader(HTMLParser):
    """The elements and text of a page; elements not closed in their order are an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        """Texts by the element around them."""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in self._open[-1:]:
            self.texts.setdefault(tag, []).append(data)

    def values(self, attribute: str) -> list[str]:
        """Return all values of an attribute in the page."""
        found = (attributes.get(attribute) for _, attributes in self.elements)
        return [value for value in found if value is not None]


def test_nothing_is_fetched_and_nothing_runs(text: str) -> None:
    reader = Reader(text)
    assert reader.values("content").count(POLICY) == 1
    assert POLICY.startswith("default-src 'none'")
    assert not re.search(r"https?:|//[a-z]|@import|javascript:|data:", text)
    fetching = {"script", "link", "img", "image", "iframe", "object", "embed", "audio", "video"}
    assert not fetching & {tag for tag, _ in reader.elements}
    assert not [key for _, found in reader.elements for key in found if key.startswith("on")]
    assert reader.values("src") == []


def test_text_is_escaped_once_in_elements_and_attributes() -> None:
    record, columns = deepcopy(made_up.LATENCY)
    record["experiment"]["title"] = 'A "<b>" & more'
    found = Reader(page((entry_of(record, columns),)))
    assert 'A "<b>" & more' in found.texts["a"]
    assert any(label.startswith('A "<b>" & more: ') for label in found.values("aria-label"))
    assert "b" not in [tag for tag, _ in found.elements]


def test_numbers_are_means_with_the_limits_of_student() -> None:
    record, columns = made_up.stored("slack-a", {"k": (1,)}, {"wait_us": lambda k, s: 1e6 * s})
    entry = entry_of(record, columns)
    assert entry.table.header == ("k", "wait (s)", "seeds")
    # Mean 1 and standard deviation 1 of 0, 1, 2; t is 4.3027 with two degrees of freedom.
    assert entry.table.rows == (("1", "1 (-1.484 to 3.484)", "3"),)
