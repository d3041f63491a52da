"""``--html``: a timed run, or comparisons with the reference, as one page that needs nothing.

At night a browser looks at the pages, that of ``straggler report`` as well.
"""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sim.report.page import POLICY
from tests.straggler.command import Straggler
from tests.straggler.test_report import store

FAULTS = "slow worker-1 1s 2s 4; fail worker-0 4s 1s; duplicate source-0 9 5"
SMALL = ("--set", "messages=200", "--set", "tasks=6", "--set", f"faults={FAULTS}")
MODEL, BUGGY = "model.slack:make_system", "model.slack.variants:lost_update"
STREAM = "event_time,value,key\n" + "".join(f"{at},1,k\n" for at in (1, 9, 2, 12, 30, 11, 40))
ASK = ("diff", "slack", "--time-unit", "s", "--per", "key", "--control", "fixed", "--system", BUGGY)


def read(folder: Path) -> str:
    """Return a page, which is whole and needs nothing."""
    page = (folder / "run.html").read_text(encoding="utf-8")
    names = re.findall(r'\bid="([^"]*)"', page)
    assert len(set(names)) == len(names)
    assert {link for link in re.findall(r'href="([^"]*)"', page) if link[1:] not in names} == set()
    assert html.unescape(page).count(POLICY) == 1
    assert not re.search(r"https?:|@import|javascript:|data:|<script|<img|<image", page)
    return page


def test_a_broken_comparison_shows_its_counterexample_and_escapes_names(
    straggler: Straggler, tmp_path: Path
) -> None:
    name = "<img src=x>&\"'.csv"
    (tmp_path / name).write_text(STREAM.replace(",k\n", ",<b>key\n"), encoding="utf-8")
    chosen = ("--aggregate", "sum", "--reference", "model", "--level", "steps")
    assert straggler(*ASK, "--input", name, *chosen, "--html", "run.html").code == 1
    page = read(tmp_path)
    for said in (
        "</span>broken</span>",
        "One writer: The stream wrote the window",
        "run it again with: straggler replay counterexamples",
        "slack: &lt;img src=x&gt;&amp;&#34;&#39;.csv",
        "&lt;b&gt;key",
    ):
        assert said in page


# ------------------------------------------------------------------------------------ in a browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--hide-scrollbars", "--enable-logging=stderr", "--virtual-time-budget=5000"),
    "--host-resolver-rules=MAP * ~NOTFOUND",  # whatever is asked for, nothing leaves the machine
    "--allow-file-access-from-files",  # so that the frame may look into the page
)
FRAME = """\
<!DOCTYPE html>
<iframe src="page.html" style="width: %dpx; height: 844px; border: 0"></iframe>
<script>
const height = each => each.getBoundingClientRect().height;
// This page is loaded when the one in the frame is.
window.addEventListener("load", () => {
  const frame = document.querySelector("iframe");
  const page = frame.contentDocument, root = page.documentElement;
  page.querySelectorAll("details").forEach(each => { each.open = true; });
  const letters = [...page.querySelectorAll("svg text")].map(height).filter(each => each > 0);
  document.body.textContent = JSON.stringify({
    fits: root.scrollWidth <= root.clientWidth,
    plots: [...page.querySelectorAll("svg")].filter(each => height(each) > 100).length,
    can_be_read: Math.min(...letters) >= 8,
    fetched: frame.contentWindow.performance.getEntriesByType("resource").map(each => each.name),
  });
});
</script>
"""


def look(page: str, folder: Path, width: int) -> dict[str, Any]:
    """Open a page with everything unfolded, or skip the test where there is no browser."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"NOBODY HAS LOOKED AT THE PAGE: none of {', '.join(BROWSERS)} is installed")
    (folder / "page.html").write_text(page, encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(FRAME % width, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [found, *FLAGS, profile, "--dump-dom", frame.as_uri()],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    said = re.search(r"<body>(.*)</body>", done.stdout, re.DOTALL)
    assert said, done.stderr[-2000:]
    assert "Content Security Policy" not in done.stderr
    seen: dict[str, Any] = json.loads(html.unescape(said[1]))
    return seen


@pytest.mark.long
@pytest.mark.parametrize(
    "command",
    [
        ("sim", "slack", *SMALL, "--html"),
        ("sim", "grouping", "--set", "policies=tag,key", "--html"),
        (*ASK, "--input", "s.csv", "--aggregate", "sum", "--html"),
        ("report", "--output"),
    ],
)
def test_a_browser_shows_every_plot_and_fetches_nothing(
    straggler: Straggler, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "s.csv").write_text(STREAM, encoding="utf-8")
    store(tmp_path / "sweeps")
    assert straggler(*command, "run.html").code in (0, 1)
    page = read(tmp_path)
    plots = page.count("<svg")
    assert plots >= 5
    for width in (320, 1280):
        seen = look(page, tmp_path, width)
        assert seen == {"fits": True, "plots": plots, "can_be_read": True, "fetched": []}
