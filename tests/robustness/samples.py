"""Real files as units, where there are any."""

from __future__ import annotations

from functools import cache

import pytest

from tests.conftest import samples
from tests.robustness.units import Unit, folder_of

LARGEST_UNIT = 400_000
"""Bytes of a unit: every example writes it anew."""
PLACES: dict[str, list[tuple[str, str, list[str]]]] = {
    "lm_eval": [
        ("lm_eval/eee_fixture", "", ["*.json", "*.jsonl"]),
        ("lm_eval/saucam/mrm8488", "", ["**/*.json*"]),
    ],
    "lmms_eval": [("lmms_eval/shruum/qwen_all", "", ["**/*.json*"])],
    "vlmevalkit": [
        ("vlmevalkit/zenjieli", "", ["**/*.xlsx", "**/*.csv", "**/*.tsv", "**/*.json"]),
        ("vlmevalkit/mmstar", "", ["**/*.xlsx"]),
    ],
    "helm": [
        ("helm/eee_fixture", "narrative_qa", ["narrative_qa*/*.json"]),
        ("helm/eee_fixture", "hellaswag", ["*hellaswag*/*.json"]),
    ],
    "evalscope": [("evalscope/qwen-plus", "iquiz", ["**/*iquiz*"])],
    "opencompass": [("opencompass/quantwb-16-bit/CommonsenseQA", "", ["**/*.json"])],
    "inspect_ai": [
        ("inspect_ai/eee_fixture", "arc_qwen", ["data_arc_qwen.json"]),
        ("inspect_ai/eee_fixture", "llm_scoring", ["data_with_llm_scoring.json"]),
        ("inspect_ai/inspect_tests/log/test_eval_log", ".eval", ["*.eval"]),
        ("inspect_ai/inspect_tests/scorer/logs", ".eval", ["*.eval"]),
    ],
    "every_eval_ever": [("every_eval_ever/fixtures/skill_reference_conversion", "", ["**/*.json*"])],
    "mlflow_files": [("mlflow/groq_eval", "", ["mlruns/*/*/meta.yaml", "mlruns/**/artifacts/**/*.*", "mlruns/*/*/metrics/*"])],
    "mlflow_sqlite": [("mlflow/heart", "", ["mlflow.db"])],
}


@cache
def sample_units(format_: str) -> tuple[Unit, ...]:
    """Real folders of a format that are small enough."""
    try:
        root = samples()
    except pytest.skip.Exception:
        return ()
    found = []
    for place, below, targets in PLACES.get(format_, ()):
        if not (root / place).is_dir():
            continue
        unit = folder_of(format_, place, root / place, targets, below=below)
        if sum(map(len, unit.files.values())) <= LARGEST_UNIT * (2 if format_ == "mlflow_sqlite" else 1):
            found.append(unit)
    return tuple(found)
