"""Gains between compute quartiles, and the criteria of persistent error (Eq. 18, Tables 22 and 23)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.ceiling.matched import MEASURES
from analyses.ceiling.regimes import CEILING, REGIMES
from analyses.grouping import above, below, within
from analyses.result import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from analyses.ceiling.matched import Matched
    from analyses.grouping import Factor

CRITERIA = {
    "H": "low performance in the highest compute quartile: z4 < tau",
    "E": "H, and little change from the lowest to the highest quartile: |z4 - z1| <= delta",
    "P": "H, and little late change: |z4 - z3| <= delta",
    "B": "H, and a small slope per doubling of compute: |b| <= eta",
    "J": "E, P and B together",
}
HALF_RIGHT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """What counts as low, as little change and as a small slope."""

    tau: float
    tau_normalised: float
    delta: float
    eta: float

    def low(self, measure: str) -> float:
        """The cutoff of low performance for a raw or normalised measure."""
        return self.tau_normalised if measure.endswith("*") else self.tau


def criteria(matched: Matched, margins: Margins) -> dict[str, dict[str, npt.NDArray[np.bool_]]]:
    """Measure -> criterion -> whether each trajectory meets it (Eq. 18); measures without data are left out."""
    return {
        name: criteria_of(matched.levels[name], matched.slopes[name], margins.low(name), margins)
        for name in MEASURES
        if supported(matched, name)
    }


def supported(matched: Matched, measure: str) -> bool:
    """Whether the data has what a measure takes."""
    return bool(matched.keep.any()) and (matched.probabilities or "p" not in measure) and (matched.options or "*" not in measure)


def criteria_of(
    levels: npt.NDArray[np.float64], slopes: npt.NDArray[np.float64], low: float, margins: Margins
) -> dict[str, npt.NDArray[np.bool_]]:
    """Eq. 18 on quartile means (trajectories x 4) and slopes; what is not known meets nothing."""
    first, third, last = levels[:, 0], levels[:, 2], levels[:, 3]
    high = below(last, low)
    ends = high & within(last - first, margins.delta)
    late = high & within(last - third, margins.delta)
    flat = high & within(slopes, margins.eta)
    return {"H": high, "E": ends, "P": late, "B": flat, "J": ends & late & flat}


def gains_table(matched: Matched, regimes: npt.NDArray[np.int64], *, cutoff: float, delta: float) -> Table:
    """Probability and accuracy at low and high compute by regime (sections 3.2 and C.3)."""
    rows = [_gains(matched, matched.keep & (regimes == code), cutoff, delta) for code in range(len(REGIMES))]
    columns = [
        Column("regime", "regime of the trajectory over all its configurations"),
        Column("trajectories", "trajectories of the matched cohort", "count"),
        Column("p_low", "mean p_gold in the lowest compute quartile", "share"),
        Column("p_high", "mean p_gold in the highest compute quartile", "share"),
        Column("gain", "p_high - p_low", "share"),
        Column("gaining", f"share of trajectories that gain more than {delta:g}", "share"),
        Column("losing", f"share of trajectories that lose more than {delta:g}", "share"),
        Column("accuracy_low", "mean accuracy in the lowest compute quartile", "share"),
        Column("accuracy_high", "mean accuracy in the highest compute quartile", "share"),
        Column("persistent", f"share of trajectories whose accuracy in the highest quartile is still below {cutoff:g}", "share"),
        Column("half_right", "share of trajectories whose accuracy in the highest quartile reaches 0.5", "share"),
    ]
    data: dict[str, list[Any]] = {"regime": list(REGIMES)}
    data |= {column.name: [row[column.name] for row in rows] for column in columns[1:]}
    return Table.of("Gains: from the lowest to the highest quartile of compute (matched cohort)", columns, data)


def _gains(matched: Matched, members: npt.NDArray[np.bool_], cutoff: float, delta: float) -> dict[str, float]:
    p, a = matched.levels["p"][members], matched.levels["a"][members]
    gain = p[:, 3] - p[:, 0]
    known = matched.probabilities
    return {
        "trajectories": int(members.sum()),
        "p_low": mean(p[:, 0]),
        "p_high": mean(p[:, 3]),
        "gain": mean(gain),
        "gaining": mean(above(gain, delta)) if known else np.nan,
        "losing": mean(above(-gain, delta)) if known else np.nan,
        "accuracy_low": mean(a[:, 0]),
        "accuracy_high": mean(a[:, 3]),
        "persistent": mean(below(a[:, 3], cutoff)),
        "half_right": mean(~below(a[:, 3], HALF_RIGHT)),
    }


def persistence_table(matched: Matched, met: Mapping[str, Mapping[str, npt.NDArray[np.bool_]]]) -> Table:
    """Shares of the matched cohort that each criterion selects (Table 22)."""
    data: dict[str, Sequence[Any]] = {"criterion": list(CRITERIA), "meaning": list(CRITERIA.values())}
    data |= {name: [mean(met[name][rule][matched.keep]) if name in met else None for rule in CRITERIA] for name in MEASURES}
    columns = [
        Column("criterion", "criterion of Eq. 18"),
        Column("meaning", "what it asks for"),
        Column("a", "share selected by accuracy", "share"),
        Column("p", "share selected by the probability of the correct option", "share"),
        Column("a*", "share selected by accuracy above chance", "share"),
        Column("p*", "share selected by probability above chance", "share"),
    ]
    return Table.of("Persistence: shares of the matched cohort with low and unresponsive performance", columns, data)


def core_table(matched: Matched, met: Mapping[str, Mapping[str, npt.NDArray[np.bool_]]], regimes: npt.NDArray[np.int64]) -> Table:
    """How many trajectories the joint rule selects, and how many of them are ceiling bound (C.3)."""
    selected = [met[name]["J"] & matched.keep if name in met else None for name in MEASURES]
    columns = [
        Column("measure", "a accuracy, p probability of the correct option, * above chance"),
        Column("trajectories", "trajectories of the matched cohort that rule J selects", "count"),
        Column("ceiling_bound", "share of these that are ceiling_bound", "share"),
    ]
    data: dict[str, list[Any]] = {
        "measure": list(MEASURES),
        "trajectories": [None if members is None else int(members.sum()) for members in selected],
        "ceiling_bound": [None if members is None else mean(regimes[members] == CEILING) for members in selected],
    }
    return Table.of("Core: what rule J selects, and how much of it lies inside ceiling_bound", columns, data)


def groups_table(
    matched: Matched,
    met: Mapping[str, Mapping[str, npt.NDArray[np.bool_]]],
    regimes: npt.NDArray[np.int64],
    labels: Mapping[str, Factor],
    by: Sequence[str],
) -> Table:
    """Ceiling bound and joint shares of the same trajectories by label (Table 23)."""
    groups = [(name, value, matched.keep & (labels[name].codes == code)) for name in by for code, value in enumerate(labels[name].labels)]
    groups = [group for group in groups if group[2].any()]
    columns = [
        Column("by", "label that the trajectories are grouped by"),
        Column("value", "its value; empty where the trajectories have none"),
        Column("trajectories", "trajectories of the matched cohort", "count"),
        Column("ceiling_bound", "share that is ceiling_bound", "share"),
        Column("J_p", "share that rule J selects by p_gold", "share"),
        Column("J_p*", "share that rule J selects by p_gold above chance", "share"),
    ]
    data: dict[str, list[Any]] = {
        "by": [by for by, _, _ in groups],
        "value": [value for _, value, _ in groups],
        "trajectories": [int(members.sum()) for _, _, members in groups],
        "ceiling_bound": [mean(regimes[members] == CEILING) for _, _, members in groups],
        "J_p": [mean(met["p"]["J"][members]) if "p" in met else None for _, _, members in groups],
        "J_p*": [mean(met["p*"]["J"][members]) if "p*" in met else None for _, _, members in groups],
    }
    return Table.of("Persistence groups: ceiling bound against the joint rule on the same trajectories", columns, data)


def quartiles_table(matched: Matched, labels: Mapping[str, Factor]) -> Table:
    """Accuracy and probability by compute quartile for each domain and skill (Figure 4, right)."""
    rows: list[dict[str, Any]] = []
    for domain_code, domain in enumerate(labels["domain"].labels):
        for skill_code, skill in enumerate(labels["skill"].labels):
            members = matched.keep & (labels["domain"].codes == domain_code) & (labels["skill"].codes == skill_code)
            if members.any():
                rows += [{"domain": domain, "skill": skill} | level for level in quartile_means(matched, members)]
    columns = [
        Column("domain", "visual domain of the question"),
        Column("skill", "skill that the question asks for"),
        Column("quartile", "quartile of compute within the trajectory, 1 the lowest", "count"),
        Column("trajectories", "trajectories of the matched cohort that have a configuration in this quartile", "count"),
        Column("accuracy", "mean accuracy", "share"),
        Column("p_gold", "mean probability of the correct option", "share"),
    ]
    return Table.of(
        "Quartiles: accuracy by compute quartile, domain and skill (matched cohort)",
        columns,
        {column.name: [row[column.name] for row in rows] for column in columns},
        shown=12,
    )


def quartile_means(matched: Matched, members: npt.NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Mean levels of some trajectories in each compute quartile; where ties leave a quartile empty, a trajectory is not in its mean."""
    a, p = matched.levels["a"][members], matched.levels["p"][members]
    filled = (~np.isnan(a)).sum(axis=0)
    return [{"quartile": q + 1, "trajectories": int(filled[q]), "accuracy": mean(a[:, q]), "p_gold": mean(p[:, q])} for q in range(4)]


def mean(values: npt.NDArray[Any]) -> float:
    """Mean of the values that are not NaN; NaN where there is none."""
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    return float(known.mean()) if len(known) else float("nan")
