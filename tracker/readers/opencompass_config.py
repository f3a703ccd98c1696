"""What the configuration that OpenCompass writes into configs/ says of a model and a data set.

It is Python text. It is parsed, never run: only literals and calls of `dict` are taken, anything else is kept as its text.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tracker.readers.secrets import masked
from tracker.readers.setting import settings_from
from tracker.readers.values import as_mapping, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tracker.batch import Settings

LARGEST = 16 << 20
_DERIVED = re.compile(r"(?:[A-Za-z]\w*\.){2,}[A-Z][A-Za-z0-9]*_(?P<model>.+)")
"""A model without an abbreviation is named by its class's dotted path and the last two parts of its own."""


@lru_cache(maxsize=4)
def _parsed(path: str, _mark: tuple[int, int]) -> Mapping[str, Any] | None:
    """The assignments of a file; None where it cannot be understood."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - the path is a cache key
            raw = stream.read(LARGEST + 1)
        if len(raw) > LARGEST or not raw.strip():
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how a prompt is escaped
            tree = ast.parse(raw)
        return {
            node.targets[0].id: _value(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        }
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _document(path: Path) -> Mapping[str, Any] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return _parsed(str(path), (state.st_mtime_ns, state.st_size))


def damaged(paths: Iterable[Path]) -> list[Path]:
    """Files that cannot be understood."""
    return [path for path in paths if _document(path) is None]


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str | int | float | bool | None) else repr(node.value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_value(one) for one in node.elts]
    if isinstance(node, ast.Dict):
        return {str(_value(key)): _value(one) for key, one in zip(node.keys, node.values, strict=True) if key is not None}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        return {one.arg: _value(one.value) for one in node.keywords if one.arg is not None}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return -node.operand.value if isinstance(node.operand.value, int | float) else ast.unparse(node)
    return ast.unparse(node)


def entries(paths: Iterable[Path], model: str, dataset: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The entries of a model and a data set, each from the first file that has it; empty where none does."""
    found: list[Mapping[str, Any]] = [{}, {}]
    for path in paths:
        document = _document(path) or {}
        for place, (name, abbr) in enumerate((("models", model), ("datasets", dataset))):
            listed = document.get(name)
            if not found[place] and isinstance(listed, list):
                found[place] = next((one for one in listed if isinstance(one, dict) and _abbr(one) == abbr), {})
    return found[0], found[1]


def _abbr(entry: Mapping[str, Any]) -> str | None:
    given = text(entry.get("abbr"))
    if given is not None:
        return given
    kind, path = text(entry.get("type")), text(entry.get("path"))
    if path is None:
        return None
    if kind is not None and "name" not in entry and "reader_cfg" not in entry:
        return f"{kind}_{'_'.join(path.split('/')[-2:])}".replace("/", "_")
    name = text(entry.get("name"))
    return (f"{path}_{name}" if name else path).replace("/", "_")


def model_name(abbr: str, entry: Mapping[str, Any]) -> str:
    """The model: its abbreviation; of one made from a class's path, what the configuration or the rest of it says."""
    match = _DERIVED.fullmatch(abbr)
    if match is None:
        return abbr
    return (text(entry.get("path")) or "").strip() or match["model"]


def configuration(model: Mapping[str, Any], dataset: Mapping[str, Any], *, generates: bool, shots: int | None) -> Settings:
    """The configuration columns; `shots` is what the predictions tell of examples where no configuration does."""
    inferencer = as_mapping(as_mapping(dataset.get("infer_cfg")).get("inferencer"))
    longest = (inferencer.get("max_out_len"), model.get("max_out_len"))
    limit = next((found for one in longest if (found := whole(one)) is not None and found > 0), None)
    known = few_shot(dataset)
    return settings_from(
        as_mapping(model.get("model_kwargs")),
        as_mapping(model.get("engine_config")),
        {key: value for key, value in model.items() if key not in {"max_out_len", "max_seq_len"}},
        few_shot=known if known is not None else shots,
        max_new_tokens=limit if generates else None,
    ).model_copy(update={} if generates else {"max_new_tokens": None})


def few_shot(dataset: Mapping[str, Any]) -> int | None:
    """How many examples the retriever gives."""
    retriever = as_mapping(as_mapping(dataset.get("infer_cfg")).get("retriever"))
    kind = (text(retriever.get("type")) or "").rpartition(".")[2]
    ids = retriever.get("fix_id_list")
    if kind == "ZeroRetriever":
        return 0
    if isinstance(ids, list):
        return len(ids)
    found = whole(retriever.get("ice_num"))
    return found if found is not None and found >= 0 else None


def settings(model: Mapping[str, Any], dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Both entries, without what gives access to something: `key` of a model is its API key."""
    kept = {"model_config": masked(dict(model), frozenset({"key"})), "dataset_config": masked(dict(dataset))}
    return {key: value for key, value in kept.items() if value}
