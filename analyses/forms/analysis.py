"""Which functional form fits best? Five forms on the same cells with shared shapes, and two with each group's own (separable-law paper, 2.4, B.3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, field_validator

from analyses.cells import CellParameters, fittable, study_of_cells
from analyses.clusters import cluster_sums, precision_weights
from analyses.few_clusters import variance_warnings
from analyses.forms.fits import COEFFICIENTS, FORMS, OWN_PARAMETERS, Form, own_fits, shared_fits, unfit
from analyses.forms.tables import coefficients_table, fitted_laws, forms_table, groups_table, per_group_table, shapes_table
from analyses.law.refusal import no_group_fitted
from analyses.laws.power_law import BOX
from analyses.notes import Note, merged
from analyses.ranges import Box  # noqa: TC001 - pydantic reads annotations
from analyses.resampling import Layout, batch_of, observed
from analyses.result import Charts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import CellStudy
    from analyses.forms.fits import FormFit
    from analyses.resampling import Batch
    from analyses.result import FittedLaw, Result, Table
    from analyses.session import StarSession

NAME = "forms"


class Parameters(CellParameters):
    """Options of the comparison of forms."""

    forms: tuple[Form, ...] = Field(default=FORMS, description="forms to compare with separable; repeatable or comma-separated")
    weights: Literal["equal", "precision"] = Field(
        default="equal", description="weight of a cell: the same for all, or the inverse cluster variance of its error (Eq. 15)"
    )
    floor: Literal["free", "continuous", "grid"] = Field(
        default="free", description="intercepts where shapes are shared: of any sign, 0.001 to 0.999, or the 55 values of the paper"
    )
    own_floor: Literal["free", "continuous", "grid"] = Field(
        default="grid", description="error floors where each group has shapes of its own (tables per_group and groups)"
    )
    box: Box = Field(default=BOX, description="search range of every exponent, such as 0.05,3; the p-norm's end at 3")

    @field_validator("forms")
    @classmethod
    def _some(cls, forms: tuple[Form, ...]) -> tuple[Form, ...]:
        if not forms:
            message = "expected at least one form"
            raise ValueError(message)
        return forms


def run(session: StarSession, parameters: Parameters) -> Result:
    """Fit every form to the same cells and compare them."""
    study = study_of_cells(session, NAME, parameters)
    keep, warnings = fittable(study)
    forms = usable_forms(study, keep, parameters.forms, warnings)
    variance = cluster_sums(study).variance(study.cells.error) if parameters.weights == "precision" else None
    least = max(COEFFICIENTS[form] for form in ("separable", *forms))
    layout, batch = _compared(study, keep, variance, least, warnings)
    shared = shared_fits(batch, forms, parameters.box, parameters.floor)
    tables = {"forms": forms_table(shared), "shapes": shapes_table(shared)}
    counts = (batch.weights[0] > 0).sum(axis=1).tolist()
    fitted = layout.group.tolist()
    laws = fitted_laws(study.groups, fitted, shared, counts, shared=True)
    own = _own(study, keep, parameters, variance, layout, warnings)
    if own is not None:
        laws += _add_own(study, own, tables)
    tables["coefficients"] = coefficients_table(study.groups, fitted, shared)
    return study.opened.result(
        rows=len(study.answers),
        digest=study.answers.digest,
        headline=_headline(study, shared, tables, len(fitted)),
        tables=tables,
        charts=_charts(tables),
        warnings=[*study.warnings, *warnings],
        fits=laws,
    )


def usable_forms(study: CellStudy, keep: npt.NDArray[np.bool_], forms: Sequence[Form], warnings: list[str]) -> list[Form]:
    """The forms that the errors allow: powers of negative errors do not exist."""
    if "pnorm" in forms and (study.cells.error[keep] < 0).any():
        warnings.append("pnorm is left out: some errors are negative (credits above 1)")
        return [form for form in forms if form != "pnorm"]
    return list(forms)


def _compared(
    study: CellStudy,
    keep: npt.NDArray[np.bool_],
    variance: npt.NDArray[np.float64] | None,
    least: int,
    warnings: list[str],
) -> tuple[Layout, Batch]:
    """Groups that can be compared, with weights over their cells alone; AnalysisError where there is none."""
    whole = Layout.of(study.groups, keep)
    reasons = unfit(study.groups, whole, _batch(study, whole), least)
    named = {study.groups.name(group) or "all cells": reason for group, reason in reasons.items()}
    fitted = [group for group in range(len(study.groups)) if group not in reasons]
    if not fitted:
        raise no_group_fitted(study, [*warnings, *merged([Note(*one) for one in named.items()], len(study.groups))])
    warnings += merged([Note(name, f"{reason}; left out of every form") for name, reason in named.items()], len(study.groups))
    used = keep & np.isin(study.groups.code, fitted)
    warnings += [] if variance is None else variance_warnings(variance, used)
    return _laid_out(study, used, variance)


def _laid_out(study: CellStudy, used: npt.NDArray[np.bool_], variance: npt.NDArray[np.float64] | None) -> tuple[Layout, Batch]:
    layout = Layout.of(study.groups, used)
    return layout, _batch(study, layout, None if variance is None else precision_weights(variance, used))


def _batch(study: CellStudy, layout: Layout, weights: npt.NDArray[np.float64] | None = None) -> Batch:
    return batch_of(layout, observed(study), study.cells.parameters, study.reference, weights)


def _own(
    study: CellStudy,
    keep: npt.NDArray[np.bool_],
    parameters: Parameters,
    variance: npt.NDArray[np.float64] | None,
    layout: Layout,
    warnings: list[str],
) -> tuple[Layout, Batch, list[FormFit]] | None:
    """Fits of each group on its own, of the groups that have cells enough for it."""
    small = [int(group) for row, group in enumerate(layout.group) if layout.inside[row].sum() < OWN_PARAMETERS]
    few = f"fewer than {OWN_PARAMETERS} cells; left out of per_group and groups"
    warnings += merged([Note(study.groups.name(group) or "all cells", few) for group in small], len(study.groups))
    used = keep & np.isin(study.groups.code, layout.group) & ~np.isin(study.groups.code, small)
    if not used.any():
        return None
    layout, batch = _laid_out(study, used, variance)
    return layout, batch, own_fits(batch, parameters.box, parameters.own_floor)


def _add_own(study: CellStudy, own: tuple[Layout, Batch, list[FormFit]], tables: dict[str, Table]) -> list[FittedLaw]:
    layout, batch, fits = own
    counts, fitted = (batch.weights[0] > 0).sum(axis=1).tolist(), layout.group.tolist()
    tables["per_group"] = per_group_table(fits)
    tables["groups"] = groups_table(study.groups, fitted, fits, counts)
    return fitted_laws(study.groups, fitted, fits, counts, shared=False)


def _headline(study: CellStudy, shared: Sequence[FormFit], tables: dict[str, Table], groups: int) -> dict[str, Any]:
    """Numbers of Tables 8 and 9."""
    finite = [fit for fit in shared if np.isfinite(fit.bic)]
    rows = {row["form"]: row for row in tables["forms"].rows()}
    headline: dict[str, Any] = {
        "groups": groups,
        "cells": shared[0].n,
        "best_by_bic": min(finite, key=lambda fit: fit.bic).form if finite else None,
        "lowest_sse": min(shared, key=lambda fit: fit.total).form,
        "separable_sse": rows["separable"]["sse"],
        "separable_bic": rows["separable"]["bic"],
    }
    for form in ("coupled", "multiplicative"):
        if form in rows:
            headline |= {f"{form}_delta_sse": rows[form]["delta_sse"], f"{form}_delta_bic": rows[form]["delta_bic"]}
    if "per_group" in tables:
        first = tables["per_group"].rows()[0]
        headline |= {"own_separable_lower": first["groups_lower"], "own_groups": first["groups"]}
    headline |= {"reference_N": study.reference[0], "reference_R": study.reference[1]}
    return headline


def _charts(tables: dict[str, Table]) -> Charts:
    def draw(name: str) -> Any:
        from analyses.forms import charts as forms_charts

        return getattr(forms_charts, name)(tables)

    return Charts({name: partial(draw, name) for name in ("candidates", *(("groups",) if "groups" in tables else ()))})
