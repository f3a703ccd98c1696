"""A small study with sweeps and every later option, and what reads it back; shared by the tests of sweeps."""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.batch import Refusal
from tracker.catalog import load as load_catalog
from tracker.readers.base import Folder, Reader
from tracker.simulate.spec import StudyPlan, parse
from tracker.study import Study

if TYPE_CHECKING:
    from pathlib import Path

Key = tuple[str, str, str, int, str]
Records = dict[Key, list[dict[str, Any]]]
GRID = """
seed = 11
models = ["Qwen3-VL-2B"]
benchmark = [
    { name = "HRBench4K", questions = 40 },
    { name = "MME-RealWorld-Lite", questions = 60, repeated = 12 },
    { name = "TreeBench", questions = 30 },
    { name = "V*Bench", questions = 40, input_sizes = [224, 1024] },
]
"""
OPTIONS = """
failed = 0.02
without_probabilities = 0.01
token_limit_hits = 0.05
unparsed = 0.03
latency = { base = 0.1, per_tflop = 0.02 }
"""
TILING = """
[[sweep]]
models = ["InternVL3.5-8B"]
max_tiles = [1, 6, 12]
source_quality = ["native", "224"]
benchmarks = { hrbench4k = 30, MME-RealWorld-Lite = 40, TreeBench = 30, "V*Bench" = 40 }
[[sweep.law]]
series = "InternVL3.5"
benchmark = "TreeBench"
floor = 0.3
a_n = 0.1
alpha = 0.2
b_r = 0.08
beta = 0.3
"""
LAWS = "".join(
    f'[[sweep.law]]\nseries = "InternVL3.5"\nsuite = "{suite}"\nfloor = 0.1\na_n = 0.1\nalpha = 0.2\nb_r = 0.2\nbeta = 0.35\n'
    for suite in ("HR-Bench", "MME-RealWorld", "V*Bench")
)
CAPPED = """
[[sweep]]
models = ["Qwen3-VL-8B"]
token_cap = [64, 1024]
benchmarks = { MME-RealWorld-Lite = 60, "V*Bench" = 40 }
"""


def small() -> StudyPlan:
    """A study with every option."""
    return parse(OPTIONS + GRID + TILING + LAWS + CAPPED, "small")


class Read(NamedTuple):
    """A folder read back; keys are model, benchmark, knob, value and quality (of the grid: input_size, and no quality)."""

    records: Records
    settings: dict[Key, dict[str, Any]]
    questions: dict[tuple[str, str], dict[str, Any]]


def read(reader: Reader, root: Path, part: str) -> Read:
    """Read a part of a simulated study."""
    study, catalog = Study.load(root / "study.toml"), load_catalog()
    records: Records = defaultdict(list)
    settings: dict[Key, dict[str, Any]] = {}
    questions: dict[tuple[str, str], dict[str, Any]] = {}
    for place, _, names in sorted(os.walk(root / part)):
        for source in reader.find(Folder(root.__class__(place), sorted(names)), study):
            for batch in reader.read(source, study):
                assert not isinstance(batch, Refusal)
                header = study.apply(batch.run, source)
                model, benchmark = catalog.model(header.model), catalog.benchmark(header.benchmark or "")
                assert model is not None
                assert benchmark is not None
                one = header.configuration
                knob = "input_size" if one.input_size else "pixel_cap" if one.pixel_cap else "max_tiles"
                key = model.name, benchmark.name, knob, getattr(one, knob), one.source_quality or ""
                records[key].extend(batch.records.to_pylist())
                settings[key] = one.model_dump() | {"status": header.status}
                for question in batch.questions.to_pylist() if batch.questions else []:
                    questions.setdefault((benchmark.name, question["key"]), question)
    return Read(records, settings, questions)


def truth_of(folder: Path) -> dict[str, Any]:
    """What was planted."""
    planted: dict[str, Any] = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    return planted


def cells_of(truth: dict[str, Any]) -> dict[Key, tuple[dict[str, Any], dict[str, Any]]]:
    """Sweep and cell by key."""
    return {
        (sweep["model"], sweep["benchmark"], sweep["axis"], cell["setting"], cell["source_quality"]): (sweep, cell)
        for sweep in truth["sweeps"]
        for cell in sweep["cells"]
    }


def credit(record: dict[str, Any]) -> float | None:
    """Correct, else the score."""
    return float(record["correct"]) if record["correct"] is not None else record["score"]


def digest(folder: Path) -> dict[str, str]:
    """Every file's bytes."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
