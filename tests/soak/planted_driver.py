"""A driver of a soak with planted mistakes: ``python -m tests.soak.planted_driver MASTER``.

The file ``planted`` in the folder of a life names the mistake of its sink: ``twice`` adds what it
is given to what it has, instead of replacing it; ``lost`` leaves out a row if it is called again.
"""

import json
import sys
from typing import Any

from tests.soak import driver, rooms


class PlantedSink(rooms.Handed):
    """A sink that is not idempotent if the folder says so."""

    def write(self, batch: int, content: Any) -> None:
        """Write the content for a micro-batch."""
        planted = self._folder.parent.parent / "planted"
        mistake = planted.read_text(encoding="utf-8") if planted.exists() else ""
        before = self._folder / f"{batch}.json"
        if mistake and before.exists():
            held = json.loads(before.read_text(encoding="utf-8"))
            content = held + content if mistake == "twice" else content[1:]
        super().write(batch, content)


if __name__ == "__main__":
    vars(rooms)["Handed"] = PlantedSink
    driver.main(sys.argv[1])
