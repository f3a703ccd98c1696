"""YAML that frameworks dump: plain values, read by PyYAML. Nothing is constructed from a tag, and dates stay text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from tracker.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    import yaml

LARGEST = 16 << 20
"""Characters of a document, also when its aliases are written out."""
DEEPEST = 100
_CORE = "tag:yaml.org,2002:"
_PLAIN = ("null", "bool", "int", "float", "str", "seq", "map")


class YamlError(InputError):
    """A document that cannot be read; `line` counts from 1."""

    def __init__(self, message: str, path: Path, line: int, column: int | None = None) -> None:
        place = f"line {line}" if column is None else f"line {line}, column {column}"
        super().__init__(f"not valid YAML: {message}", where=f"{path}: {place}", hint="correct it, or fetch it again")
        self.line = line


def parse(text: str, path: Path) -> Any:
    """The value of a document; keys of its mappings are text. Raises YamlError, which names `path` and the place."""
    import yaml

    if len(text) > LARGEST:
        message = f"larger than {LARGEST >> 20} MB"
        raise YamlError(message, path, 1)
    try:
        loader = _loader()(text.removeprefix("\ufeff"))
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            if _extent(node, {})[0] > LARGEST:
                message = f"its aliases stand for more than {LARGEST >> 20} MB"
                raise YamlError(message, path, 1)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        message = ": ".join(part for part in (err.context, err.problem) if part)
        raise YamlError(message, path, mark.line + 1 if mark else 1, mark.column + 1 if mark else None) from err
    except yaml.reader.ReaderError as err:
        raise YamlError(str(err.reason), path, text.count("\n", 0, err.position) + 1) from err
    except RecursionError as err:
        message = "nested too deeply"
        raise YamlError(message, path, 1) from err
    except (yaml.YAMLError, ValueError) as err:  # such as a number of too many digits
        raise YamlError(str(err), path, 1) from err


@cache
def _loader() -> type[yaml.SafeLoader]:
    """The fastest safe loader that there is, without dates, and with the bare value under a tag that it does not know."""
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return type(
        "PlainLoader",
        (base,),
        {
            "yaml_constructors": {_CORE + kind: base.yaml_constructors[_CORE + kind] for kind in _PLAIN} | {None: _untagged},
            "yaml_implicit_resolvers": {
                first: [rule for rule in rules if rule[0] != f"{_CORE}timestamp"] for first, rules in base.yaml_implicit_resolvers.items()
            },
        },
    )


def _untagged(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    import yaml

    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    return loader.construct_sequence(node, deep=True) if isinstance(node, yaml.SequenceNode) else node.value


def _extent(node: yaml.Node, known: dict[int, tuple[int, int]], depth: int = 0) -> tuple[int, int]:
    """Characters and depth of a node with its aliases written out. On the way, keys become text."""
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(node.value, str):
        return len(node.value) + 1, 0
    if id(node) not in known:
        parts = node.value
        if parts and isinstance(parts[0], tuple):
            for key, _ in parts:
                if isinstance(key.value, str) and key.tag != f"{_CORE}merge":
                    key.tag = f"{_CORE}str"
            parts = [part for pair in parts for part in pair]
        extents = [_extent(part, known, depth + 1) for part in parts]
        known[id(node)] = 1 + sum(size for size, _ in extents), 1 + max((below for _, below in extents), default=0)
    if depth + known[id(node)][1] > DEEPEST:
        raise RecursionError
    return known[id(node)]
