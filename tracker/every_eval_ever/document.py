"""One run as an aggregate document, schema 0.3.0. Written from the public schema; docs/format-every-eval-ever.md says what goes where."""

from __future__ import annotations

import hashlib
import math
import re
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.readers.every_eval_ever_document import OWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

SCHEMA_VERSION = "0.3.0"
SETTINGS = (
    *("input_mode", "input_size", "max_tiles", "pixel_cap", "source_quality", "vision_branches", "language_branches"),
    *("few_shot", "max_new_tokens", "prompt", "variant"),
)
"""Configuration columns that go to the generation's details; `precision` is the model's."""
UNSPECIFIED = "unspecified"
_UNSAFE = re.compile(r'[<>:"\\|?*\x00-\x1f/]')
_RESERVED = {"CON", "PRN", "AUX", "NUL", *(f"{name}{number}" for name in ("COM", "LPT") for number in range(1, 10))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a run's files go, and under which names."""

    uuid: str
    model_id: str
    developer: str
    folder: str
    """data/<collection>/<developer>/<model>"""

    @property
    def document(self) -> str:
        """Path of the document below the output folder."""
        return f"{self.folder}/{self.uuid}.json"

    @property
    def samples(self) -> str:
        """Path of the samples below the output folder; also what the document says."""
        return f"{self.folder}/{self.uuid}_samples.jsonl"


@dataclass(slots=True)
class Written:
    """What was written to a samples file."""

    credits: list[float] = field(default_factory=list)
    unscored: int = 0
    rules: set[str | None] = field(default_factory=set)
    checksum: str = ""


def target(run: Mapping[str, Any], collection: str | None, developer: str) -> Target:
    """The place of a run. Its name is a digest of what the run is, so that a second export writes the same files."""
    identity = (run["source_format"], run["external_id"], run["benchmark"], run["model"], run["fingerprint"])
    digest = hashlib.sha256("\0".join(str(part) for part in identity).encode()).digest()
    name = str(uuid.UUID(bytes=digest[:16], version=4))
    parts = [component(part) for part in str(run["model_name"]).split("/") if part.strip(" .")] or ["model"]
    folders = (
        component(collection or run["benchmark"]),
        parts[0] if len(parts) > 1 else component(developer),
        "_".join(parts[1:] or parts),
    )
    given = str(run["model_name"])
    same = [part.replace(":", "_") for part in given.split("/")] == parts
    return Target(uuid=name, model_id=given if same else "/".join(parts), developer=folders[1], folder="/".join(("data", *folders)))


def component(name: str) -> str:
    """A name as one folder that every file system takes; "data" and "unknown" mean something else to the format."""
    safe = _UNSAFE.sub("_", name).strip().rstrip(". ") or "_"
    special = safe.lower() in {"data", "unknown", "..", "."} or safe.split(".", 1)[0].upper() in _RESERVED
    return f"_{safe}" if special else safe


def evaluation_id(run: Mapping[str, Any], where: Target, retrieved: datetime) -> str:
    """name/model/time, and the beginning of the file's name: two runs may share the rest."""
    return f"{run['benchmark_name']}/{where.model_id.replace('/', '_')}/{unix(retrieved)}/{where.uuid[:8]}"


def document(
    run: Mapping[str, Any],
    where: Target,
    *,
    retrieved: datetime,
    written: Written,
    reported: Sequence[Mapping[str, Any]],
    organization: str,
    relationship: str,
) -> dict[str, Any]:
    """The document of a run, keys in the schema's order."""
    metric = primary_metric(written)
    results = [_computed(run, metric, written)] if written.credits else []
    results += [_reported(run, score) for score in reported if score["metric"] != metric or not written.credits]
    made: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id(run, where, retrieved),
        **({"evaluation_timestamp": unix(run["started_at"])} if run["started_at"] else {}),
        "retrieved_timestamp": unix(retrieved),
        "source_metadata": {
            "source_name": OWN,
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
            "additional_details": _provenance(run),
        },
        "eval_library": {"name": run["framework"] or "unknown", "version": run["framework_version"] or "unknown"},
        "model_info": {
            "name": run["model"],
            "id": where.model_id,
            "developer": where.developer,
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                **_texts(run, ("precision", "model_name")),
            },
        },
        "evaluation_results": results,
    }
    if written.credits:
        made["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": where.samples,
            "hash_algorithm": "sha256",
            "checksum": written.checksum,
            "total_rows": len(written.credits),
        }
    return made


def primary_metric(written: Written) -> str:
    """Name of the metric that the rows hold: what decided, where one rule decided all."""
    (rule,) = written.rules if len(written.rules) == 1 else (None,)
    return rule or "correct"


def unix(moment: datetime) -> str:
    """Seconds since 1970 as text."""
    return f"{moment.timestamp():.6f}".rstrip("0").rstrip(".")


def _provenance(run: Mapping[str, Any]) -> dict[str, str]:
    told = {"run_status": run["status"], **{name: run[name] for name in ("status_reason", "n_expected", "source_format")}}
    times = {"ended_at": run["ended_at"].isoformat()} if run["ended_at"] else {}
    return {"exported_by": OWN, **{name: str(value) for name, value in told.items() if value is not None}, **times}


def _computed(run: Mapping[str, Any], metric: str, written: Written) -> dict[str, Any]:
    """The mean of the rows."""
    found = written.credits
    mean = math.fsum(found) / len(found)
    binary = all(value in {0.0, 1.0} for value in found)
    uncertainty: dict[str, Any] = {"num_samples": len(found)}
    if len(found) > 1:
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in found) / (len(found) - 1))
        uncertainty = {
            "standard_error": {"value": deviation / math.sqrt(len(found)), "method": "analytic"},
            "standard_deviation": deviation,
            **uncertainty,
        }
    scale: dict[str, Any] = {"score_type": "binary"} if binary else {"score_type": "continuous", "min_score": 0.0, "max_score": 1.0}
    config = {"metric_name": metric, "metric_kind": "accuracy", "metric_unit": "proportion", "lower_is_better": False, **scale}
    return _result(run, metric, config, {"score": mean, "uncertainty": uncertainty})


def _reported(run: Mapping[str, Any], score: Mapping[str, Any]) -> dict[str, Any]:
    """A score as its source states it; whether more is better is not known, which the format has no word for."""
    uncertainty = {
        **({"standard_error": {"value": score["stderr"]}} if score["stderr"] is not None and math.isfinite(score["stderr"]) else {}),
        **({"num_samples": score["n"]} if score["n"] is not None else {}),
    }
    details = {"score": score["value"], **({"uncertainty": uncertainty} if uncertainty else {})}
    config = {"metric_name": score["metric"], "lower_is_better": False, "additional_details": {"polarity": "unknown", "reported": "true"}}
    return _result(run, score["metric"], config, details)


def _result(run: Mapping[str, Any], metric: str, config: dict[str, Any], details: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "evaluation_result_id": metric,
        "evaluation_name": run["benchmark_name"],
        "source_data": {"dataset_name": run["benchmark"], "source_type": "other"},
        "metric_config": config,
        "score_details": details,
    }
    settings = _texts(run, SETTINGS)
    if settings:
        tokens = {"generation_args": {"max_tokens": run["max_new_tokens"]}} if run["max_new_tokens"] is not None else {}
        made["generation_config"] = {**tokens, "additional_details": settings}
    return made


def _texts(run: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    return {name: str(run[name]) for name in names if run[name] is not None}
