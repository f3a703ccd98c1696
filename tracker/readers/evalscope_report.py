"""What EvalScope says of a whole run: the report of a benchmark, and the task configuration."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.batch import AggregateScore, Settings
from tracker.errors import InputError
from tracker.readers.lines import json_document
from tracker.readers.lm_rules import has_other_scale, is_binary
from tracker.readers.secrets import masked
from tracker.readers.setting import SPELLINGS, settings_from
from tracker.readers.values import NOTHING, as_mapping, number, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_NOT_KEPT = frozenset(
    {"dataset_args", "resolved_benchmarks", "description", "dataset_description", "judge_model_args", "analysis", "data_statistics"}
)
_CORRECT = frozenset(
    {
        "averageaccuracy", "weightedaverageaccuracy", "averagepass_1", "pass_1", "pass", "passed", "resolved", "prompt_level_strict",
        "prompt_level_loose", "is_correct", "correctness", "judge_correct",
    }
)  # fmt: skip
"""EvalScope's metrics, spelled with underscores alone, that say right or wrong under names of its own."""
DEFAULTS = frozenset({"", "default", "main", "all", "-"})
"""Names of subsets and categories that say nothing."""


@dataclass(frozen=True, slots=True)
class Report:
    """A benchmark's report; empty where there is none."""

    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def metrics(self) -> list[Mapping[str, Any]]:
        """The metrics of version 1 and 2 of the report, and the only one of versions before 0.9."""
        listed = self.document.get("metrics")
        if isinstance(listed, list):
            return [one for one in listed if isinstance(one, dict)]
        return [self.document] if "metric" in self.document or "category" in self.document else []

    def model(self) -> str | None:
        """The model's name in the report."""
        return (text(self.document.get("model_name")) or "").strip() or None

    def benchmark(self) -> str | None:
        """The benchmark's name in the report."""
        return (text(self.document.get("dataset_name")) or "").strip() or None

    def primary(self) -> str | None:
        """Name of the metric that the report's conclusion is about, as rows spell it: the one it declares, else its first."""
        declared = self.document.get("primary_metric_identity")
        name = text(declared.get("name")) if isinstance(declared, dict) else None
        if name:
            return name
        first = self.metrics[0] if self.metrics else {}
        return (metric_name(first) or "").removeprefix("mean_") or None

    def other_scales(self) -> frozenset[str]:
        """Metrics that are no share of right answers: a score lies outside 0 to 1, or (since 1.12) their meaning says so."""
        found: set[str] = set()
        for one in self.metrics:
            stated = [value for _, value, _ in _subsets(one)] + [number(one.get("score")).value]
            if any(value is not None and not 0 <= value <= 1 for value in stated) or not _is_graded(one.get("semantics")):
                identity = one.get("identity")
                name = text(identity.get("name")) if isinstance(identity, dict) else metric_name(one)
                found.add((name or "").removeprefix("mean_"))
        return frozenset(found)

    def categories(self) -> dict[str, str]:
        """Category of each subset, where the report has categories of its own."""
        found: dict[str, str] = {}
        for category, subsets in _categories(self.metrics[0] if self.metrics else {}):
            if category.lower() not in DEFAULTS:
                found |= dict.fromkeys(subsets, category)
        return found

    def counted(self) -> int | None:
        """How many records the primary metric is the mean of."""
        first = self.metrics[0] if self.metrics else {}
        return whole(first.get("num")) or whole(first.get("total_num")) or whole(self.document.get("num"))

    def requested(self) -> int | None:
        """How many answers the run set out to get; stated since 1.12."""
        summary = self.document.get("execution_summary")
        count = whole(summary.get("requested")) if isinstance(summary, dict) else None
        return count if count is not None and count >= 0 else None

    def incomplete(self) -> str | None:
        """Why the run is partial by its own account."""
        summary = self.document.get("execution_summary")
        if not isinstance(summary, dict) or summary.get("incomplete") is not True:
            return None
        done, wanted, failed = (whole(summary.get(name)) for name in ("succeeded", "requested", "errored"))
        return f"the report says incomplete: {done} of {wanted} samples, {failed} errors"

    def scores(self) -> tuple[AggregateScore, ...]:
        """Every aggregate: a metric as a whole, its macro average where that differs, and its subsets where there are several."""
        return tuple(self._scores())

    def _scores(self) -> Iterator[AggregateScore]:
        for one in self.metrics:
            name = metric_name(one)
            if name is None:
                continue
            count = whole(one.get("num")) or whole(one.get("total_num"))
            stated = [(name, one.get("score"), count)]
            if number(one.get("macro_score")) not in {NOTHING, number(one.get("score"))}:
                stated.append((f"{name}.macro", one.get("macro_score"), count))
            subsets = _subsets(one)
            if len(subsets) > 1:
                stated += [(f"{name}/{subset}", value, size) for subset, value, size in subsets]
            for label, value, size in stated:
                found = number(value)
                if found != NOTHING and not isinstance(value, bool):
                    yield AggregateScore(metric=label, value=found.value, special=found.special, n=size)


def read_report(path: Path) -> Report:
    """A report; InputError where it is none."""
    document = json_document(path)
    if not isinstance(document, dict) or not (isinstance(document.get("metrics"), list) or "category" in document):
        message = "expected a report: an object with a list of metrics"
        raise InputError(message, where=str(path), hint="delete it or run EvalScope again")
    return Report(document)


