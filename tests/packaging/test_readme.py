"""What README shows is what happens."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.conftest import ROOT
from tests.packaging import readme

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_outputs_are_what_the_commands_print(tmp_path: Path) -> None:
    """Write them again with `make readme`, then read the diff."""
    shown = readme.README.read_text(encoding="utf-8")
    assert len(readme.BLOCK.findall(shown)) == 5
    assert readme.comparable(readme.written(shown, tmp_path)) == readme.comparable(shown)


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", readme.README.read_text(encoding="utf-8"), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    row = {"model": "Qwen2.5-VL-7B", "benchmark": "V*Bench", "question_id": "17", "correct": True, "input_size": 1024}
    (tmp_path / "runs" / "answers.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    names: dict[str, Any] = {"questions": [SimpleNamespace(id="1", gold="A"), SimpleNamespace(id="2", gold="B")], "answer": lambda _: "A"}
    exec(code, names)  # noqa: S102 - our own README
    assert names["frame"].to_dict("records") == [{"model": "Qwen2.5-VL-7B", "input_size": 1024, "error": 0.0}]
    logged = names["t"].sql("select question_key, correct from answers where model = 'my-model' order by 1").fetchall()
    assert logged == [("1", True), ("2", False)]


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\((?!https?://)([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_of_the_docs_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    missing = [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "index.md" and f"({page.name})" not in index]
    assert missing == []
