"""What the charts of the analyses say: titles, words that fit, marks that are not cut, and what is not determined."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analyses.ceiling import charts as ceiling
from analyses.exponents import charts as exponents
from analyses.floors import charts as floors
from analyses.holdout import charts as holdout
from analyses.plot import svg
from analyses.regret import charts as regret
from analyses.result import Column, Table
from analyses.sweep import charts as sweep
from analyses.tokens import charts as tokens


def table(rows: list[dict[str, Any]]) -> Table:
    """Rows as a table."""
    return Table.of("T", [Column(name, name) for name in rows[0]], {name: [row[name] for row in rows] for name in rows[0]})


def domains(spec: Any) -> list[list[float]]:
    """All numeric domains of a chart."""
    if isinstance(spec, list):
        return [found for part in spec for found in domains(part)]
    if not isinstance(spec, dict):
        return []
    own = spec.get("domain")
    mine = [own] if isinstance(own, list) and own and all(isinstance(end, int | float) for end in own) else []
    return mine + [found for part in spec.values() for found in domains(part)]


def test_the_number_of_the_longest_bar_of_regret_lies_inside_its_axis() -> None:
    drawn = {"evaluation": "joint", "regret": {rule: np.array([1.0, 20.0]) for rule in regret.TITLES}}
    spec = regret.bars(drawn).to_dict()
    longest = float(np.percentile([1.0, 20.0], 90))
    assert max(high for _, high in domains(spec)) == pytest.approx(1.2 * longest)
    drawn["regret"] = {rule: np.zeros(2) for rule in regret.TITLES}
    assert svg(regret.bars(drawn)).startswith("<svg")


def test_ticks_of_tokens_are_apart_and_the_words_have_room() -> None:
    rows = [{"series": "A", "family": "F", "cells": 3, "lowest": 40.0, "highest": 14_000.0, "span": 350.0, "shared_span": None}]
    spec = tokens.ranges(table(rows)).to_dict()
    assert domains(spec) == [[pytest.approx(40 / 1.3), pytest.approx(28_000)]]
    text = svg(tokens.ranges(table(rows)))
    assert "350x" in text
    assert ">3,000<" in text
    assert ">2,000<" not in text


def test_holdout_rows_are_words_and_their_marks_are_not_on_the_frame() -> None:
    rows = [
        {"exponents": scope, "design": design, "level": level, "law": "coupled", "difference": value}
        for scope, design, level, value in [("group", "backbone", "all", 2.0), ("shared", "joint", "interior", -1.0)]
    ]
    spec = holdout.differences_chart(rows).to_dict()
    assert "exponents per group, backbone size left out" in json.dumps(spec)
    assert "shared exponents, both left out" in json.dumps(spec)
    assert [-1 - 0.18, 2 + 0.18] in [pytest.approx(domain) for domain in domains(spec)]


def test_medians_have_three_digits_and_the_number_of_estimates() -> None:
    row = {"level": "group", "by": "family", "value": "F", "exponent": "alpha", "median": 0.70312, "min": 0.5, "max": 1.0, "interior": 4}
    row |= {"at_lower": 0, "at_upper": 0, "median_all": 0.7}
    assert "0.703 (n = 4)" in svg(exponents.medians({"exponents": table([row])}))


def test_the_plane_of_exponents_counts_fits_that_determine_one_alone() -> None:
    row = {"level": "group", "series": "S", "family": "F", "alpha": 0.5, "beta": 1.0, "alpha_bound": None, "beta_bound": None}
    rows = [
        row | {"status": "fitted"},
        row | {"alpha": None, "status": "2 levels of N"},
        row | {"alpha": None, "status": "not fitted: 3 cells"},
    ]
    assert "1 of 2 fits do not determine both and are not drawn" in svg(exponents.plane({"estimates": table(rows)}))


def test_floors_that_are_not_determined_are_hollow_and_none_is_cut() -> None:
    row = {"series": "S", "suite": "B", "subset": "a", "task": "t", "e_inf": 0.0, "n": 9, "r2": 0.5, "floor": True}
    rows = [row, row | {"subset": "b", "floor": None}]
    chart = floors.floors({"fits": table(rows)}, ("series", "suite"), (0.01, 0.2))
    text = json.dumps(chart.to_dict())
    assert "hollow: not determined by the points (1)" in text
    assert '"filled": false' in text
    assert all(low < 0 and high > 1 for low, high in domains(chart.to_dict()))
    assert '"filled": false' not in json.dumps(floors.floors({"fits": table(rows[:1])}, ("series", "suite"), (0.01, 0.2)).to_dict())


@pytest.mark.parametrize(
    ("axis", "span", "drawn"), [("input_size", 1.4, "input size"), ("input_size", 40, "tokens"), ("max_tiles", 1.4, "tokens")]
)
def test_sweeps_of_the_input_size_with_hardly_any_tokens_are_drawn_against_it(axis: str, span: float, drawn: str) -> None:
    row = {"model": "M", "series": "S", "benchmark": "B", "axis": axis, "settings": "", "source_quality": "native", "questions": 9}
    rows = [row | {"setting": setting, "tokens": 1000 * span**place, "accuracy": 50.0 + place} for place, setting in enumerate((224, 448))]
    text = svg(sweep.curves({"curve": table(rows)}))
    assert f"Accuracy against {'input size' if drawn == 'input size' else 'visual tokens'}" in text
    assert ("input size, px" in text) == (drawn == "input size")


def test_answers_are_right_or_wrong_and_in_part_only_where_they_are() -> None:
    row = {"benchmark": "B", "question_key": "1", "gold": "A", "model": "M", "input_size": 224, "input_mode": "fixed", "prediction": "A"}
    rows = [row | {"credit": 1.0}, row | {"input_size": 448, "credit": 0.0}]
    text = svg(ceiling.answers(table(rows)))
    assert ">right<" in text
    assert ">wrong<" in text
    assert ">in part<" not in text
    assert ">in part<" in svg(ceiling.answers(table([*rows, row | {"input_size": 448, "credit": 1.0}])))


def test_regime_shares_are_drawn_by_task_where_there_are_tasks() -> None:
    def drawn(tasks: list[str | None]) -> str:
        labels: dict[str, Any] = {"suite": ["B"], "series": ["S"], "task": tasks}
        factors = {name: SimpleNamespace(labels=values, codes=np.arange(4) % len(values)) for name, values in labels.items()}
        data: Any = SimpleNamespace(trajectories=SimpleNamespace(labels=factors))
        unused: Any = None
        return svg(ceiling.shares(data, unused, np.array([0, 1, 2, 2])))

    assert "reasoning (task)" in drawn(["perception", "reasoning"])
    assert "(task)" not in drawn([None])
