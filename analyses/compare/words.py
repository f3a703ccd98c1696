"""The headline of a comparison and its warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.compare.sides import differing, fixed
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.clusters import Clusters
    from analyses.compare.pairs import Pairs, Sides
    from analyses.compare.panel import Panel
    from analyses.compare.sides import Configurations, Side
    from analyses.compare.units import Units
    from analyses.result import Table

ALIGNMENT = {
    "pairwise": "each pair on the questions that both of its sides have a score for, at the same settings",
    "all": "every pair on the questions that all sides have a score for, at the same settings",
}
NOTABLE = 1.2
"""Design effect above which a test that takes questions as independent is warned of."""
SHOWN = 5
CHOICES = 12
"""Choices of settings in the headline."""


def headline_of(
    common: str,
    sides: Sequence[Side],
    there: Configurations,
    axes: Sequence[str],
    units: Units,
    table: Panel,
    clusters: Clusters,
    tables: dict[str, Table],
) -> dict[str, Any]:
    """What was compared; of two sides the difference, of more the best."""
    pairs = tables["pairs"].rows()
    answered = (~np.isnan(units.credit)).sum(axis=0)
    used = np.unique(units.choice[answered == len(sides) if common == "all" else answered > 1])
    same = fixed(sides, there, axes)
    choices = [units.settings[choice] for choice in used.tolist()]
    headline: dict[str, Any] = {
        "alignment": ALIGNMENT[common],
        "weight": "every question the same; difference_macro: every benchmark the same",
        "settings": _some(choices, CHOICES) if axes else same or "none recorded",
        **({"settings_fixed": same} if axes and same else {}),
        "sides": len(sides),
        "pairs": len(pairs),
        "questions": len(compared(table)),
        "images": len(clusters),
    }
    if len(sides) == 2:
        shown = (
            "a", "b", "accuracy_a", "accuracy_b", "wins", "losses", "difference", "difference_low", "difference_high", "benchmarks",
            "difference_macro", "difference_macro_low", "difference_macro_high", "test", "p", "p_cluster", "decided", "smallest_detectable",
        )  # fmt: skip
        return headline | {name: pairs[0][name] for name in shown}
    best = max(tables["models"].rows(), key=lambda row: row["accuracy"] or 0.0) if on_the_same(table) else {"side": None, "accuracy": None}
    return headline | {
        "best": best["side"],
        "best_accuracy": best["accuracy"],
        "decided_pairs": sum(row["decided"] for row in pairs),
    }


def compared(table: Panel) -> npt.NDArray[np.int64]:
    """The questions that some pair has in common."""
    return np.unique(np.concatenate([table.even_question, table.uneven_question]))


def on_the_same(table: Panel) -> bool:
    """Whether all sides stand on the same questions at the same settings."""
    return not len(table.uneven_question)


def nothing_in_common(sides: Sequence[Side], units: Units, common: str) -> AnalysisError:
    """What each side answered, so that the user sees why there is nothing to compare."""
    what = "no question has a score of all sides" if common == "all" else "no question has a score of two sides"
    parts = []
    for side, credit in zip(sides[:SHOWN], units.credit, strict=False):
        answered = ~np.isnan(credit)
        choices = [units.settings[choice] for choice in np.unique(units.choice[answered]).tolist() if units.settings[choice]]
        at = f" at {'; '.join(choices[:SHOWN])}" if choices else ""
        parts.append(f"{side.name} has {len(np.unique(units.question[answered])):,} questions{at}")
    return AnalysisError(
        f"{what} at the same settings", hint=". ".join(parts) + ". MODEL@SETTING=VALUE chooses one configuration of each side"
    )


def left_out(sides: Sequence[Side], used: Sequence[set[int]], there: Configurations, axes: Sequence[str]) -> list[str]:
    """Warnings of sides of which only some configurations take part."""
    warnings = []
    for side, some in zip(sides, used, strict=True):
        unused = [place for place in side.configurations if place not in some]
        if unused and some:
            warnings.append(
                f"only {len(some)} of {len(side.configurations)} configurations of {side.name} enter ({there.described(sorted(some), side.configurations, SHOWN)}): "
                f"no other side has a score at the settings of the others ({there.described(unused, side.configurations, SHOWN)}); "
                f"{side.name.partition('@')[0]}@{','.join(f'{name}=...' for name in axes) or 'SETTING=...'} chooses one"
            )
    more = [f"{len(warnings) - SHOWN} more sides enter with some of their configurations only: see configurations_used in the table models"]
    return warnings if len(warnings) <= SHOWN else warnings[:SHOWN] + more


def warnings_of(
    sides: Sequence[Side],
    there: Configurations,
    axes: Sequence[str],
    used: Sequence[set[int]],
    table: Panel,
    pairs: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    whole: Pairs,
    of_sides: Sides,
    tests: Sequence[str],
    test: str,
) -> list[str]:
    """What is left out, what differs, and what the tests take for granted."""
    return [
        *left_out(sides, used, there, axes),
        *differing(sides, there, axes),
        *_gaps(sides, table, pairs, whole, of_sides),
        *_twins(sides),
        *_tests(whole, tests, test),
    ]


def _gaps(
    sides: Sequence[Side], table: Panel, pairs: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], whole: Pairs, of_sides: Sides
) -> list[str]:
    warnings = []
    apart = [f"{sides[i].name} and {sides[j].name}" for i, j, n in zip(*pairs, whole.n, strict=True) if not n]
    if apart:
        warnings.append(f"{len(apart):,} of {len(whole.n):,} pairs have no common question and no row: {_some(apart)}")
    alone = [side.name for side, n in zip(sides, of_sides.n.tolist(), strict=True) if not n]
    if alone:
        warnings.append(f"nothing in common with any other side: {_some(alone)}")
    if len(sides) > 2 and not on_the_same(table):
        warnings.append(
            f"best is empty: the sides stand on different questions or settings ({of_sides.n.min():,} to {of_sides.n.max():,} of "
            f"{len(compared(table)):,} questions), so their accuracies do not compare; --common all puts all of them on the same ones"
        )
    return warnings


def _twins(sides: Sequence[Side]) -> list[str]:
    first: dict[tuple[int, ...], str] = {}
    twins = [(first.setdefault(side.configurations, side.name), side.name) for side in sides if side.run is None]
    return [f"{one} and {other} are the same configurations" for one, other in twins if one != other]


def _tests(whole: Pairs, tests: Sequence[str], test: str) -> list[str]:
    warnings = []
    if test == "mcnemar" and {"t", "permutation"} & {one for one, n in zip(tests, whole.n.tolist(), strict=True) if n}:
        warnings.append(
            "exact McNemar needs credits of 0 or 1: pairs with means over settings or repetitions, or with partial credit, have exact sign flips or a paired t-test"
        )
    shared = (whole.clusters < whole.n) & (whole.design_effect > NOTABLE)
    if test != "cluster" and shared.any():
        effect = float(np.median(whole.design_effect[shared]))
        warnings.append(
            f"questions share images, which makes the variance of {int(shared.sum()):,} of {len(shared):,} differences larger "
            f"({effect:.2g} times in the median): p takes questions as independent; p_cluster, the intervals and decided do not"
        )
    return warnings


def _some(names: Sequence[str], shown: int = SHOWN) -> str:
    return "; ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")
