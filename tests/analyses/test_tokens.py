"""Visual tokens over input sizes: every number by loops over the answers, and what is missing."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import pytest

from analyses.plot import svg
from analyses.tokens import Parameters, run
from tests.analyses.known import known
from tests.analyses.planted import session
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from analyses.result import Result

SIZES = {"S1": (224, 448, 896), "S2": (224, 448), "S3": (224, 448, 896)}


def tokens_of(series: str, model: int, question: int, size: int) -> int | None:
    """Tiles that mostly stay, or a count that follows the pixels and dips once."""
    if series == "Tile":
        return 256 * (1 + question % 4 + (size >= 896 and question % 5 == 0) + (size == 448 and question % 7 == 0))
    if (question, size) == (3, 448):
        return None
    return (size // 14) ** 2 // 4 + question - (200 if model == 1 and size == 448 else 0)


def rows(**changes: Any) -> list[dict[str, Any]]:
    made = []
    for suite, sizes in SIZES.items():
        for series, models in {"Tile": (1, 2), "Patch": (1, 2, 3)}.items():
            for model in models:
                for size in sizes:
                    for question in range(20):
                        row: dict[str, Any] = {
                            "question_id": 100 * list(SIZES).index(suite) + question,
                            "question_key": f"q{question:02}",
                            "benchmark": f"{suite}-bench",
                            "suite": suite,
                            "series": series,
                            "family": f"{series} family",
                            "model": f"{series}-{model}",
                            "parameters": model * 10**9,
                            "configuration_id": 1000 * (series == "Tile") + 100 * model + size % 97,
                            "input_mode": "fixed",
                            "input_size": size,
                            "visual_tokens": tokens_of(series, model, question, size),
                            "credit": 1.0,
                        }
                        row["run_id"] = 10_000 * list(SIZES).index(suite) + row["configuration_id"]
                        made.append(row | changes)
    return made


def answer(given: list[dict[str, Any]] | None = None, **options: Any) -> Result:
    return run(session(rows() if given is None else given), Parameters(**options))


def counts(given: list[dict[str, Any]], sizes: tuple[int, ...]) -> dict[tuple[str, str], dict[int, list[int]]]:
    """Tokens at the sizes, by model and benchmark, of the questions that state them at all."""
    found: dict[tuple[str, str], dict[int, dict[int, Any]]] = defaultdict(lambda: defaultdict(dict))
    for row in given:
        if row["input_size"] in sizes:
            found[row["model"], row["benchmark"]][row["question_id"]][row["input_size"]] = row["visual_tokens"]
    return {
        key: {q: [at[size] for size in sizes] for q, at in questions.items() if len(at) == len(sizes) and None not in at.values()}
        for key, questions in found.items()
    }


def test_unchanged_questions_equal_loops_over_the_answers() -> None:
    result = answer()
    expected = counts(rows(), (224, 448))
    table = {(row["model"], row["benchmark"]): row for row in result.tables["unchanged"].rows()}
    for key, questions in expected.items():
        same = [one[0] == one[-1] for one in questions.values()]
        assert (table[key]["questions"], table[key]["ends"], table[key]["all"]) == (len(same), fmean(same), fmean(same))
        assert (table[key]["sizes"], table[key]["smallest"], table[key]["largest"]) == (2, 224, 448)
    whole = [one[0] == one[-1] for (model, _), questions in expected.items() if model == "Tile-1" for one in questions.values()]
    assert table["Tile-1", None]["all"] == fmean(whole)
    assert result.headline["unchanged_all_Tile"] == fmean(whole)
    assert result.headline["shared_sizes"] == 2


def test_a_count_that_comes_back_is_unchanged_at_the_ends_alone() -> None:
    given = [row for row in rows() if row["suite"] != "S2"]
    result = answer(given)
    expected = counts(given, (224, 448, 896))
    for row in result.tables["unchanged"].rows():
        if row["benchmark"] is not None:
            some = list(expected[row["model"], row["benchmark"]].values())
            assert row["ends"] == fmean(one[0] == one[-1] for one in some)
            assert row["all"] == fmean(len(set(one)) == 1 for one in some)
            assert row["falling"] == fmean(any(b < a for a, b in pairwise(one)) for one in some)
    tile = next(row for row in result.tables["unchanged"].rows() if row["model"] == "Tile-1")
    assert tile["ends"] > tile["all"] > 0


def test_spans_equal_loops_over_the_cells() -> None:
    result = answer()
    cells: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for suite, sizes in SIZES.items():
        for series, models in {"Tile": (1, 2), "Patch": (1, 2, 3)}.items():
            for model in models:
                for size in sizes:
                    known = [value for q in range(20) if (value := tokens_of(series, model, q, size)) is not None]
                    cells[series, suite].append((size, fmean(known)))
    spans = {}
    for row in result.tables["spans"].rows():
        mine = cells[row["series"], row["suite"]]
        spans[row["series"], row["suite"]] = max(mean for _, mean in mine) / min(mean for _, mean in mine)
        shared = [mean for size, mean in mine if size <= 448]
        assert row["span"] == pytest.approx(spans[row["series"], row["suite"]])
        assert row["shared_span"] == pytest.approx(max(shared) / min(shared))
        assert (row["cells"], row["family"]) == (len(mine), f"{row['series']} family")
        assert (row["lowest"], row["highest"]) == pytest.approx((min(mean for _, mean in mine), max(mean for _, mean in mine)))
    medians = {row["family"]: row for row in result.tables["medians"].rows()}
    for series in ("Tile", "Patch"):
        mine_ = [span for (name, _), span in spans.items() if name == series]
        assert medians[f"{series} family"]["span_median"] == pytest.approx(median(mine_))
        assert (medians[f"{series} family"]["span_min"], medians[f"{series} family"]["span_max"]) == pytest.approx((min(mine_), max(mine_)))
        assert result.headline[f"median_span_{series} family"] == pytest.approx(median(mine_))


def test_decreases_equal_loops_over_questions_at_both_sizes() -> None:
    expected = []
    for low, high in ((224, 448), (448, 896)):
        for (model, benchmark), questions in counts(rows(), (low, high)).items():
            if len(next(iter(questions.values()), [])) == 2:
                here, there = (fmean(one[place] for one in questions.values()) for place in (0, 1))
                if there < here:
                    expected.append((model, benchmark, low, high, len(questions), here, there))
    names = ("model", "benchmark", "size", "next_size", "questions", "tokens", "next_tokens")
    found = [tuple(row[name] for name in names) for row in answer().tables["decreases"].rows()]
    assert sorted(found) == sorted(expected)
    assert {row[0] for row in found} == {"Patch-1"}
    assert answer().headline["decreases"] == 3


def test_a_mean_that_falls_is_a_decrease() -> None:
    given = [
        row | {"visual_tokens": 30 - (row["input_size"] == 448) if row["model"] == "Patch-2" else row["visual_tokens"]} for row in rows()
    ]
    found = [row for row in answer(given).tables["decreases"].rows() if row["model"] == "Patch-2"]
    assert [(row["benchmark"], row["size"], row["next_size"], row["tokens"], row["next_tokens"]) for row in found] == [
        (f"{suite}-bench", 224, 448, 30.0, 29.0) for suite in ("S1", "S2", "S3")
    ]


def test_a_lost_answer_is_no_decrease() -> None:
    given = [row for row in rows() if not (row["series"] == "Tile" and row["input_size"] == 448 and row["question_key"] == "q19")]
    steady = [row | {"visual_tokens": 256 * (1 + int(row["question_key"][1:]) % 4)} for row in given]
    assert len(answer(steady).tables["decreases"]) == 0


def test_named_models_are_compared_on_their_common_questions() -> None:
    result = answer(models=("Tile-1", "Patch-2"))
    table = {(row["model"], row["benchmark"]): row for row in result.tables["pair"].rows()}
    expected = counts(rows(), (224, 448))
    for suite in SIZES:
        common = expected["Tile-1", f"{suite}-bench"].keys() & expected["Patch-2", f"{suite}-bench"].keys()
        assert len(common) == 19
        same = [len(set(expected["Tile-1", f"{suite}-bench"][question])) == 1 for question in common]
        row = table["Tile-1", f"{suite}-bench"]
        assert (row["questions"], row["all_count"], row["ends_count"], row["all"]) == (19, sum(same), sum(same), pytest.approx(fmean(same)))
    assert table["Patch-2", None]["questions"] == 57
    assert table["Patch-2", None]["all_count"] == 0
    assert result.headline["questions_Tile-1"] == 57


def test_a_model_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="Tile-9"):
        answer(models=("Tile-9",))


def test_an_earlier_attempt_does_not_count_twice() -> None:
    given = rows(counts=True, attempt=1)
    again = [row | {"attempt": 0, "counts": False, "visual_tokens": 1} for row in given if row["question_key"] == "q05"]
    whole, more = answer(given), answer(given + again)
    assert more.tables["unchanged"].rows() == whole.tables["unchanged"].rows()


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        ({"visual_tokens": None}, "Tile x S1: 6 of 6 cells state no visual_tokens"),
        ({"input_size": None}, "Tile x S1: no cell states its input size"),
        ({"input_size": 224}, "Tile x S1: one input size, so there is no change to speak of"),
    ],
    ids=["tokens", "sizes", "one size"],
)
def test_what_is_missing_is_named_by_group(change: dict[str, Any], warning: str) -> None:
    given = [row | change if row["series"] == "Tile" and row["suite"] == "S1" else row for row in rows()]
    result = answer(given)
    assert warning in result.warnings
    assert not [row for row in result.tables["unchanged"].rows() if row["series"] == "Tile" and row["benchmark"] == "S1-bench"]
    assert [row for row in result.tables["unchanged"].rows() if row["series"] == "Patch" and row["benchmark"] == "S1-bench"]
    json.dumps(result.envelope())
    svg(result.charts["ranges"])


def test_a_study_without_tokens_or_shared_sizes_still_answers() -> None:
    result = answer(rows(visual_tokens=None))
    assert "no model has visual tokens at two input sizes of a benchmark" in result.warnings
    assert [len(result.tables[name]) for name in ("unchanged", "decreases")] == [0, 0]
    assert {row["span"] for row in result.tables["spans"].rows()} == {None}
    svg(result.charts["ranges"])
    apart = [row | {"input_size": row["input_size"] + list(SIZES).index(row["suite"])} for row in rows()]
    result = answer(apart)
    assert "no input size is shared by all suites: spans over shared sizes are empty" in result.warnings
    assert {row["shared_span"] for row in result.tables["spans"].rows()} == {None}
    with pytest.raises(AnalysisError, match="no scored answer"):
        answer(where="series = 'nobody'")


def test_the_chart_names_every_group_and_span() -> None:
    result = answer()
    text = svg(result.charts["ranges"])
    for row in result.tables["spans"].rows():
        assert f"{row['series']} x {row['suite']}" in text
        assert f"{row['span']:.3g}x" in text


def test_the_papers_shares_are_shares_of_its_questions() -> None:
    row = known("tokens")[0]
    shares = [float(part) for part in row.recomputed.split(";")]
    assert [round(100 * count / row.inputs["n"], 2) for count in (2223, 2214)] == shares
