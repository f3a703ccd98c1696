"""Cost laws pooled and by series, on FLOP and on latency (Table 29), and what cells lack for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from analyses.law.tables import group_columns, whole
from analyses.laws.cost import CostLaw, fit_cost
from analyses.notes import Note, merged
from analyses.result import Column, FittedLaw, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from analyses.cells import Cells, CellStudy
    from analyses.cost.components import Components, Variant

    Array = npt.NDArray[np.float64]

POOLED = "pooled"
K = 3
"""Parameters of a cost law."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawRow:
    """A cost law of one scope at one weight of the vision side."""

    scope: str
    weight: float
    law: CostLaw
    latency: CostLaw | None
    """Fitted at weight 0; None where no cell has a latency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Laws:
    """All cost laws: pooled first, then series in alphabetical order, each at every weight."""

    rows: list[LawRow]
    weights: list[float]
    warnings: list[str] = field(default_factory=list)


def fit_laws(cells: Cells, keep: npt.NDArray[np.bool_], costs: Array, weights: list[float]) -> Laws:
    """Fit every scope; `costs` is weights x cells, `keep` the cells with N, R and an error."""
    latency = np.where(keep, cells.latency_s, np.nan)
    timed = bool((latency > 0).any())
    rows, warnings = [], [] if timed else ["no answer states latency_s: the columns of latency are empty"]
    for scope, members in scopes(cells):
        for place, weight in enumerate(weights):
            some = members & keep
            law = fit_cost(cells.parameters[some], cells.tokens[some], costs[place][some])
            clock = fit_cost(cells.parameters[some], cells.tokens[some], latency[some]) if timed and not place else None
            rows.append(LawRow(scope=scope, weight=weight, law=law, latency=clock))
            at = f" at vision weight {weight:g}" if weight else ""
            if law.why is not None:
                warnings.append(f"{scope}: no cost law{at}, {law.why}")
            if clock is not None and clock.why is not None:
                warnings.append(f"{scope}: no latency law, {clock.why.replace('a cost', 'a latency').replace('and cost', 'and latency')}")
    return Laws(rows=rows, weights=weights, warnings=warnings)


def scopes(cells: Cells) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    """All cells, then those of each series."""
    series = cells.text["series"]
    named = sorted({str(name) for name in series.tolist() if name is not None})
    return [(POOLED, np.ones(len(cells), dtype=bool)), *((name, np.asarray(series == name)) for name in named)]


def laws_table(laws: Laws) -> Table:
    """In the layout of Table 29, with a row per weight of the vision side."""
    values: list[dict[str, Any]] = []
    for row in laws.rows:
        law, clock = row.law, row.latency
        values.append(
            {
                "scope": row.scope,
                "vision_weight": row.weight,
                "n": law.n,
                "kappa": law.kappa,
                "p": law.p,
                "q": law.q,
                "r2": law.r2,
                "latency_n": clock.n if clock is not None else None,
                "latency_kappa": clock.kappa if clock is not None else None,
                "latency_p": clock.p if clock is not None else None,
                "latency_q": clock.q if clock is not None else None,
                "latency_r2": clock.r2 if clock is not None else None,
            }
        )
    columns = (
        Column("scope", "pooled over all cells, or one series"),
        Column("vision_weight", "lambda of Eq. 21: weight of vision encoder and projector in the cost", "number"),
        Column("n", "cells with N, R and a cost", "count"),
        Column("kappa", "FLOP at a billion parameters and one visual token, by the law", "number"),
        Column("p", "elasticity of FLOP with respect to N", "number"),
        Column("q", "elasticity of FLOP with respect to R", "number"),
        Column("r2", "1 - SSE/SST of log FLOP", "share"),
        Column("latency_n", "cells with N, R and a latency", "count"),
        Column("latency_kappa", "seconds at a billion parameters and one visual token, by the law", "number"),
        Column("latency_p", "elasticity of latency with respect to N", "number"),
        Column("latency_q", "elasticity of latency with respect to R", "number"),
        Column("latency_r2", "1 - SSE/SST of log latency", "share"),
    )
    return Table.of("Laws: C = kappa N^p R^q, N in billions", columns, {c.name: [row[c.name] for row in values] for c in columns})


def fitted_laws(laws: Laws) -> list[FittedLaw]:
    """The cost laws that were fitted, as rows of `fits`."""
    found = []
    for row in laws.rows:
        for what, law in (("cost", row.law), ("latency", row.latency)):
            if law is not None and law.why is None:
                values = {"kappa": law.kappa, "p": law.p, "q": law.q, "vision_weight": row.weight}
                r2 = law.r2 if np.isfinite(law.r2) else None
                found.append(FittedLaw(law=what, group_key=row.scope, parameters=values, n=law.n, k=K, r2=r2))
    return found


def cost_warnings(study: CellStudy, variant: Variant) -> list[str]:
    """Warnings of groups whose cells lack a number; models without architecture numbers are named elsewhere."""
    cells = study.cells
    needed = {"prompt_tokens": cells.prompt_tokens} | ({} if variant == "prompt" else {"generated_tokens": cells.generated_tokens})
    notes = []
    for group in range(len(study.groups)):
        members = study.groups.members(group)
        for name, values in needed.items():
            missing = int(np.isnan(values[members]).sum())
            if missing:
                some = f"{missing:,} of {len(members):,} cells lack {name} and have no cost"
                notes.append(Note(study.groups.name(group) or "all cells", some, f"cells lack {name} and have no cost"))
    return merged(notes, len(study.groups))


def cells_table(study: CellStudy, components: Components, costs: Array, weights: Sequence[float], predicted: Array) -> Table:
    """Every cell with the parts of its cost, per answer."""
    cells, by = study.cells, study.groups.by
    further = [name for name in ("model", "benchmark") if name not in by]
    dearest = weights[-1]
    columns = [
        *group_columns(by),
        *(Column(name, f"{name} of the cell") for name in further),
        Column("input_size", "input size, in px", "count"),
        Column("N", "parameters of the language model, in billions", "number"),
        Column("R", "mean visual tokens", "number"),
        Column("error", "1 - mean credit", "share"),
        Column("predicted", "error that the group's separable law predicts", "share"),
        Column("prompt_flop", "2 P T_prompt, FLOP per answer", "number"),
        Column("generation_flop", "2 P T_generated, FLOP per answer", "number"),
        Column("attention_flop", "causal attention of the language model, FLOP per answer; computed for --variant attention", "number"),
        Column("vision_flop", "vision encoder and projector, FLOP per answer; computed for --vision-weight", "number"),
        Column("cost", "cost of the variant at vision weight 0, FLOP per answer", "number"),
        Column("latency_s", "mean latency, in seconds", "number"),
    ]
    data: dict[str, Any] = {
        **{name: [study.groups.keys[code][place] for code in study.groups.code.tolist()] for place, name in enumerate(by)},
        **{name: cells.text[name] for name in further},
        "input_size": whole(cells.input_size),
        "N": cells.parameters,
        "R": cells.tokens,
        "error": cells.error,
        "predicted": predicted,
        "prompt_flop": components.prompt,
        "generation_flop": components.generation,
        "attention_flop": components.attention,
        "vision_flop": components.vision,
        "cost": costs[0],
        "latency_s": cells.latency_s,
    }
    if dearest:
        columns.insert(-1, Column("cost_with_vision", f"the same with the vision side at weight {dearest:g}", "number"))
        data["cost_with_vision"] = costs[-1]
    return Table.of("Cells: what an answer costs", columns, data, shown=10)
