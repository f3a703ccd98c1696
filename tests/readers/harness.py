"""Our own fixture folders as plain values, compared with the `.expected.json` beside each.

`TRACKR_REGENERATE=1 pytest tests/readers` writes the expected files anew: read the diff before committing it.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.batch import Batch, Refusal
from tracker.readers.base import Folder
from tracker.study import Study

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tracker.batch import Source
    from tracker.readers.base import Reader

INGEST = Path(__file__).resolve().parent.parent / "data" / "ingest"


def variants(reader: str) -> list[str]:
    """The fixture folders of a format."""
    return sorted(path.name for path in (INGEST / reader).iterdir() if path.is_dir())


def sources(reader: Reader, root: Path) -> list[Source]:
    """Every source of a format below a folder."""
    found: list[Source] = []
    claimed: set[Path] = set()
    for folder, folders, names in sorted(os.walk(root.resolve())):
        offered = [name for name in sorted(names) if Path(folder) / name not in claimed]
        sources = reader.find(Folder(Path(folder), offered, sorted(folders)), Study.empty())
        claimed.update(path for source in sources for path in (*source.files, *source.claims))
        found += sources
    return found


def read(reader: Reader, root: Path) -> tuple[list[Batch], list[Refusal]]:
    """Everything below a folder."""
    parts = [part for source in sources(reader, root) for part in reader.read(source, Study.empty())]
    return [part for part in parts if isinstance(part, Batch)], [part for part in parts if isinstance(part, Refusal)]


def described(reader: Reader, root: Path) -> dict[str, Any]:
    """Everything below a folder as JSON values, without what is null."""
    found: dict[str, Any] = {}
    for source in sources(reader, root):
        place = Path(source.uri).relative_to(root.resolve()).as_posix()
        found[place] = [_part(part, root) for part in reader.read(source, Study.empty())]
    return found


def matches(reader: Reader, variant: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a fixture folder is read as, and what it should be."""
    root = INGEST / reader.name / variant
    expected = root.with_name(f"{variant}.expected.json")
    found = described(reader, root)
    if os.environ.get("TRACKR_REGENERATE"):
        expected.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return found, json.loads(expected.read_text(encoding="utf-8"))


def _part(part: Batch | Refusal, root: Path) -> dict[str, Any]:
    if isinstance(part, Refusal):
        return {"refused": _filled({"file": Path(part.file).name, "line": part.line, "reason": part.reason.replace(str(root), "")})}
    header = part.run.model_dump(mode="json", exclude_none=True, exclude={"settings", "tags", "kind"})
    tables = {
        name: _rows(table) for name in ("records", "questions", "labels", "record_scores") if (table := getattr(part, name)) is not None
    }
    return {
        "run": _filled(header),
        "model_args": part.run.settings.get("model_args", {}),
        **tables,
        "scores": [one.model_dump(mode="json", exclude_none=True) for one in part.scores],
    }


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    return [_filled(row) for row in table.to_pylist()]


def _filled(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _rounded(value) for name, value in row.items() if value is not None and value != {}}


def _rounded(value: Any) -> Any:
    return round(value, 12) if isinstance(value, float) and math.isfinite(value) else value


def rows(batches: list[Batch]) -> Iterator[dict[str, Any]]:
    """The records of batches."""
    for batch in batches:
        yield from batch.records.to_pylist()
