from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from analyses.ceiling import Parameters, run
from analyses.plot import FORMATS, figure, save_plot
from analyses.report import report, save_report
from tests.analyses import messy
from tests.analyses.planted import session, study
from tracker.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from analyses.result import Result

NASTY = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def result() -> Result:
    rows = [row | {"domain": NASTY, "skill": "<b>", "series": NASTY if row["series"] == "A" else "B"} for row in messy.rows(0, gaps=False)]
    return run(session(rows), Parameters())


@pytest.mark.parametrize("suffix", FORMATS)
def test_charts_go_into_a_file_of_each_format(result: Result, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "new" / f"figure.{suffix}"
    save_plot(result, path)
    head = path.read_bytes()[:15]
    assert {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>"}[suffix] in head


def test_other_formats_are_refused(result: Result, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.svg, \.png, \.html"):
        save_plot(result, tmp_path / "figure.pdf")


def test_pages_need_no_network_and_names_cannot_break_out(result: Result, tmp_path: Path) -> None:
    save_plot(result, tmp_path / "figure.html")
    save_report(result, tmp_path / "report.html")
    plot, page = ((tmp_path / name).read_text(encoding="utf-8") for name in ("figure.html", "report.html"))
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)\s*=\s*[\"']?https?:", plot + page)
    assert "alert(1)</script>" not in plot.split("</script>")[-2]
    assert plot.count("<script>draw(") == 1
    assert "<script" not in page


def test_report_shows_tables_warnings_and_provenance(result: Result) -> None:
    page = report(result.warn("look <here>"))
    assert "look &lt;here&gt;" in page
    assert result.cohort.digest in page
    assert "from answers" in page
    for table in result.tables.values():
        assert f"<h2>{html.escape(table.title)}</h2>" in page
    assert page.count("<svg") >= 1


def test_a_large_study_draws_few_marks() -> None:
    large = run(study(0.5), Parameters())
    assert large.headline["trajectories"] > 9000
    assert len(json.dumps(figure(large).to_dict())) < 600_000


@pytest.mark.parametrize("column", ["p_gold", "visual_tokens", "n_options"])
def test_charts_draw_without_a_signal(column: str, tmp_path: Path) -> None:
    bare = run(session([row | {column: None} for row in messy.rows(0, gaps=False)]), Parameters())
    save_plot(bare, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 1000


def test_chart_data_is_what_the_tables_say(result: Result) -> None:
    spec: dict[str, Any] = result.charts["gain"].to_dict()
    counted = sum(row["trajectories"] for row in spec["data"]["values"])
    assert counted == result.headline["matched_trajectories"]
    assert list(result.charts) == ["probability", "gain", "quartiles", "shares"]
