"""Generated pages say what the code says."""

from benchmarks.pages import DOCS, pages


def test_generated_pages_are_current() -> None:
    for name, text in pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"make docs writes {name} anew"
