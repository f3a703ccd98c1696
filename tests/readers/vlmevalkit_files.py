"""Files as VLMEvalKit writes them: the same pandas calls with the same options as its `dump` (vlmeval/smp/file.py)."""

from __future__ import annotations

import csv
import json
import warnings
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def dump(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    """Rows as xlsx, tsv, csv or json."""
    frame = pd.DataFrame(list(rows))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".xlsx":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about texts that Excel cuts or drops: what the tests are about
            options = {"options": {"strings_to_formulas": False}}
            with pd.ExcelWriter(path, engine="xlsxwriter", engine_kwargs=options) as writer:
                frame.to_excel(writer, index=False)
    elif path.suffix == ".json":
        path.write_text(json.dumps(frame.to_dict("records"), indent=4, ensure_ascii=False), encoding="utf-8")
    else:
        frame.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False, encoding="utf-8", quoting=csv.QUOTE_ALL)
    return path


def status(folder: Path, datasets: dict[str, dict[str, Any]], **fields: Any) -> Path:
    """A status.json of schema 1.0."""
    document = {
        "schema_version": "1.0",
        "eval_id": folder.name,
        "created_at": "2026-04-10T09:00:00.123456+08:00",
        "datasets": datasets,
        "model_name": folder.parent.name,
        "commit": "a9343a1e",
        "argv": ["run.py", "--data", "MMStar", "--api-key", "sk-very-secret"],
        "world_size": 1,
        "updated_at": "2026-04-10T10:00:00+08:00",
        **fields,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "status.json"
    path.write_text(json.dumps(document, indent=2), encoding="utf-8")
    return path


def predictions(count: int = 4, **columns: Sequence[Any]) -> list[dict[str, Any]]:
    """Multiple-choice predictions: A to D, the right one in turn, all answered A."""
    rows = [
        {
            "index": place,
            "question": f"What is in picture {place}?",
            "A": f"a cat {place}",
            "B": f"a dog {place}",
            "C": f"a bird {place}",
            "D": f"a fish {place}",
            "answer": "ABCD"[place % 4],
            "category": "coarse perception" if place % 2 else "math",
            "l2_category": "image emotion" if place % 2 else "geometry",
            "prediction": "A",
        }
        for place in range(count)
    ]
    for name, values in columns.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    return rows


def judged(rows: Sequence[dict[str, Any]], hits: Sequence[Any], logs: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The same with what the multiple-choice evaluation adds, and its small letters in column names."""
    logs = logs or [f"Match Log: {row['prediction']}. " for row in rows]
    return [
        {name if len(name) == 1 else name.lower(): value for name, value in row.items()} | {"hit": hit, "log": log}
        for row, hit, log in zip(rows, hits, logs, strict=True)
    ]
