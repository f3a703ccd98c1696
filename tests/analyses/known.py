"""Recomputed numbers of the separable-law paper, from the shared data beside the checkout."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
"""The checkout."""


@dataclass(frozen=True, slots=True)
class Known:
    """A row of separable_known_answers.csv, as text except for the inputs."""

    id: str
    what: str
    source: str
    inputs: Any
    """What `inputs_json` holds."""
    formula: str
    expected: str
    """As the paper prints it."""
    recomputed: str
    holds: str
    note: str


def known(prefix: str, file: str = "separable_known_answers.csv") -> list[Known]:
    """The rows whose id starts with `prefix`, in order; the test is skipped, aloud, where the file is not there.

    The folder is TRACKR_DATA, else the first that exists of shared/data beside the checkout and /work/shared/data.
    Raises KeyError where no row has such an id: a test that looks for nothing proves nothing.
    """
    rows = [
        Known(
            id=row["id"],
            what=row["what"],
            source=row["source"],
            inputs=json.loads(row["inputs_json"] or "{}"),
            formula=row["formula"],
            expected=row["expected_printed"],
            recomputed=row["recomputed"],
            holds=row["holds"],
            note=row["note"],
        )
        for row in csv.DictReader(_text(file).splitlines())
        if row["id"].startswith(prefix)
    ]
    if not rows:
        raise KeyError(prefix)
    return rows


def _text(file: str) -> str:
    places = [os.environ.get("TRACKR_DATA"), ROOT.parent / "shared" / "data", "/work/shared/data"]
    for place in places:
        if place and Path(place).is_dir():
            return (Path(place) / file).read_text(encoding="utf-8")
    pytest.skip("no known answers here; set TRACKR_DATA to their folder", allow_module_level=True)
