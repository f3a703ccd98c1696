"""The rows of the table of known answers that concern tiling and native resolution, where the table is at hand."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tracker.frontends import DynamicTiling, NativeResolution, resize_long_edge, rule, tile_grids

if TYPE_CHECKING:
    from collections.abc import Callable

PLACES = (
    Path(os.environ.get("TRACKR_SAMPLES") or ".") / ".." / "data",
    Path(__file__).resolve().parents[3] / "shared" / "data",
    Path("/work/shared/data"),
)


def known_answers() -> dict[str, dict[str, str]]:
    """The table by id; empty where it is not at hand."""
    for path in (place / "frontend_known_answers.csv" for place in PLACES):
        if path.is_file():
            return {row["id"]: row for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())}
    return {}


ROWS = known_answers()


def tiled(given: dict[str, Any]) -> int:
    """Tokens of a tiled image."""
    return DynamicTiling(max_tiles=given.get("n_max", 12)).view(given["W"], given["H"]).tokens


def native(given: dict[str, Any]) -> int:
    """Tokens of an image at native resolution."""
    if given.get("f") == 32:
        return rule("native", {"factor": 32, "min_pixels": 65_536, "max_pixels": 16_777_216}).view(given["W"], given["H"]).tokens
    return NativeResolution().view(given["W"], given["H"]).tokens


def stretched(given: dict[str, Any]) -> str:
    """Size of the stretched image."""
    view = DynamicTiling().view(given["W"], given["H"])
    return f"{view.width}x{view.height}"


CASES: dict[str, Callable[[dict[str, Any]], object]] = {
    "int1": lambda given: len(tile_grids(1, given["n_max"])),
    "int2": tiled,
    "int4": stretched,
    "int10": lambda given: "{0.columns}x{0.rows}, {0.tiles} views".format(DynamicTiling().view(given["W"], given["H"])),
    "int34": tiled,
    "int35": tiled,
    "int13": lambda given: [
        DynamicTiling().view(*resize_long_edge(given["W"], given["H"], edge)).tokens for edge in (224, 336, 512, 768, 1024, 2048)
    ],
    "nat1": native,
    "nat2": native,
    "nat3": native,
    "eff1": lambda given: DynamicTiling().view(given["W"], given["H"]).effective_pixels,
    "eff2": lambda given: NativeResolution().view(given["W"], given["H"]).effective_pixels,
    "eff4": lambda given: DynamicTiling().view(given["W"], given["H"]).effective_pixels,
}


@pytest.mark.parametrize("case", [case for case in CASES if case in ROWS])
def test_known_answer(case: str) -> None:
    row = ROWS[case]
    assert str(CASES[case](json.loads(row["inputs_json"]))) == row["recomputed"]


@pytest.mark.parametrize("case", [case for case in ROWS if case.startswith("nat12_")])
def test_half_even_answers(case: str) -> None:
    row = ROWS[case]
    assert row["recomputed"].startswith(f"half-even {native(json.loads(row['inputs_json']))},")
