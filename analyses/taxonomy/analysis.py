"""Error floors by domain and skill: fits per pairing, marginals and variance shares (separable-law paper, 3.3, C.4, C.5)."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, field_validator

from analyses.cells import By, fittable, group_cells, study_of_cells
from analyses.clusters import cluster_sums
from analyses.decomposition import parameters_of, two_factor_shares
from analyses.few_clusters import cluster_warnings, varies
from analyses.floors.analysis import determined_floors
from analyses.law.fits import by_law, fit_groups
from analyses.law.options import FitParameters, points_of
from analyses.law.refusal import no_group_fitted
from analyses.law.tables import fitted_laws
from analyses.resampling import Layout, intervals_of
from analyses.result import Charts, counted, plain
from analyses.taxonomy.quartiles import LABELS, quartiles_of
from analyses.taxonomy.tables import Resampled, bootstrap_table, highest_table, marginals_table, pairings_table, shares_table
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.clusters import ClusterSums, Resampling
    from analyses.decomposition import Shares
    from analyses.law.fits import GroupFits
    from analyses.laws.separable import SeparableLaw
    from analyses.result import Result, Table
    from analyses.session import StarSession
    from analyses.taxonomy.quartiles import Quartiles

NAME = "taxonomy"
FACTORS = 2
SHOWN = 6


class Parameters(FitParameters):
    """Options of the taxonomy analysis."""

    by: tuple[By, ...] = Field(default=("domain", "skill"), description="the two labels that are crossed; repeatable or comma-separated")
    min_questions: int = Field(default=5, ge=1, description="distinct questions that a sub-cell needs")
    high: float = Field(default=0.3, ge=0, le=1, description="the table highest lists pairings with e_inf of at least this")
    replicates: int = Field(default=0, ge=0, description="bootstrap replicates over image clusters (the paper: 500; 0: none)")
    resampling: Literal["ordinary", "positive", "both"] = Field(
        default="both",
        description="clusters drawn with replacement, positive Dirichlet weights that lose no pairing, or one after the other",
    )
    executor: str = Field(default="local", description="where replicates are refitted: local, or dask://HOST:PORT", exclude=True)

    @field_validator("by")
    @classmethod
    def _two(cls, by: tuple[By, ...]) -> tuple[By, ...]:
        if len(by) != FACTORS or len(set(by)) != FACTORS:
            message = f"expected two different labels, such as domain,skill; found {', '.join(by) or 'none'}"
            raise ValueError(message)
        return by


def run(session: StarSession, parameters: Parameters) -> Result:
    """Fit every pairing over all series and say which of the two labels the floors follow."""
    study, questions = sub_cells(study_of_cells(session, NAME, parameters), parameters)
    keep, lacking = fittable(study)
    law = parameters.law(study.reference)
    fits = fit_groups(points_of(study, keep), by_law(law))
    if not fits.fitted.any():
        raise no_group_fitted(study, [*lacking, *fits.warnings])
    warnings = [*study.warnings, *lacking, *fits.warnings]
    e_inf = determined_floors(fits, law.k)
    used = np.flatnonzero(~np.isnan(e_inf))
    labels = [np.array([str(value) for value in study.groups.column(name)])[used] for name in parameters.by]
    floors = e_inf[used]
    shares = shares_of(parameters.by, labels, floors, warnings)
    tables = {
        "pairings": pairings_table(fits, questions),
        "marginals": marginals_table(parameters.by, labels, floors),
        "highest": highest_table(study.groups, e_inf, parameters.high),
        "shares": shares_table(parameters.by, shares),
    }
    quartiles = (
        quartiles_of(session, parameters, warnings, records=parameters.records, native=parameters.include_native)
        if set(parameters.by) == set(LABELS)
        else None
    )
    if quartiles is not None:
        tables["quartiles"] = quartiles.table
    if parameters.replicates and shares is not None:
        sums, layout = cluster_sums(study), Layout.of(study.groups, keep, used.tolist())
        resampled = [_resampled(study, sums, layout, labels, law, kind, parameters) for kind in _kinds(parameters)]
        tables["bootstrap"] = bootstrap_table(parameters.by, resampled)
        warnings += [f"{one.kind} bootstrap: no replicate keeps every pairing" for one in resampled if not one.complete]
        warnings += cluster_warnings(study, sums, keep & np.isin(study.groups.code, used))
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=_headline(study, fits, shares, len(used), questions, parameters),
        tables=tables,
        charts=_charts(tables, parameters.by, quartiles),
        warnings=warnings,
        fits=fitted_laws(fits),
    )


def shares_of(
    by: Sequence[str], labels: Sequence[npt.NDArray[np.str_]], floors: npt.NDArray[np.float64], warnings: list[str]
) -> Shares | None:
    """Variance shares of the floors; None, with a warning, where the labels would explain any floors whatever they are."""
    pairings = f"{counted(len(floors), 'pairing')} with a determined floor"
    if len(floors) < 2:
        warnings.append(f"{pairings}: no variance shares")
        return None
    parameters = parameters_of(*labels)
    if parameters >= len(floors):
        named = " and ".join(by)
        warnings.append(
            f"{pairings}, and {parameters} parameters of {named}: they would explain any floors, so there are no variance shares"
        )
        return None
    return two_factor_shares(floors, *labels)


def sub_cells(study: CellStudy, parameters: Parameters) -> tuple[CellStudy, npt.NDArray[np.int64]]:
    """The study of the cells that have both labels and enough questions, grouped by pairing, and the questions of each pairing.

    Raises AnalysisError where no cell is left.
    """
    warnings = list(study.warnings)
    inside = study.cell_of >= 0
    everything = group_cells(study.cells, parameters.by)
    labelled = np.array([None not in key for key in everything.keys], dtype=bool)[everything.code]
    size = max(len(study.answers.questions), 1)
    asked = np.unique(study.cell_of[inside] * size + study.answers.question[inside])
    cell, question = asked // size, asked % size
    per_cell = np.bincount(cell, minlength=len(study.cells))
    eligible = labelled & (per_cell >= parameters.min_questions)
    warnings += _left_out(study, labelled, cell, question, parameters.by)
    if not eligible.any():
        named = " and ".join(parameters.by)
        message = (
            f"no question has both {named}"
            if not labelled.any()
            else f"no sub-cell of {named} has {counted(parameters.min_questions, 'question')}"
        )
        raise AnalysisError(
            message, hint="trackr labels import FILE adds labels; --min-questions asks for fewer; --by crosses other labels"
        )
    lost = sorted(set(everything.code[labelled].tolist()) - set(everything.code[eligible].tolist()))
    if lost:
        named = ", ".join(everything.name(group) for group in lost[:SHOWN]) + (
            f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
        )
        warnings.append(f"no sub-cell with {counted(parameters.min_questions, 'question')}, left out: {named}")
    renumbered = np.where(eligible, np.cumsum(eligible) - 1, -1)
    cells = study.cells.take(eligible)
    groups = group_cells(cells, parameters.by)
    pairs = np.unique(groups.code[renumbered[cell[eligible[cell]]]] * size + question[eligible[cell]])
    kept = dataclasses.replace(
        study, cells=cells, cell_of=np.where(inside, renumbered[study.cell_of], -1), groups=groups, warnings=warnings
    )
    return kept, np.bincount(pairs // size, minlength=len(groups))


def _left_out(
    study: CellStudy, labelled: npt.NDArray[np.bool_], cell: npt.NDArray[np.int64], question: npt.NDArray[np.int64], by: Sequence[str]
) -> list[str]:
    """Questions without both labels."""
    lost = np.unique(question[~labelled[cell]])
    if not len(lost):
        return []
    named = ", ".join(sorted({str(value) for value in study.answers.questions.text["benchmark"][lost].tolist()}))
    return [f"{counted(len(lost), 'question')} without {' and '.join(by)} {'is' if len(lost) == 1 else 'are'} left out ({named})"]


def _kinds(parameters: Parameters) -> tuple[Resampling, ...]:
    return ("ordinary", "positive") if parameters.resampling == "both" else (parameters.resampling,)


def _resampled(
    study: CellStudy,
    sums: ClusterSums,
    layout: Layout,
    labels: Sequence[npt.NDArray[np.str_]],
    law: SeparableLaw,
    kind: Resampling,
    parameters: Parameters,
) -> Resampled:
    """Refit the pairings in replicates and decompose the floors of those that keep every pairing (C.5)."""
    refits = intervals_of(
        study,
        sums,
        layout,
        law,
        parameters.replicates,
        kind=kind,
        workers=parameters.workers,
        executor=parameters.executor,
        what=f"pairings, {kind} bootstrap",
    )
    complete = refits.fitted.all(axis=1)
    floors = refits.parameters["e"][complete] if complete.any() else np.full((0, len(layout)), np.nan)
    return Resampled(
        kind=kind,
        replicates=parameters.replicates,
        complete=int(complete.sum()),
        varies=bool(varies(sums, layout).any()),
        shares=two_factor_shares(floors, *labels),
    )


def _headline(
    study: CellStudy, fits: GroupFits, shares: Shares | None, determined: int, questions: npt.NDArray[np.int64], parameters: Parameters
) -> dict[str, Any]:
    one, two = parameters.by
    fine = fits.fitted
    numbers: dict[str, Any] = {
        "pairings": int(fine.sum()),
        "pairings_without_fit": int((~fine).sum()),
        "floors_undetermined": int(fine.sum()) - determined,
        "sub_cells": int(fits.n[fine].sum()),
        "configurations": len(set(zip(study.cells.configuration.tolist(), study.cells.text["benchmark"].tolist(), strict=True))),
        "questions": int(questions.sum()),
        "beta_interior": int(fits.interior("beta").sum()),
        "both_interior": int((fits.interior("alpha") & fits.interior("beta")).sum()),
    }
    if shares is None:
        return numbers
    measures = {
        f"r2_{one}": shares.r2_first,
        f"r2_{two}": shares.r2_second,
        "r2_both": shares.r2_both,
        f"V_{one}": shares.first,
        f"V_{two}": shares.second,
        f"V_{two}_over_V_{one}": shares.second / shares.first if shares.first > 0 else np.nan,
    }
    return numbers | {name: plain(float(value)) for name, value in measures.items()}


def _charts(tables: dict[str, Table], by: Sequence[str], quartiles: Quartiles | None) -> Charts:
    def draw(name: str) -> Any:
        from analyses.taxonomy import charts as taxonomy_charts

        return getattr(taxonomy_charts, name)(tables, by)

    charts: dict[str, Any] = {"quartiles": quartiles.chart} if quartiles is not None and len(quartiles.table) else {}
    charts |= {name: partial(draw, name) for name in ("pairings", "marginals")}
    return Charts(charts)
