"""Which field of a row is the key of its question.

A key must mean the same question in every run and, where the data set has ids of its own, in every framework.
A bare whole number that is no such id is a position in one framework's own file: two frameworks may count different
rows with it, so the framework's name goes before it, and the same question is joined by its content instead.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from tracker.readers.values import text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OWN_IDS: dict[str, tuple[str, ...]] = {
    "hrbench": ("index",),
    "vstar": ("question_id", "index"),
    "mmerealworld": ("question_id", "index"),
    "treebench": ("question_id", "index"),
    "mmstar": ("question_id", "index"),
    "mmmu": ("id", "question_id"),
    "mmbench": ("index",),
    "blink": ("idx",),
    "mathvista": ("pid",),
    "mathv": ("id",),
}
"""Id fields, in order, of benchmarks whose ids belong to the data set; by the beginning of the benchmark's name: its letters and digits, "*" spelled out.

`index` is VLMEvalKit's name for a row: the data set's own id in some (V*Bench, HR-Bench, MMStar, MME-RealWorld, TreeBench, MMBench), a position in the others."""
ID_FIELDS = ("question_key", "question_id", "qid", "pid", "uid", "uuid", "id", "idx", "index", "sample_id", "doc_id")
"""Id fields, in order, of any other benchmark."""
NATIVE = frozenset({"model", "benchmark", "question_id"})
_NUMBER = re.compile(r"\d+(?:\.0)?")
_LOCAL = re.compile(r"[/\\~]|[A-Za-z]:[/\\]")
_NOT_NAME = re.compile(r"[^a-z0-9]")


def is_native(names: Iterable[str]) -> bool:
    """Whether columns are those of a native table (docs/native-table.md), which names its own model, benchmark and question in every row: it is no other format's, whatever else is in it or the file is called."""
    return NATIVE.issubset(names)


def image_place(place: str, top: str | None = None) -> str:
    """Key of an image by its address or path, so that it is the same on every machine.

    Addresses and relative paths are kept. Of a path on one machine only what lies below the folder `top` counts, else its last two parts.
    """
    if "://" in place:
        return place
    parts = PurePosixPath(place.replace("\\", "/")).parts
    if top in parts:
        return "/".join(parts[parts.index(top) + 1 :])
    return "/".join(parts[-2:] if _LOCAL.match(place) else parts)


def id_fields(benchmark: str) -> tuple[str, ...]:
    """Where to look for the id of a question of a benchmark, in order."""
    return (*own_ids(benchmark), *ID_FIELDS)


def own_ids(benchmark: str) -> tuple[str, ...]:
    """Fields that hold the data set's own ids; empty where none are known."""
    squeezed = _NOT_NAME.sub("", benchmark.lower().replace("*", "star"))
    return next((fields for name, fields in OWN_IDS.items() if squeezed.startswith(name)), ())


def question_key(framework: str, benchmark: str, row: Mapping[str, Any], content_hash: str | None = None) -> str | None:
    """The key of a row's question: the first id field that it has, else the hash of what it asks; None without either."""
    own = own_ids(benchmark)
    for field in (*own, *ID_FIELDS):
        key = text(row.get(field))
        if key is not None and key.strip():
            return key if field in own else keyed(framework, key)
    return None if content_hash is None else f"hash:{content_hash[:24]}"


def keyed(framework: str, key: str) -> str:
    """An id that is no data set's own: the framework's name goes before a bare number."""
    return f"{framework}:{key.removesuffix('.0')}" if _NUMBER.fullmatch(key) else key
