"""Configuration columns as frameworks spell them: one place, so that one evaluation met in two formats is one configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracker.batch import Settings
from tracker.readers.values import text, truth, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

SPELLINGS: dict[str, tuple[str, ...]] = {
    "input_size": ("input_size", "long_edge", "longest_edge", "image_long_edge", "input_resolution", "image_resolution", "resolution", "image_size", "img_size"),
    "max_tiles": ("max_tiles", "max_num_tiles", "max_num", "max_dynamic_patch", "max_partition_num", "max_image_tiles"),
    "pixel_cap": ("pixel_cap", "max_pixels"),
    "vision_branches": ("vision_branches", "num_vision_branches", "n_vision_branches"),
    "language_branches": ("language_branches", "num_language_branches", "n_language_branches"),
    "few_shot": ("few_shot", "num_fewshot", "n_shot", "n_shots", "num_shots", "num_few_shot", "few_shot_num", "fewshot", "shots"),
    "max_new_tokens": ("max_new_tokens", "max_gen_toks", "max_tokens", "max_completion_tokens", "max_output_tokens", "max_out_len", "generation_size"),
}  # fmt: skip
"""Names under which model arguments, generation arguments, processor arguments and parameters hold whole numbers, in order."""
PRECISION_KEYS = ("precision", "dtype", "torch_dtype", "model_dtype", "weights_dtype")
NESTED = ("processor_kwargs", "mm_processor_kwargs", "image_processor", "processor", "processor_args", "size")
"""Objects inside model arguments in which the same names are looked for."""
LONGEST_EDGE = 65_536
"""A larger number is no side of an image in pixels."""
_QUANTIZED = {"load_in_4bit": "4bit", "load_in_8bit": "8bit"}
_MODES = {"fixed": "fixed", "native": "native"}


def settings_from(*sources: Mapping[str, Any] | None, **known: Any) -> Settings:
    """The configuration columns that some mappings give; the first that has one counts, `known` values go before them all.

    A null in `known` leaves the column to the mappings. Dotted names are found by their last part ("model.dtype").
    """
    looked = [one for source in sources if source for one in _with_nested(source)]
    found: dict[str, Any] = {
        name: next(filter(None, (_whole(one, keys, name) for one in looked)), None) for name, keys in SPELLINGS.items()
    }
    found = {name: None if value is None else value[0] for name, value in found.items()}
    found["precision"] = next(filter(None, map(precision_of, looked)), None)
    found["input_mode"] = next((mode for one in looked if (mode := _MODES.get((text(one.get("input_mode")) or "").strip().lower()))), None)
    found["variant"] = next((variant for one in looked if (variant := revision_of(one))), None)
    return Settings.model_validate(found | {name: value for name, value in known.items() if value is not None})


def precision_of(source: Mapping[str, Any]) -> str | None:
    """Precision of the weights: quantisation flags first, then the dtype; "auto" and nothing say nothing."""
    for flag, name in _QUANTIZED.items():
        if truth(source.get(flag)):
            return name
    for key in PRECISION_KEYS:
        name = (text(source.get(key)) or "").strip()
        if name and name.lower() not in {"auto", "none", "null", "default"}:
            return name
    return None


def revision_of(source: Mapping[str, Any]) -> str | None:
    """A model revision other than the main one, as a variant: checkpoints stay apart."""
    revision = (text(source.get("revision")) or text(source.get("model_revision")) or "").strip()
    return f"revision={revision}" if revision and revision.lower() not in {"main", "none", "null", "default"} else None


def _whole(source: Mapping[str, Any], keys: tuple[str, ...], column: str) -> tuple[int] | None:
    """In a tuple, because 0 is a value."""
    least = 0 if column == "few_shot" else 1
    for key in keys:
        value = source.get(key)
        if isinstance(value, dict):
            sides = [side for one in value.values() if (side := whole(one)) is not None]
            value = max(sides, default=None) if column == "input_size" else None
        elif isinstance(value, list | tuple) and value and column == "input_size":
            value = max((side for one in value if (side := whole(one)) is not None), default=None)
        found = whole(value)
        if found is not None and found >= least and (column != "input_size" or found <= LONGEST_EDGE):
            return (found,)
    return None


def _with_nested(source: Mapping[str, Any], depth: int = 2) -> list[Mapping[str, Any]]:
    """A mapping by the last parts of its names, then the objects of arguments in it, each likewise."""
    flat = {str(name).rpartition(".")[2].rpartition("/")[2]: value for name, value in source.items()} | dict(source)
    inner = [_as_pixels(one) for name in NESTED if isinstance(one := flat.get(name), dict)] if depth else []
    return [flat, *(found for one in inner for found in _with_nested(one, depth - 1))]


def _as_pixels(size: Mapping[str, Any]) -> Mapping[str, Any]:
    """Processors that limit the number of pixels call it `longest_edge`, too."""
    edge = whole(size.get("longest_edge"))
    return (
        size
        if edge is None or edge <= LONGEST_EDGE
        else {"max_pixels": edge} | {name: size[name] for name in size if name != "longest_edge"}
    )
