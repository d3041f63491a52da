"""Pages say what the code says: generated ones are current, and tables what commands print."""

from benchmarks.pages import DOCS, pages, schemas
from straggler.inputs.schemas import FOLDER


def test_generated_pages_are_current() -> None:
    for name, text in pages().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"make docs writes {name} anew"


def test_published_schemas_are_current() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(schemas())
    for name, text in schemas().items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"make docs writes {name} anew"
