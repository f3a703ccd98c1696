"""Which of two or more is better? Paired differences on common questions; beyond the separable-law paper."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from analyses.clusters import find_clusters
from analyses.compare.flips import flips_table
from analyses.compare.pairs import measure
from analyses.compare.panel import panel
from analyses.compare.sides import axes_of, differing, find_sides, load_configurations
from analyses.compare.tables import by_table, models_table, p_values, pairs_table
from analyses.compare.units import COLUMNS, load_rows, make_units
from analyses.grouping import factorise
from analyses.opening import nothing, opened
from analyses.paired import holm
from analyses.parameters import AnalysisParameters
from analyses.result import Charts
from tracker.errors import AnalysisError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.answers import AskedQuestions
    from analyses.clusters import Clusters
    from analyses.compare.pairs import Pairs, Sides
    from analyses.compare.panel import Panel
    from analyses.compare.sides import Side
    from analyses.compare.units import Rows, Units
    from analyses.result import Result
    from analyses.session import StarSession

NAME = "compare"
By = Literal["suite", "benchmark", "task", "category", "domain", "skill"]
ALIGNMENT = {
    "pairwise": "each pair on the questions that both of its sides have a score for, at the same settings",
    "all": "every pair on the questions that all sides have a score for, at the same settings",
}
NOTABLE = 1.2
"""Design effect above which a test that takes questions as independent is warned of."""
SHOWN = 5


class Parameters(AnalysisParameters):
    """Options of the comparison."""

    sides: tuple[str, ...] = Field(
        default=(),
        description="models, MODEL@SETTING=VALUE,..., or run:ID; none: every model",
        json_schema_extra={"argument": "[MODEL | MODEL@SETTING=VALUE | run:ID]..."},
    )
    common: Literal["pairwise", "all"] = Field(
        default="pairwise", description="questions that a pair has in common, or only those that all sides have in common"
    )
    pairs: Literal["all", "first"] = Field(default="all", description="all pairs, or only those with the first side (a baseline)")
    test: Literal["auto", "mcnemar", "t", "cluster"] = Field(
        default="auto",
        description="auto: exact McNemar where every credit is 0 or 1, else the paired t-test; cluster: t-test with image clusters",
    )
    draws: int = Field(default=10_000, ge=0, le=1_000_000, description="resampled sets of image clusters behind the intervals")
    by: tuple[By, ...] = Field(default=("suite", "task"), description="labels to break the differences down by")
    pair: tuple[int, int] = Field(default=(1, 2), description="the two sides whose flips are listed, by place in the table models")


def run(session: StarSession, parameters: Parameters) -> Result:
    """Compare the sides on what they have in common."""
    with opened(session, NAME, parameters, cohort="compare", columns=COLUMNS) as one:
        there = load_configurations(session)
        if not there.model:
            raise nothing(parameters)
        rows = load_rows(session, there)
        runs = dict(zip(rows.run.tolist(), rows.configuration.tolist(), strict=True))
        sides = find_sides(session, parameters.sides, there, runs)
        flipping = _chosen(parameters, sides)
        axes = axes_of(sides, there)
        units = make_units(sides, there, axes, rows)
        table = panel(units.credit, units.question, parameters.common)
        if not len(table.even_question) + len(table.uneven_question):
            raise _nothing_in_common(sides, units, parameters)
        clusters = find_clusters(rows.questions, _used(table, rows))
        groups = _groups(table, rows.questions, parameters.by)
        pairs = _pairs(len(sides), parameters)
        (whole, of_sides), *of_groups = measure(
            [table, *(part for _, _, part in groups)], clusters, pairs, draws=parameters.draws, seed=parameters.seed
        )
        flips = flips_table(session, sides, there, units, table, rows, flipping)
    names = [side.name for side in sides]
    p, tests = p_values(whole, parameters.test)
    adjusted = holm(p)
    tables = {
        "models": models_table(sides, of_sides, whole, pairs, adjusted),
        "pairs": pairs_table(names, pairs, whole, p, adjusted, tests),
        "by": by_table(
            names, pairs, [(name, value, part) for (name, value, _), (part, _) in zip(groups, of_groups, strict=True)], parameters.test
        ),
        "flips": flips,
    }
    return one.result(
        rows=len(rows),
        digest=_digest(rows, units, names),
        headline=_headline(parameters, names, axes, units, table, clusters, tables),
        tables=tables,
        charts=_charts(tables),
        warnings=[
            *differing(sides, there, axes),
            *_warnings(names, pairs, whole, of_sides, tests, sides, parameters),
        ],
    )


def _chosen(parameters: Parameters, sides: Sequence[Side]) -> tuple[int, int]:
    first, second = parameters.pair
    if first == second or not (1 <= first <= len(sides) and 1 <= second <= len(sides)):
        message = f"expected two different places from 1 to {len(sides)}, found {first},{second}"
        raise UsageError(message, where="--pair")
    return first - 1, second - 1


def _pairs(sides: int, parameters: Parameters) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    i, j = np.triu_indices(sides, 1)
    keep = i == 0 if parameters.pairs == "first" else np.ones(len(i), dtype=bool)
    return i[keep], j[keep]


def _used(table: Panel, rows: Rows) -> npt.NDArray[np.bool_]:
    used = np.zeros(len(rows.questions), dtype=bool)
    used[table.even_question] = used[table.uneven_question] = True
    return used


def _groups(table: Panel, questions: AskedQuestions, by: Sequence[str]) -> list[tuple[str, str | None, Panel]]:
    """The panel of the questions with each value of each label."""
    groups = []
    used = np.concatenate([table.even_question, table.uneven_question])
    for name in dict.fromkeys(by):
        values = questions.text[name]
        factor = factorise(np.ma.array(values, mask=np.array([value is None for value in values.tolist()])))
        groups += [
            (name, value, table.take(factor.codes == code))
            for code, value in enumerate(factor.labels)
            if (factor.codes[used] == code).any()
        ]
    return groups


def _nothing_in_common(sides: Sequence[Side], units: Units, parameters: Parameters) -> AnalysisError:
    """What each side answered, so that the user sees why there is nothing to compare."""
    what = "no question has a score of all sides" if parameters.common == "all" else "no question has a score of two sides"
    parts = []
    for side, credit in zip(sides[:SHOWN], units.credit, strict=False):
        answered = ~np.isnan(credit)
        choices = [units.settings[choice] for choice in np.unique(units.choice[answered]).tolist() if units.settings[choice]]
        at = f" at {'; '.join(choices[:SHOWN])}" if choices else ""
        parts.append(f"{side.name} has {len(np.unique(units.question[answered])):,} questions{at}")
    return AnalysisError(
        f"{what} at the same settings", hint=". ".join(parts) + ". MODEL@SETTING=VALUE chooses one configuration of each side"
    )


def _digest(rows: Rows, units: Units, names: Sequence[str]) -> str:
    """SHA-256 over names, natural keys and credits of the units."""
    import hashlib

    digest = hashlib.sha256("\x1f".join([*names, *units.settings]).encode())
    for name in ("benchmark", "question_key", "image_key", "pair_key"):
        digest.update("\x1f".join(map(str, rows.questions.text[name].tolist())).encode() + b"\x1e")
    for codes in (units.question, units.choice):
        digest.update(codes.astype("<i8").tobytes())
    digest.update(np.ascontiguousarray(units.credit).astype("<f8").tobytes())
    return digest.hexdigest()


def _headline(
    parameters: Parameters,
    names: Sequence[str],
    axes: Sequence[str],
    units: Units,
    table: Panel,
    clusters: Clusters,
    tables: dict[str, Any],
) -> dict[str, Any]:
    pairs = tables["pairs"].rows()
    compared = np.unique(np.concatenate([table.even_question, table.uneven_question]))
    used = np.unique(units.choice[((~np.isnan(units.credit)).sum(axis=0) > 1)])
    headline: dict[str, Any] = {
        "alignment": ALIGNMENT[parameters.common],
        "settings": "; ".join(units.settings[choice] for choice in used.tolist()) if axes else "the only ones of every side",
        "sides": len(names),
        "pairs": len(pairs),
        "questions": len(compared),
        "images": len(clusters),
    }
    if len(names) == 2:
        shown = ("a", "b", "accuracy_a", "accuracy_b", "wins", "losses", "difference", "difference_low", "difference_high", "test", "p")
        return headline | {name: pairs[0][name] for name in (*shown, "smallest_detectable")}
    models = tables["models"].rows()
    best = max(models, key=lambda row: -1.0 if row["accuracy"] is None else row["accuracy"])
    return headline | {
        "best": best["side"],
        "best_accuracy": best["accuracy"],
        "decided_pairs": sum(row["p_holm"] is not None and row["p_holm"] < 0.05 for row in pairs),
    }


def _warnings(
    names: Sequence[str],
    pairs: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    whole: Pairs,
    of_sides: Sides,
    tests: Sequence[str],
    sides: Sequence[Side],
    parameters: Parameters,
) -> list[str]:
    warnings = []
    apart = [f"{names[i]} and {names[j]}" for i, j, n in zip(*pairs, whole.n, strict=True) if not n]
    if apart:
        warnings.append(f"no common question: {_some(apart)}")
    alone = [name for name, n in zip(names, of_sides.n.tolist(), strict=True) if not n]
    if alone:
        warnings.append(f"nothing in common with any other side: {_some(alone)}")
    first: dict[tuple[int, ...], str] = {}
    twins = [(first.setdefault(side.configurations, side.name), side.name) for side in sides if side.run is None]
    warnings += [f"{one} and {other} are the same configurations" for one, other in twins if one != other]
    if parameters.test == "mcnemar" and "t" in tests:
        warnings.append(
            "exact McNemar needs credits of 0 or 1: pairs with means over settings or repetitions, or with partial credit, have a paired t-test"
        )
    shared = (whole.clusters < whole.n) & (whole.design_effect > NOTABLE)
    if parameters.test != "cluster" and shared.any():
        effect = float(np.median(whole.design_effect[shared]))
        warnings.append(
            f"questions share images, which makes the variance of {int(shared.sum()):,} of {len(shared):,} differences larger "
            f"({effect:.2g} times in the median): p takes questions as independent, the intervals do not (--test cluster)"
        )
    return warnings


def _some(names: Sequence[str]) -> str:
    return "; ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _charts(tables: dict[str, Any]) -> Charts:
    def draw(name: str) -> Any:
        from analyses.compare import charts as compare_charts

        return getattr(compare_charts, name)(tables)

    names = ("groups",) if len(tables["models"]) == 2 else ("matrix", "forest")
    return Charts({name: partial(draw, name) for name in names})
