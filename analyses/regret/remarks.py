"""What the regret analysis must warn of: cells without a cost, groups without fits, and rules without a closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analyses.folds import told
from analyses.holdout.remarks import AXES, UNFIT
from analyses.laws.separable import SeparableLaw
from analyses.notes import Note, merged
from analyses.result import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analyses.laws.cost import CostLaw
    from analyses.regret.decisions import Decisions
    from analyses.regret.tables import Judged


def remarks(judged: Judged, cost_law: CostLaw, cost: str) -> list[str]:
    """All warnings; `cost` is what a cell without a cost lacks."""
    groups = len(judged.market.layout)
    return [
        *merged(_lacking(judged, cost), groups),
        *merged(_unfit(judged), groups),
        *_without_optimum(judged.decisions, cost_law),
    ]


def _lacking(judged: Judged, cost: str) -> Iterator[Note]:
    market = judged.market
    by_size = any(one.evaluation in ("joint", "input_size") for one in judged.decisions)
    for row, group in enumerate(market.layout.group.tolist()):
        members = market.layout.cell[row][market.layout.inside[row]]
        name, of = judged.study.groups.name(group) or "all cells", counted(len(members), "cell")
        costless, sizeless = (int(np.isnan(values[members]).sum()) for values in (market.cost, market.input_size))
        if costless:
            kind = f"cells have no {cost}, so no cost: no rule can choose them"
            yield Note(name, f"{costless:,} of {of} {_have(costless)} no {cost}, so no cost: no rule can choose {_them(costless)}", kind)
        if by_size and sizeless:
            kind = "cells have no input size: no fold withholds them by it"
            yield Note(name, f"{sizeless:,} of {of} {_have(sizeless)} no input size: no fold withholds {_them(sizeless)} by it", kind)


def _unfit(judged: Judged) -> Iterator[Note]:
    """Groups some of whose folds leave too little, and what is lacking."""
    for group in judged.market.layout.group.tolist():
        found = {f"{one.evaluation} fit": one.obstacles[one.folds.group == group] for one in judged.decisions}
        about = told(found, AXES, dict.fromkeys(found, SeparableLaw.k))
        if about:
            yield Note(judged.study.groups.name(group) or "all cells", about, UNFIT)


def _without_optimum(decisions: list[Decisions], cost_law: CostLaw) -> Iterator[str]:
    if cost_law.why is not None:
        yield f"no cost law ({cost_law.why}): projection chooses as direct selection does"
    elif min(cost_law.p, cost_law.q) <= 0:
        yield f"the cost law falls along an axis (p = {cost_law.p:.3g}, q = {cost_law.q:.3g}): projection chooses as direct selection does"
    else:
        for one in decisions:
            if one.fallback.any():
                yield (
                    f"{one.evaluation}: projection has no closed form in {int(one.fallback.sum()):,} of {counted(len(one), 'decision')} "
                    "(an amplitude is zero) and chooses as direct selection does"
                )


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _them(number: int) -> str:
    return "it" if number == 1 else "them"
