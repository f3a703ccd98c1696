"""The plain way: json.loads per line, a frame per file, pandas.DataFrame.to_sql into SQLite."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import pandas as pd


def main() -> None:
    """Load all sample files under the folder into one table; what is nested goes in as JSON text."""
    connection = sqlite3.connect(sys.argv[2])
    for path in sorted(Path(sys.argv[1]).rglob("*_samples_*.jsonl")):
        with path.open(encoding="utf-8") as stream:
            rows = [_flat(json.loads(line)) for line in stream]
        frame = pd.DataFrame(rows)
        frame["file"] = str(path)
        columns = [name for name in COLUMNS if name in frame]
        frame[["file", *columns]].to_sql("records", connection, if_exists="append", index=False)
    connection.commit()
    connection.close()


COLUMNS = (
    "doc_id",
    "target",
    "filtered_resps",
    "input",
    "token_counts",
    "p_gold",
    "option_scores",
    "logit_prediction",
    "visual_tokens",
    "tiles",
    "effective_pixels",
    "image_key",
    "pair_key",
    "n_options",
    "status",
)


def _flat(row: dict[str, object]) -> dict[str, object]:
    return {name: json.dumps(value) if isinstance(value, (dict, list)) else value for name, value in row.items()}


if __name__ == "__main__":
    main()