def metric_name(metric: Mapping[str, Any]) -> str | None:
    """Name of an aggregate: `mean_acc` as version 1 writes it, also where version 2 takes it apart."""
    identity = metric.get("identity")
    if isinstance(identity, dict):
        name, way = text(identity.get("name")), text(identity.get("aggregation"))
        axes = identity.get("dimensions")
        parts = [f"{key}={text(value)}" for key, value in sorted(axes.items())] if isinstance(axes, dict) else []
        whole_name = name if way in {None, "", "identity"} else f"{way}_{name}"
        return f"{whole_name}[{','.join(parts)}]" if parts else whole_name
    return (text(metric.get("metric")) or text(metric.get("name")) or "").strip() or None


def arguments_of(config: Mapping[str, Any], benchmark: str) -> dict[str, Any]:
    """A benchmark's own arguments: as resolved (since 1.12), and as given."""
    found: dict[str, Any] = {}
    for holder in ("resolved_benchmarks", "dataset_args"):
        mine = as_mapping(config.get(holder)).get(benchmark)
        found |= {name: value for name, value in as_mapping(mine).items() if value is not None}
    return found


def is_share(name: str, others: frozenset[str]) -> bool:
    """Whether a metric of this name can be a share of right answers."""
    return name not in others and not has_other_scale(_spelled(name))


def says_correct(name: str) -> bool:
    """Whether a metric of this name says right or wrong, so that 1 is right and 0 is wrong."""
    spelled = _spelled(name)
    return spelled in _CORRECT or is_binary(spelled)


def configuration(config: Mapping[str, Any], arguments: Mapping[str, Any], spec: Mapping[str, Any]) -> Settings:
    """The configuration columns; `spec` is what rows before 1.0 say of their model."""
    generation, model = as_mapping(config.get("generation_config")), _without_master(as_mapping(config.get("model_args")))
    shots = whole(arguments.get("few_shot_num"))
    limits = {name: generation.get(name) for name in SPELLINGS["max_new_tokens"]}
    return settings_from(
        limits,
        model,
        _without_master(spec),
        few_shot=shots if shots is not None and shots >= 0 else None,
        prompt=_prompt(config, arguments),
    )


def model_of(config: Mapping[str, Any], report: Report, folder: str) -> str | None:
    """The model's full name where the configuration gives one of this folder, else the report's name, else the folder's."""
    full, short = text(config.get("model")), text(config.get("model_id"))
    named = report.model() or folder or (short or "").strip() or None
    if full and "/" in full and not full.startswith(("/", ".", "~")) and full.count("/") == 1 and named in {None, full.rpartition("/")[2]}:
        return full
    return named or full


def settings_of(config: Mapping[str, Any], arguments: Mapping[str, Any], report: Report, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that is not mapped, without long descriptions and without secrets."""
    kept = {name: value for name, value in config.items() if name not in _NOT_KEPT}
    if arguments:
        kept["dataset_args"] = {name: value for name, value in arguments.items() if name not in _NOT_KEPT}
    kept["model_spec"] = dict(spec)
    for name in ("perf_metrics", "execution_summary", "judge_summary"):
        if report.document.get(name):
            kept[f"report_{name}"] = report.document[name]
    told: dict[str, Any] = masked({name: value for name, value in kept.items() if value not in (None, {}, [])})
    return told


def _prompt(config: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """What was put around the questions on purpose, spelled as for lm-evaluation-harness."""
    generation = as_mapping(config.get("generation_config"))
    parts = []
    template = text(config.get("chat_template"))
    if template:
        parts.append(f"chat_template {_sha(template)}")
    instruction = text(arguments.get("system_prompt")) or text(config.get("system_prompt")) or text(generation.get("system_prompt"))
    if instruction:
        parts.append(f"system_instruction {_sha(instruction)}")
    return "; ".join(parts) or None


def _is_graded(semantics: Any) -> bool:
    """Whether a metric's stated meaning lets it be a share of right answers."""
    stated = as_mapping(semantics)
    most = number(as_mapping(stated.get("value_range")).get("max")).value
    return (
        stated.get("kind") in (None, "quality") and stated.get("direction") in (None, "higher_is_better") and (most is None or most == 1.0)
    )


def _categories(metric: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for one in _objects(metric, "categories", "category"):
        name = one.get("name")
        label = "/".join(text(part) or "" for part in name) if isinstance(name, list) else text(name) or ""
        yield label, [text(part.get("name")) or "" for part in _objects(one, "subsets", "subset")]


def _subsets(metric: Mapping[str, Any]) -> list[tuple[str, float | None, int | None]]:
    return [
        (text(part.get("name")) or "", number(part.get("score")).value, whole(part.get("num")))
        for one in _objects(metric, "categories", "category")
        for part in _objects(one, "subsets", "subset")
    ]


def _objects(holder: Mapping[str, Any], *names: str) -> list[Mapping[str, Any]]:
    """A list of objects under the first of some names."""
    found = next((one for name in names if isinstance(one := holder.get(name), list)), [])
    return [one for one in found if isinstance(one, dict)]


def _without_master(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """`master` is the main branch of a ModelScope repository."""
    return {name: value for name, value in arguments.items() if not (name == "revision" and value == "master")}


def _sha(words: str) -> str:
    return hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:12]


def _spelled(name: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", name.lower())
