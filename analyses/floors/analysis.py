"""Error floors by task: the separable law per series, suite and subset (separable-law paper, 3.1 and C.1; Tables 1, 18, 19)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from analyses.cells import fittable, study_of_cells
from analyses.floors.points import LABELS, SUBSET, Split, Weighting, subset_study
from analyses.law.fits import by_law, fit_groups
from analyses.law.options import FitParameters, points_of
from analyses.law.refusal import no_group_fitted
from analyses.law.tables import fitted_laws
from analyses.result import Charts, Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.law.fits import GroupFits
    from analyses.result import Result
    from analyses.session import StarSession

NAME = "floors"
PERCEPTION, REASONING = "perception", "reasoning"
NO_TASK = "none"


class Parameters(FitParameters):
    """Options of the floors analysis."""

    split: Split = Field(
        default="auto", description="subsets of a suite: auto (by task; by category where a suite has one task only), task, category, both"
    )
    weighting: Weighting = Field(
        default="paper",
        description="points of a fit: pooled (one per configuration), category (one per configuration and category, equally weighted), "
        "paper (category for MME-RealWorld, pooled elsewhere)",
    )
    floor_cutoff: float = Field(default=0.01, ge=0, le=1, description="a fit with e_inf at most this is counted as Floor")
    saturation_cutoff: float = Field(
        default=0.2, ge=0, le=1, description="a fit with e_inf, rounded to two decimals, at least this is counted as Saturation"
    )


def run(session: StarSession, parameters: Parameters) -> Result:
    """Fit every subset and summarise the floors by task and by series."""
    by = tuple(name for name in parameters.by if name not in LABELS)
    study = subset_study(
        study_of_cells(session, NAME, parameters, split=LABELS), by, split=parameters.split, weighting=parameters.weighting
    )
    keep, lacking = fittable(study)
    law = parameters.law(study.reference)
    fits = fit_groups(points_of(study, keep), by_law(law))
    if not fits.fitted.any():
        raise no_group_fitted(study, [*lacking, *fits.warnings])
    e_inf = determined_floors(fits, law.k)
    task = np.array([value or NO_TASK for value in study.groups.column("task")], dtype=object)
    at_floor, saturated = near_zero(e_inf, parameters.floor_cutoff), high(e_inf, parameters.saturation_cutoff)
    tasks = tasks_table(task, e_inf, at_floor, saturated)
    tables = {"fits": fits_table(fits, e_inf, at_floor, saturated), "tasks": tasks}
    if by:
        tables[by[0]] = means_table(by[0], study.groups.column(by[0]), task, e_inf)
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=_headline(tasks, fits, e_inf),
        tables=tables,
        charts=_charts(tables, by, parameters),
        warnings=[*study.warnings, *lacking, *fits.warnings],
        fits=fitted_laws(fits),
    )


def determined_floors(fits: GroupFits, k: int) -> npt.NDArray[np.float64]:
    """e_inf of each group; NaN without a fit, and where the group has too few levels of N or R to tell its k parameters apart."""
    return np.where(fits.fitted & (fits.k == k), fits.parameters["e"], np.nan)


def near_zero(e_inf: npt.NDArray[np.float64], cutoff: float) -> npt.NDArray[np.bool_]:
    """Whether a fit meets Floor: e_inf <= cutoff (3.1), compared at nine decimals; false where there is no fit."""
    return np.round(e_inf, 9) <= cutoff


def high(e_inf: npt.NDArray[np.float64], cutoff: float) -> npt.NDArray[np.bool_]:
    """Whether a fit meets Saturation: e_inf, rounded to two decimals, >= cutoff (C.1); false where there is no fit."""
    return np.round(e_inf, 2) >= cutoff


def fits_table(fits: GroupFits, e_inf: npt.NDArray[np.float64], at_floor: npt.NDArray[np.bool_], saturated: npt.NDArray[np.bool_]) -> Table:
    """One row per fit (Table 19 and the floors behind Table 1)."""
    by = fits.groups.by
    meanings = {SUBSET: "part of the suite's questions that is fitted", "task": "task of these questions; empty where none is stated"}
    columns = [
        *(Column(name, meanings.get(name, f"{name} of the group; empty where unknown")) for name in by),
        Column("e_inf", "error floor: the error that neither axis removes", "number"),
        Column("alpha", "exponent of N; empty where A_n is zero or N has one level", "number"),
        Column("beta", "exponent of R; empty where B_r is zero or R has one level", "number"),
        Column("A_n", "error that N adds at the reference N", "number"),
        Column("B_r", "error that R adds at the reference R", "number"),
        Column("sse", "sum of squared errors over the points", "number"),
        Column("r2", "1 - SSE/SST about the mean of the points", "share"),
        Column("n", "points: configurations, or configurations x categories", "count"),
        Column("alpha_at_bound", "bound of the search range that alpha lies at; empty inside"),
        Column("beta_at_bound", "bound of the search range that beta lies at; empty inside"),
        Column("floor", "whether e_inf is at most the floor cutoff; empty where it is not determined"),
        Column("saturation", "whether e_inf, rounded to two decimals, is at least the saturation cutoff; empty likewise"),
        Column("status", "fitted, exponents at bounds, what the points do not determine, or why there is no fit"),
    ]
    names = {"e_inf": "e", "alpha": "alpha", "beta": "beta", "A_n": "a", "B_r": "b"}
    data: dict[str, Any] = {name: fits.groups.column(name) for name in by}
    data |= {name: fits.parameters[key] for name, key in names.items()}
    data |= {"sse": fits.sse, "r2": fits.r2, "n": fits.n, "status": fits.status}
    data |= {f"{name}_at_bound": bound_names(fits, name) for name in ("alpha", "beta")}
    known = ~np.isnan(e_inf)
    data |= {
        name: [bool(value) if fine else None for value, fine in zip(values, known, strict=True)]
        for name, values in (("floor", at_floor), ("saturation", saturated))
    }
    return Table.of(f"Fits: L = e + A/N^alpha + B/R^beta per {' x '.join(by)}", columns, data, shown=60)


def bound_names(fits: GroupFits, exponent: str) -> list[str | None]:
    """The bound that an exponent lies at: lower, upper, or None inside."""
    return [{-1: "lower", 1: "upper"}.get(side) for side in fits.bound[exponent].tolist()]


def tasks_table(
    task: npt.NDArray[np.object_], e_inf: npt.NDArray[np.float64], at_floor: npt.NDArray[np.bool_], saturated: npt.NDArray[np.bool_]
) -> Table:
    """Floors by task (Table 1), and over all fits."""
    fitted = ~np.isnan(e_inf)
    rows: list[list[Any]] = []
    for name in [*sorted(set(task[fitted].tolist())), "all"]:
        some = fitted & (np.ones_like(fitted) if name == "all" else task == name)
        if some.any():
            rows.append([name, int(some.sum()), e_inf[some].mean(), np.median(e_inf[some])])
            rows[-1] += [values[some].sum() / some.sum() for values in (at_floor, saturated)]
            rows[-1] += [int(values[some].sum()) for values in (at_floor, saturated)]
    columns = (
        Column("task", "task of the questions; all: every fit"),
        Column("fits", "number of fits with a determined floor", "count"),
        Column("mean_e_inf", "mean error floor", "number"),
        Column("median_e_inf", "median error floor", "number"),
        Column("floor", "share of fits with e_inf at most the floor cutoff", "share"),
        Column("saturation", "share of fits with e_inf, rounded to two decimals, at least the saturation cutoff", "share"),
        Column("floor_fits", "their number", "count"),
        Column("saturation_fits", "their number", "count"),
    )
    data = {column.name: [row[place] for row in rows] for place, column in enumerate(columns)}
    return Table.of("Tasks: error floors by task (Table 1)", columns, data)


def means_table(by: str, labels: Sequence[str | None], task: npt.NDArray[np.object_], e_inf: npt.NDArray[np.float64]) -> Table:
    """Mean floor by series and task with the gap between reasoning and perception, from unrounded means (Table 18)."""
    fitted = ~np.isnan(e_inf)
    tasks = sorted(set(task[fitted].tolist()))
    groups = [(name, np.array([label == name for label in labels], dtype=bool)) for name in dict.fromkeys(labels)]
    groups.append(("pooled", np.ones_like(fitted)))
    rows = {name: _task_means(members & fitted, task, e_inf, tasks) for name, members in groups}
    data: dict[str, Any] = {by: list(rows)} | {name: [means[name] for means in rows.values()] for name in tasks}
    data["gap"] = [means.get(REASONING, np.nan) - means.get(PERCEPTION, np.nan) for means in rows.values()]
    data["fits"] = [int((members & fitted).sum()) for _, members in groups]
    columns = [
        Column(by, f"{by}; pooled: all fits"),
        *(Column(name, f"mean e_inf of its {name} fits", "number") for name in tasks),
        Column("gap", "reasoning minus perception; empty where one is missing", "slope"),
        Column("fits", "number of fits with a determined floor", "count"),
    ]
    return Table.of(f"Means: error floors by {by} and task (Table 18)", columns, data)


def _task_means(
    members: npt.NDArray[np.bool_], task: npt.NDArray[np.object_], e_inf: npt.NDArray[np.float64], tasks: Sequence[str]
) -> dict[str, float]:
    picked = {name: e_inf[members & (task == name)] for name in tasks}
    return {name: float(values.mean()) if len(values) else float("nan") for name, values in picked.items()}


def _headline(tasks: Table, fits: GroupFits, e_inf: npt.NDArray[np.float64]) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {"all": {}} | {row["task"]: row for row in tasks.rows()}
    headline: dict[str, Any] = {
        "fits": int(fits.fitted.sum()),
        "groups_without_fit": int((~fits.fitted).sum()),
        "floors_undetermined": int((fits.fitted & np.isnan(e_inf)).sum()),
    }
    for name, row in rows.items():
        prefix = "" if name == "all" else f"{name}_"
        headline |= {f"{prefix}{key}": row.get(key) for key in ("mean_e_inf", "median_e_inf", "floor", "saturation")}
    return headline


def _charts(tables: dict[str, Table], by: Sequence[str], parameters: Parameters) -> Charts:
    def draw(name: str) -> Any:
        from analyses.floors import charts as floors_charts

        return getattr(floors_charts, name)(tables, by, (parameters.floor_cutoff, parameters.saturation_cutoff))

    return Charts({name: partial(draw, name) for name in ("floors", "means")} if by and len(tables["tasks"]) else {})
