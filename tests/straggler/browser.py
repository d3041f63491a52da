"""A page as a browser lays it out, looked at from a frame around it."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # whatever is asked for, nothing leaves the machine
    "--allow-file-access-from-files",  # so that the frame may look into the page
    "--virtual-time-budget=5000",
)
FRAME = """\
<!DOCTYPE html>
<iframe src="page.html" style="width: %dpx; height: 844px; border: 0"></iframe>
<script>
const box = each => each.getBoundingClientRect();
// This page is loaded when the one in the frame is.
window.addEventListener("load", () => {
  const frame = document.querySelector("iframe");
  const page = frame.contentDocument, root = page.documentElement;
  page.querySelectorAll("details").forEach(each => { each.open = true; });
  const letters = [...page.querySelectorAll("svg text")].map(each => box(each).height);
  document.body.textContent = JSON.stringify({
    width: root.clientWidth,
    needed: root.scrollWidth,
    plots: [...page.querySelectorAll("svg")].filter(each => box(each).height > 100).length,
    letters: Math.min(1000, ...letters.filter(height => height > 0)),
    fetched: frame.contentWindow.performance.getEntriesByType("resource").map(each => each.name),
    ground: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
  });
});
</script>
"""


class Seen(NamedTuple):
    """A page in a browser with everything unfolded; lengths in CSS pixels."""

    width: int
    needed: int
    """Width of the content; more than ``width`` has to be scrolled sideways."""
    plots: int
    """Number of plots that are more than 100 pixels high."""
    letters: float
    """Height of the lowest line of text in a plot."""
    fetched: list[str]
    """Addresses that the page fetched."""
    ground: str
    refused: list[str]
    """Actions that the content security policy of the page refused."""


def look(page: str, folder: Path, width: int, *, dark: bool = False) -> Seen:
    """Open a page, or skip the test where there is no browser."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(
            f"NOBODY HAS LOOKED AT THE PAGE: none of {', '.join(NAMES)} is installed;"
            " what can be said without a browser, tests/sim/test_report*.py say"
        )
    (folder / "page.html").write_text(page, encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(FRAME % width, encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [found, *FLAGS, scheme, profile, "--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = re.search(r"<body>(.*)</body>", done.stdout, re.DOTALL)
    assert said, done.stderr[-2000:]
    refused = [line for line in done.stderr.splitlines() if "Content Security Policy" in line]
    return Seen(**json.loads(html.unescape(said[1])), refused=refused)
