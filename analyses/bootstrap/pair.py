"""Two laws with exponents that all groups share, compared over resampled image clusters (separable-law paper, B.4, Table 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.bootstrap.options import SHAPES
from analyses.clusters import draw
from analyses.few_clusters import varies
from analyses.resampling import batch_of, has_term, percentiles
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.bootstrap.options import SharedLaw
    from analyses.clusters import ClusterSums, Rebuilt, Resampling
    from analyses.resampling import Batch, Layout

PERFECT = 1e-8
"""Root mean square error from which a law fits without error: ratios of such objectives are rounding (ours)."""
LABELS = {"equal": "unweighted", "precision": "precision"}
"""Objectives as Table 10 calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPlan:
    """What every piece of the comparison needs."""

    sums: ClusterSums
    layout: Layout
    laws: tuple[SharedLaw, SharedLaw]
    parameters: npt.NDArray[np.float64]
    reference: tuple[float, float]
    weights: dict[str, npt.NDArray[np.float64]]
    """By weighting; the same in every replicate."""
    seed: int
    kind: Resampling

    @property
    def varies(self) -> bool:
        """Whether any cell changes from resample to resample."""
        return bool(varies(self.sums, self.layout).any())

    def batch(self, rebuilt: Rebuilt, weighting: str) -> Batch:
        """Cells of replicates under a weighting."""
        return batch_of(self.layout, rebuilt, self.parameters, self.reference, self.weights[weighting])


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFits:
    """Both laws fitted to replicates. NaN where a group could not be fitted."""

    objective: npt.NDArray[np.float64]
    """Weightings x laws x replicates."""
    k: npt.NDArray[np.int64]
    """Laws: free parameters, the shared exponents once."""
    n: npt.NDArray[np.int64]
    """Replicates: cells with weight."""
    shapes: dict[str, dict[str, npt.NDArray[np.float64]]]
    """By law and exponent: weightings x replicates; NaN where no group has its term."""
    at_bound: dict[str, dict[str, npt.NDArray[np.bool_]]]
    lost: npt.NDArray[np.int64]
    """Replicates: cells that lost all their answers."""

    @classmethod
    def joined(cls, parts: Sequence[PairFits]) -> PairFits:
        """Pieces one after the other."""
        first = parts[0]

        def together(name: str) -> Any:
            every = [getattr(part, name) for part in parts]
            return {law: {one: np.concatenate([part[law][one] for part in every], axis=-1) for one in every[0][law]} for law in every[0]}

        return cls(
            objective=np.concatenate([part.objective for part in parts], axis=-1),
            k=first.k,
            n=np.concatenate([part.n for part in parts]),
            shapes=together("shapes"),
            at_bound=together("at_bound"),
            lost=np.concatenate([part.lost for part in parts]),
        )

    @property
    def difference(self) -> npt.NDArray[np.float64]:
        """Objective of the second law minus the first: weightings x replicates."""
        return np.asarray(self.objective[:, 1] - self.objective[:, 0])

    @property
    def relative(self) -> npt.NDArray[np.float64]:
        """The difference in percent of the first law's objective; NaN where that law fits without error."""
        first = self.objective[:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(first > PERFECT**2 * self.n, 100 * self.difference / first, np.nan)

    @property
    def delta_bic(self) -> npt.NDArray[np.float64]:
        """BIC of the second law minus the first: n ln(Q2/Q1) + (k2 - k1) ln n."""
        return delta_bic(self.relative, self.n, int(self.k[1] - self.k[0]))


def delta_bic(relative: npt.NDArray[np.float64], n: Any, extra_k: int) -> npt.NDArray[np.float64]:
    """BIC difference n ln(1 + x/100) + extra_k ln n for a relative change of the objective of x percent (Table 10)."""
    with np.errstate(divide="ignore"):
        return np.asarray(n * np.log1p(np.asarray(relative) / 100) + extra_k * np.log(n))


def pair_piece(plan: PairPlan, replicates: Sequence[int]) -> PairFits:
    """Both laws on some replicates."""
    return fit_pair(plan, plan.sums.rebuild(draw(plan.sums.clusters, plan.seed, replicates, plan.kind)))


def fit_pair(plan: PairPlan, rebuilt: Rebuilt) -> PairFits:
    """Both laws on rebuilt cells, each in one call for all replicates; a replicate in which a group cannot be fitted is left out."""
    weightings = list(plan.weights)
    batches = {name: plan.batch(rebuilt, name) for name in weightings}
    first = batches[weightings[0]]
    groups, count = len(plan.layout), len(first.lost)
    objective = np.full((len(weightings), 2, count), np.nan)
    shapes: dict[str, dict[str, npt.NDArray[np.float64]]] = {}
    at_bound: dict[str, dict[str, npt.NDArray[np.bool_]]] = {}
    own = [law.k - len(SHAPES[law.name]) for law in plan.laws]
    used = first.supported(max(own)).all(axis=1)
    for which, law in enumerate(plan.laws):
        shapes[law.name] = {name: np.full((len(weightings), count), np.nan) for name in SHAPES[law.name]}
        at_bound[law.name] = {name: np.zeros((len(weightings), count), dtype=bool) for name in SHAPES[law.name]}
        for place, name in enumerate(weightings if used.any() else ()):
            batch = batches[name]
            found = law.fit_shared(batch.n[used], batch.r[used], batch.error[used], batch.weights[used])
            objective[place, which, used] = found.objective.reshape(-1, groups).sum(axis=1)
            for exponent in SHAPES[law.name]:
                determined = has_term(found, exponent, batch.n[used], batch.r[used], batch.weights[used]).any(axis=1)
                value, side = found.parameters[exponent].reshape(-1, groups)[:, 0], found.at_bound(exponent).reshape(-1, groups)[:, 0]
                shapes[law.name][exponent][place, used] = np.where(determined, value, np.nan)
                at_bound[law.name][exponent][place, used] = determined & (side != 0)
    return PairFits(
        objective=objective,
        k=np.array([groups * one + len(SHAPES[law.name]) for one, law in zip(own, plan.laws, strict=True)], dtype=np.int64),
        n=(first.weights > 0).sum(axis=(1, 2)),
        shapes=shapes,
        at_bound=at_bound,
        lost=first.lost.sum(axis=1),
    )


def pair_table(plan: PairPlan, point: PairFits, refits: PairFits, level: float) -> Table:
    """One row per objective, in the layout of Table 10."""
    one, two = (law.name for law in plan.laws)
    what = f"{100 * level:g}% percentile interval over the resamples"
    measures = {
        "delta_q": (f"Q of {two} minus Q of {one}; Q is the (weighted) sum of squared errors", "difference"),
        "relative_delta_q": ("delta_q in percent of the first law's Q", "relative"),
        "delta_bic": (f"n ln(Q {two} / Q {one}) + extra_k ln n: positive values favour {one}", "delta_bic"),
    }
    columns = [
        Column("objective", "unweighted, or weighted in inverse proportion to the cluster variance of each cell (Eq. 15)"),
        Column("first", "law that is compared to"),
        Column("second", "law that is compared"),
        Column("q_first", "Q of the first law on the cells as they are", "number"),
        Column("q_second", "Q of the second law", "number"),
    ]
    data: dict[str, Any] = {
        "objective": [LABELS[name] for name in plan.weights],
        "first": [one] * len(plan.weights),
        "second": [two] * len(plan.weights),
        "q_first": point.objective[:, 0, 0],
        "q_second": point.objective[:, 1, 0],
    }
    nothing = np.full(len(plan.weights), np.nan)
    for name, (meaning, attribute) in measures.items():
        low, high = percentiles(getattr(refits, attribute).T, level) if plan.varies else (nothing, nothing)
        columns += [
            Column(name, meaning, "number"),
            Column(f"{name}_low", f"lower end of its {what}", "number"),
            Column(f"{name}_high", f"upper end of its {what}", "number"),
        ]
        data |= {name: getattr(point, attribute)[:, 0], f"{name}_low": low, f"{name}_high": high}
    known = ~np.isnan(refits.delta_bic)
    with np.errstate(invalid="ignore"):
        favours = (refits.delta_bic > 0).sum(axis=1) / known.sum(axis=1) if plan.varies else nothing
    columns += [
        Column("favours_first", "share of the resamples whose delta_bic is positive", "share"),
        Column("n", "cells", "count"),
        Column("extra_k", "parameters that the second law has more than the first", "count"),
        Column("replicates", "resamples used", "count"),
    ]
    data |= {
        "favours_first": favours,
        "n": [int(point.n[0])] * len(plan.weights),
        "extra_k": [int(point.k[1] - point.k[0])] * len(plan.weights),
        "replicates": known.sum(axis=1),
    }
    return Table.of(f"{two.capitalize()} minus {one}, exponents shared by all groups", columns, data)


def pair_warnings(plan: PairPlan, point: PairFits, refits: PairFits, table: Table) -> list[str]:
    """Laws that fit without error, and values that lie outside their own intervals."""
    one, two = (law.name for law in plan.laws)
    warnings = []
    if np.isnan(point.relative).any():
        warnings.append(f"the {one} law fits without error: relative differences and BIC are not defined")
    for place, row in enumerate(table.rows()):
        perfect = int(np.isinf(refits.delta_bic[place]).sum())
        if perfect:
            warnings.append(
                f"{row['objective']}: the {two} law fits without error in {perfect:,} of {len(refits.n):,} resamples:"
                " delta_bic is minus infinity there, and an end of its interval that falls there is empty"
            )
        outside = [
            name
            for name in ("delta_q", "relative_delta_q", "delta_bic")
            if row[name] is not None and _outside(row[name], row[f"{name}_low"], row[f"{name}_high"])
        ]
        if outside:
            warnings.append(
                f"{row['objective']}: {', '.join(outside)} of the cells as they are {'lies' if len(outside) == 1 else 'lie'} outside"
                f" {'its interval' if len(outside) == 1 else 'their intervals'}: resampling adds noise to what both laws fit"
            )
    return warnings


def _outside(value: float, low: float | None, high: float | None) -> bool:
    """Whether a value lies outside an interval, an end of which may be open."""
    return (low is not None and value < low) or (high is not None and value > high)


def exponents_table(plan: PairPlan, point: PairFits, refits: PairFits, level: float) -> Table:
    """The shared exponents of both laws with their intervals."""
    what = f"{100 * level:g}% percentile interval"
    columns = [
        Column("objective", "as in `pair`"),
        Column("law", "law"),
        Column("exponent", "exponent that all groups share"),
        Column("value", "its value on the cells as they are", "number"),
        Column("low", f"lower end of its {what}", "number"),
        Column("high", f"upper end of its {what}", "number"),
        Column("at_bound", "share of these resamples in which it reached a bound of its search range", "share"),
        Column("undetermined", "share of the resamples in which no group has its term; they are not in the interval", "share"),
    ]
    data: dict[str, list[Any]] = {column.name: [] for column in columns}
    for place, weighting in enumerate(plan.weights):
        used = ~np.isnan(refits.objective[place, 0])
        for law, exponents in point.shapes.items():
            for exponent, value in exponents.items():
                drawn = refits.shapes[law][exponent][place]
                low, high = percentiles(drawn, level) if plan.varies else (np.nan, np.nan)
                known = ~np.isnan(drawn)
                row = {
                    "objective": LABELS[weighting],
                    "law": law,
                    "exponent": exponent,
                    "value": value[place, 0],
                    "low": float(low),
                    "high": float(high),
                    "at_bound": refits.at_bound[law][exponent][place][known].mean() if known.any() else None,
                    "undetermined": (used & ~known).sum() / used.sum() if used.any() else None,
                }
                for name, entry in row.items():
                    data[name].append(entry)
    return Table.of("Exponents that all groups share", columns, data)
