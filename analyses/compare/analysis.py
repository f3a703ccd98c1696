"""Which of two or more is better? Paired differences on common questions; beyond the separable-law paper."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from analyses.clusters import find_clusters
from analyses.compare.flips import flips_tables
from analyses.compare.macro import measure_both
from analyses.compare.panel import panel
from analyses.compare.sides import axes_of, find_sides, load_configurations
from analyses.compare.tables import by_table, decide, models_table, pairs_table
from analyses.compare.units import COLUMNS, load_rows, make_units
from analyses.compare.words import compared, headline_of, nothing_in_common, warnings_of
from analyses.grouping import factorise
from analyses.opening import nothing, opened
from analyses.parameters import AnalysisParameters
from analyses.result import Charts
from tracker.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.answers import AskedQuestions
    from analyses.compare.panel import Panel
    from analyses.compare.sides import Side
    from analyses.result import Result
    from analyses.session import StarSession

NAME = "compare"
By = Literal["suite", "benchmark", "task", "category", "domain", "skill"]


class Parameters(AnalysisParameters):
    """Options of the comparison."""

    sides: tuple[str, ...] = Field(
        default=(),
        description="models, MODEL@SETTING=VALUE,..., MODEL@* (each of its configurations), or run:ID; none: every model",
        json_schema_extra={"argument": "[MODEL | MODEL@SETTING=VALUE | MODEL@* | run:ID]..."},
    )
    common: Literal["pairwise", "all"] = Field(
        default="pairwise", description="questions that a pair has in common, or only those that all sides have in common"
    )
    pairs: Literal["all", "first"] = Field(default="all", description="all pairs, or only those with the first side (a baseline)")
    test: Literal["auto", "mcnemar", "t", "cluster"] = Field(
        default="auto",
        description="auto: exact McNemar where every credit is 0 or 1, else exact sign flips where at most 20 images differ and the paired "
        "t-test where more do; cluster: t-test with image clusters (p_cluster stands beside p always)",
    )
    draws: int = Field(default=10_000, ge=0, le=1_000_000, description="resampled sets of image clusters behind the intervals")
    by: tuple[By, ...] = Field(
        default=("suite", "task"), description="labels to break the differences down by; repeatable or comma-separated"
    )
    pair: tuple[int, int] = Field(default=(1, 2), description="the two sides whose flips are listed, by place in the table models")
    min_difference: float = Field(default=0.0, ge=0, le=1, description="credits must differ by so much to be listed as a flip (0: at all)")


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
        if not len(compared(table)):
            raise nothing_in_common(sides, units, parameters.common)
        asked = np.zeros(len(rows.questions), dtype=bool)
        asked[compared(table)] = True
        clusters = find_clusters(rows.questions, asked)
        groups = _groups(table, rows.questions, parameters.by)
        pairs = _pairs(len(sides), parameters)
        ((whole, of_sides), *of_groups), macro = measure_both(
            [table, *(part for _, _, part in groups)],
            np.unique(rows.questions.text["benchmark"].astype(str), return_inverse=True)[1],
            clusters,
            pairs,
            draws=parameters.draws,
            seed=parameters.seed,
        )
        flips, answers = flips_tables(session, sides, there, units, table, rows, flipping, parameters.min_difference)
    names = [side.name for side in sides]
    used = units.used(common=parameters.common, baseline=parameters.pairs == "first")
    (decisions,) = decide([whole], parameters.test)
    labelled = [(name, value, part) for (name, value, _), (part, _) in zip(groups, of_groups, strict=True)]
    tables = {
        "models": models_table(sides, used, of_sides, whole, pairs, decisions),
        "pairs": pairs_table(names, pairs, whole, macro, decisions),
        "by": by_table(names, pairs, labelled, decide([part for _, _, part in labelled], parameters.test)),
        "flips": flips,
        "flip_answers": answers,
    }
    return one.result(
        rows=len(rows),
        digest=rows.digest(there),
        headline=headline_of(parameters.common, sides, there, axes, units, table, clusters, tables),
        tables=tables,
        charts=_charts(tables),
        warnings=warnings_of(sides, there, axes, used, table, pairs, whole, of_sides, decisions.tests, parameters.test),
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


def _charts(tables: dict[str, Any]) -> Charts:
    def draw(name: str) -> Any:
        from analyses.compare import charts as compare_charts

        return getattr(compare_charts, name)(tables)

    names = ("groups",) if len(tables["models"]) == 2 else ("matrix", "forest")
    return Charts({name: partial(draw, name) for name in names})
