"""Effective pixels in place of visual tokens, or beside them: fits, and what they predict of withheld levels (separable-law paper, D.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from analyses.cells import geometric_mean
from analyses.folds import fitted_groups, make_folds
from analyses.law.fits import Solved, by_law, fit_groups, pad
from analyses.law.options import points_of
from analyses.law.tables import group_columns
from analyses.laws.three import ThreeAxisLaw
from analyses.result import Column, Table

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.cells import CellStudy, ResourceName
    from analyses.folds import Design
    from analyses.law.fits import Fitter, GroupFits, Padded, Points
    from analyses.law.options import FitParameters

Resource = Literal["visual_tokens", "effective_pixels", "both"]
HELD_OUT: tuple[Design, ...] = ("backbone", "input_size")


def resources_of(resource: Resource) -> tuple[ResourceName, ...]:
    """The columns of cells that a resource needs."""
    names: dict[Resource, tuple[ResourceName, ...]] = {
        "visual_tokens": ("tokens",),
        "effective_pixels": ("effective_pixels",),
        "both": ("tokens", "effective_pixels"),
    }
    return names[resource]


def points_with(
    study: CellStudy,
    keep: npt.NDArray[np.bool_],
    resource: Resource,
    reference: tuple[float, float] | None,
    weights: npt.NDArray[np.float64] | None = None,
) -> Points:
    """The cells as points of N and a resource. Effective pixels are divided by their geometric mean over the cells that have them.

    A pinned reference (N, R) is that of N and of the visual resource that takes R's place.
    """
    points = points_of(study, keep, weights, resources=resources_of(resource))
    if resource == "visual_tokens":
        return points
    pixels = study.cells.effective_pixels
    mean = geometric_mean(pixels[pixels > 0])
    if resource == "both":
        return replace(points, axes={**points.axes, "P": pixels / mean}, reference={**points.reference, "P": mean})
    mean = mean if reference is None else reference[1]
    return replace(points, axes={"N": points.axes["N"], "R": pixels / mean}, reference={"N": points.reference["N"], "R": mean})


def by_axes(parameters: FitParameters) -> Fitter:
    """The fitter of e + A/N^alpha + B/R^beta + G/P^gamma (ours; the paper does not write its three-variable law down)."""
    law = ThreeAxisLaw(alpha=parameters.box, beta=parameters.box, gamma=parameters.box, floor=parameters.floor)

    def fit(padded: Padded) -> Solved:
        n, r, p = (padded.axis(name) for name in ("N", "R", "P"))
        solutions = law.fit_many(n, r, p, padded.error, padded.weights)
        values = {name: value[:, None] for name, value in solutions.parameters.items()}
        return Solved(solutions=solutions, predicted=solutions.function(n, r, p, **values))

    return fit


def resources_table(study: CellStudy, points: Points, parameters: FitParameters) -> Table:
    """The law in N and R, in N and P, and in all three on the same cells: R2, BIC, exponents, and RMSE of withheld levels (Figure 11)."""
    by = points.groups.by
    columns = (
        *group_columns(by),
        Column("resource", "visual_tokens: L(N, R); effective_pixels: L(N, P); both: L(N, R, P)"),
        Column("n", "cells", "count"),
        Column("k", "free parameters that the levels of the group can tell apart", "count"),
        Column("r2", "in-sample 1 - SSE/SST about the (weighted) mean of the group", "share"),
        Column("bic", "Gaussian BIC", "number"),
        Column("alpha", "exponent of N", "number"),
        Column("beta", "exponent of R; empty where not in the law or not determined", "number"),
        Column("gamma", "exponent of P; empty where not in the law or not determined", "number"),
        *(
            Column(f"{name}_rmse", f"RMSE of cells whose {name} level is withheld, predictions clipped to [0, 1]", "share")
            for name in HELD_OUT
        ),
        *(Column(f"{name}_cells", f"cells of that RMSE ({name})", "count") for name in HELD_OUT),
        Column("status", "fitted, exponents at bounds, what the cells do not determine, or why there is no fit"),
    )
    rows: dict[str, list[Any]] = {column.name: [] for column in columns}
    laws = {resource: _law(study, points, parameters, resource) for resource in ("visual_tokens", "effective_pixels", "both")}
    fits = {name: fit_groups(some, fitter, names=exponents) for name, (some, fitter, exponents) in laws.items()}
    errors = {name: _withheld(study, some, fitter, exponents) for name, (some, fitter, exponents) in laws.items()}
    for group, key in enumerate(points.groups.keys):
        for name, fit in fits.items():
            entries = {
                **dict(zip(by, key, strict=True)),
                "resource": name,
                "n": int(fit.n[group]),
                "k": int(fit.k[group]) if fit.fitted[group] else None,
                "r2": fit.r2[group],
                "bic": fit.bic[group],
                **_exponents(name, fit, group),
                **errors[name][group],
                "status": _in_pixels(fit.status[group]) if name == "effective_pixels" else fit.status[group],
            }
            for column, entry in entries.items():
                rows[column].append(entry)
    return Table.of("Resources: visual tokens, effective pixels, and both (Figure 11)", columns, rows, shown=60)


def _law(study: CellStudy, points: Points, parameters: FitParameters, resource: Resource) -> tuple[Points, Fitter, tuple[str, ...]]:
    """Points, fitter and exponents of the law in a resource, on the cells that have both."""
    if resource == "both":
        return points, by_axes(parameters), ("alpha", "beta", "gamma")
    some = points_with(study, points.keep, resource, None, points.weights)
    return some, by_law(parameters.law((some.reference["N"], some.reference["R"]))), ("alpha", "beta")


def _in_pixels(status: str) -> str:
    """The status of a law in N and P, which is fitted as one in N and R, in the words of P."""
    for ours, theirs in (("beta", "gamma"), ("B_r", "G_p"), ("of R", "of P"), ("and R", "and P")):
        status = status.replace(ours, theirs)
    return status


def _exponents(resource: str, fits: GroupFits, group: int) -> dict[str, Any]:
    """Exponents under the name of their resource."""
    beta = fits.parameters["beta"][group]
    gamma = fits.parameters["gamma"][group] if "gamma" in fits.parameters else None
    visual = {"beta": None, "gamma": beta} if resource == "effective_pixels" else {"beta": beta, "gamma": gamma}
    return {"alpha": fits.parameters["alpha"][group], **visual}


def _withheld(study: CellStudy, points: Points, fitter: Fitter, exponents: tuple[str, ...]) -> list[dict[str, Any]]:
    """RMSE of each group's cells when their backbone size, or their input size, is withheld from its fit."""
    answers: list[dict[str, Any]] = [{} for _ in range(len(points.groups))]
    used = np.flatnonzero(points.keep)
    group = points.groups.code[used]
    for design in HELD_OUT:
        folds = make_folds(design, "group", group, study.cells.parameters[used], study.cells.input_size[used])
        axes = tuple(values[used] for values in (study.cells.parameters, points.axes["R"]))
        ready = fitted_groups(folds, group, axes, need=1 + 2 * len(exponents), error=study.cells.error[used])
        square, count = np.zeros(len(answers)), np.zeros(len(answers), dtype=np.int64)
        rows = [fold for fold in range(len(folds)) if ready[fold, folds.group[fold]]]
        if rows:
            padded = pad(points, [used[group == folds.group[fold]] for fold in rows])
            place = np.zeros(len(points.keep), dtype=np.int64)
            place[used] = np.arange(len(used))
            withheld, scored = (
                np.stack([flags[fold, place[padded.cells[row]]] for row, fold in enumerate(rows)]) & padded.present
                for flags in (folds.withheld, folds.scored)
            )
            predicted = np.clip(fitter(replace(padded, withheld=withheld)).predicted, 0, 1)
            off = np.where(scored, (predicted - padded.error) ** 2, 0.0)
            for row, fold in enumerate(rows):
                square[folds.group[fold]] += off[row].sum()
                count[folds.group[fold]] += scored[row].sum()
        for number, answer in enumerate(answers):
            answer[f"{design}_rmse"] = np.sqrt(square[number] / count[number]) if count[number] else None
            answer[f"{design}_cells"] = int(count[number])
    return answers
