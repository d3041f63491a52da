"""The generated pages of ``docs``: ``make docs`` writes them anew."""

from pathlib import Path

from properties.pages import settings
from properties.rooms import room_names

DOCS = Path(__file__).resolve().parents[1] / "docs"


def pages() -> dict[str, str]:
    """Return the text of each generated page, by its name."""
    return {"settings.md": settings.markdown(room_names())}


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
