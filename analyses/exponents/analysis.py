"""How fast does error fall with N and with R? Exponents of group fits and of task fits (separable-law paper, 4.1, 4.3, D.1)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from analyses.cells import fittable, study_of_cells
from analyses.exponents.levels import GROUP, Level, split_study
from analyses.exponents.tables import estimates_table, exponents_table, ratios_table
from analyses.floors.points import LABELS, SUBSET, Weighting, subset_study
from analyses.law.fits import by_law, fit_groups
from analyses.law.options import FitParameters, points_of
from analyses.law.refusal import no_group_fitted
from analyses.law.tables import fitted_laws
from analyses.result import Charts
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.result import FittedLaw, Result, Table
    from analyses.session import StarSession

NAME = "exponents"


class Parameters(FitParameters):
    """Options of the exponents analysis."""

    split: Literal["auto", "task", "category", "both", "none"] = Field(
        default="auto",
        description="subsets of a suite for a second set of fits: auto (by task; by category where a suite has one task only), "
        "task, category, both; none: fits of whole groups alone",
    )
    weighting: Weighting = Field(
        default="paper",
        description="points of a subset's fit: pooled (one per configuration), category (one per configuration and category, equally "
        "weighted), paper (category for MME-RealWorld, pooled elsewhere)",
    )


def run(session: StarSession, parameters: Parameters) -> Result:
    """Fit the groups, and the groups split by a label, and compare their exponents."""
    study = study_of_cells(session, NAME, parameters)
    studies, warnings = {GROUP: study}, list(study.warnings)
    if parameters.split != "none":
        try:
            by = tuple(name for name in parameters.by if name not in LABELS)
            studies[SUBSET] = subset_study(split_study(study, LABELS), by, split=parameters.split, weighting=parameters.weighting)
        except AnalysisError as err:
            warnings.append(f"{err.message}: fits of whole groups alone")
    levels: list[Level] = []
    reasons: list[str] = []
    laws: dict[tuple[str, str], FittedLaw] = {}
    for name, some in studies.items():
        keep, lacking = fittable(some)
        fits = fit_groups(points_of(some, keep), by_law(parameters.law(study.reference)))
        levels.append(Level.of(name, some, fits))
        warnings += [*some.warnings, *lacking, *fits.warnings]
        laws |= {(law.law, law.group_key): law for law in fitted_laws(fits)}
        reasons += [*lacking, *fits.warnings]
    if not laws:
        raise no_group_fitted(study, reasons)
    tables = {"exponents": exponents_table(levels), "ratios": ratios_table(levels), "estimates": estimates_table(levels)}
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=_headline(levels),
        tables=tables,
        charts=_charts(tables),
        warnings=warnings,
        fits=list(laws.values()),
    )


def _charts(tables: dict[str, Table]) -> Charts:
    def draw(name: str) -> Any:
        from analyses.exponents import charts as exponents_charts

        return getattr(exponents_charts, name)(tables)

    return Charts({name: partial(draw, name) for name in ("medians", "plane")} if len(tables["exponents"]) else {})


def _headline(levels: Sequence[Level]) -> dict[str, Any]:
    """Counts over all fits, and medians of each family; ratios of the finest fits there are, as in 4.3."""
    numbers: dict[str, Any] = {}
    for level in levels:
        both = level.balance(level.fits.fitted)
        numbers |= {
            f"{level.name}_fits": int(level.fits.fitted.sum()),
            f"{level.name}_fits_both_interior": both.both_interior,
            f"{level.name}_fits_alpha_greater": both.alpha_greater,
            f"{level.name}_fits_beta_greater": both.beta_greater,
        }
    for by, value, rows in levels[0].parts():
        if by == "family":
            alpha, beta = levels[0].exponents(rows)
            numbers |= {f"alpha_median_{value or 'none'}": alpha.median, f"beta_median_{value or 'none'}": beta.median}
    for by, value, rows in levels[-1].parts():
        if by == "family":
            numbers[f"ratio_median_{value or 'none'}"] = levels[-1].balance(rows).ratio_median
    return numbers
