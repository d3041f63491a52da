"""The examples of docs/your-system.md run: an implementation and the report of its mistake."""

from pathlib import Path

import pytest

from tests.house.repository import ROOT
from tests.properties.straggler import Done, Straggler

PAGE = (ROOT / "docs" / "your-system.md").read_text(encoding="utf-8")
CODE, PROGRAM, _ = (text.partition("```")[0] for text in PAGE.split("```python\n")[1:])
ORDERS = "event_time,key,value\n10,a,1\n20,a,2\n15,b,3\n60,a,4\n"
TRADES = "event_time,key,value\n12,a,7\n30,a,5\n16,b,1\n2,a,9\n65,a,3\n"


def judge(name: str, code: str, straggler: Straggler, folder: Path) -> Done:
    (folder / "orders.csv").write_text(ORDERS, encoding="utf-8")
    (folder / "trades.csv").write_text(TRADES, encoding="utf-8")
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    line = PAGE.partition("    straggler diff ")[2].partition("\n\n")[0].replace("\\", "")
    return straggler("diff", *line.replace('"', "").replace("mine:", f"{name}:").split())


def test_the_example_does_what_is_promised(
    straggler: Straggler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    done = judge("on_the_page", CODE, straggler, tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "agrees with the reference in 4 matches, each found once, and in 2 rejected" in done.out


def test_the_report_of_a_mistake_is_the_one_that_is_shown(
    straggler: Straggler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    wrong = CODE.replace("<= config.window_us", "< config.window_us")
    assert wrong != CODE
    done = judge("on_the_page_but_wrong", wrong, straggler, tmp_path)
    assert done.code == 1
    shown = PAGE.partition("    no pair lost: ")[2].partition("\n\n")[0]
    for line in shown.splitlines():
        said = line.strip().removesuffix(", ...").partition("counterexamples/")[0]
        assert said in done.out, line


def test_the_program_judges_the_system(capsys: pytest.CaptureFixture[str]) -> None:
    exec(CODE + PROGRAM, {})
    assert capsys.readouterr().out == "holds\n"
