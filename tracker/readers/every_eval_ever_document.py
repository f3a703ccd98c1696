"""The aggregate document of Every Eval Ever: what it says of its model, its settings and its results.

Written from the public schemas 0.2.0 to 0.3.0 and from what the converters of that project write; docs/format-every-eval-ever.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tracker.batch import AggregateScore, RunHeader, Settings
from tracker.errors import SourceFormatError
from tracker.readers.columns import moment
from tracker.readers.lines import json_document
from tracker.readers.lm_results import parse_model_args
from tracker.readers.lm_rules import has_other_scale, is_binary, measures_text
from tracker.readers.secrets import masked
from tracker.readers.setting import SPELLINGS, settings_from
from tracker.readers.values import as_count, as_mapping, number, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

OWN = "trackr"
"""What `trackr export every-eval-ever` writes as `source_metadata.additional_details.exported_by`."""
UNNAMED = "score"
"""Metric of a result that names none."""
LM_EVAL = frozenset({"lm_eval", "lm-eval", "lm-evaluation-harness", "lmms_eval", "lmms-eval"})
HELM = "helm"
INSPECT = frozenset({"inspect_ai", "inspect-ai", "inspect"})
_FRAMEWORKS = {**dict.fromkeys(("lm_eval", "lm-eval"), "lm-evaluation-harness"), **dict.fromkeys(INSPECT, "inspect_ai"), HELM: "HELM"}
_KINDS_OF_ACCURACY = frozenset({"accuracy", "exact_match", "exact-match", "pass_rate", "pass_at_k", "pass@k", "success_rate", "solve_rate"})
_METRIC_WORDS = frozenset({"score", "mean", "mean_score", "overall", "overall_score", "average", "f1", "f1_score", "macro_f1"})
"""Evaluation names that name a metric and no benchmark (beside those of lm_rules)."""
_LATEST = 32_503_680_000
_LONGEST_LITERAL = 20_000
_NOT_SETTINGS = frozenset({"evaluation_results", "schema_version", "evaluation_id"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One entry of `evaluation_results`: one metric of one benchmark."""

    id: str | None
    name: str
    benchmark: str
    label: str
    metric: str
    """The metric without filter or scorer."""
    value: float | None
    special: str | None
    stderr: float | None
    n: int | None
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    timestamp: datetime | None

    @property
    def score_type(self) -> str | None:
        """binary, continuous or levels."""
        return text(self.config.get("score_type"))

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Least and largest score; null where the document does not say."""
        return _bound(self.config.get("min_score")), _bound(self.config.get("max_score"))

    @property
    def says_right(self) -> bool:
        """Whether the metric, by its name or kind, says right or wrong."""
        kind = (text(self.config.get("metric_kind")) or "").lower()
        return self.score_type == "binary" or kind in _KINDS_OF_ACCURACY or is_binary(self.metric) or is_binary(self.label)

    def is_share(self, observed: tuple[float, float] | None) -> bool:
        """Whether a row's score in [0, 1] is a share of right answers; `observed` are the least and largest score of its rows.

        Metrics that are better when lower, levels, translations and perplexities are not. A range beyond [0, 1] is not
        either, unless the metric says right or wrong: then an aggregate in percent stands over rows of 0 and 1.
        """
        if self.config.get("lower_is_better") is True or self.score_type == "levels":
            return False
        if has_other_scale(self.metric) or has_other_scale(self.label):
            return False
        if observed is not None and not (observed[0] >= 0 and observed[1] <= 1):
            return False
        low, high = self.bounds
        inside = (low is None or low >= 0) and (high is None or high <= 1)
        return inside or self.says_right

    def score(self) -> AggregateScore:
        """The result as it is kept."""
        return AggregateScore(metric=self.label, value=self.value, special=self.special, stderr=self.stderr, n=self.n)


@dataclass(frozen=True)
class Document:
    """An aggregate document, or the empty one that stands for a missing document."""

    raw: Mapping[str, Any]
    results: tuple[Result, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    """(place, what was expected and found) of entries that cannot be used."""
    _by_key: dict[tuple[str | None, str | None], list[Result]] = field(default_factory=dict)

    @cached_property
    def evaluation_id(self) -> str | None:
        """Its own id."""
        return text(self.raw.get("evaluation_id")) or None

    @cached_property
    def own(self) -> bool:
        """Whether trackr wrote it."""
        return text(self._source.get("exported_by")) == OWN

    @cached_property
    def library(self) -> str | None:
        """Name of the evaluation library."""
        return _known(as_mapping(self.raw.get("eval_library")).get("name"))

    @cached_property
    def framework(self) -> str | None:
        """The library as other readers name it."""
        return _FRAMEWORKS.get((self.library or "").lower(), self.library)

    @cached_property
    def model(self) -> str | None:
        """The model as the document names it; an adapter goes before its base, as lm-eval's own files name it."""
        info = as_mapping(self.raw.get("model_info"))
        spelled = text(as_mapping(info.get("additional_details")).get("model_name")) if self.own else None
        if not self.own and (self.library or "").lower() in LM_EVAL:
            spelled = next((adapter for name in ("peft", "delta") if (adapter := text(self._model_args.get(name)))), None)
        name, developer = _known(info.get("name")), _known(info.get("developer"))
        joined = f"{developer}/{name}" if name and developer and "/" not in name else name
        return (spelled or _known(info.get("id")) or joined or "").strip() or None

    @cached_property
    def samples_path(self) -> str | None:
        """Where it says that its samples are."""
        return text(self._detailed.get("file_path"))

    @cached_property
    def total_rows(self) -> int | None:
        """How many rows it says its samples file has."""
        count = whole(self._detailed.get("total_rows"))
        return count if count is not None and count >= 0 else None

    @property
    def benchmarks(self) -> list[str]:
        """Benchmarks with results, in order."""
        return list(dict.fromkeys(result.benchmark for result in self.results))

    def of_benchmark(self, benchmark: str) -> list[Result]:
        """Results of a benchmark, in order."""
        return [result for result in self.results if result.benchmark == benchmark]

    def result(self, result_id: str | None, name: str | None) -> Result | None:
        """The result that a row belongs to: by its id (and name, where the id is not alone), else by a name that has one result."""
        keys = [(result_id, name), (result_id, None)] if result_id is not None else [(None, name)]
        for key in keys:
            found = self._by_key.get(key, ())
            if len(found) == 1:
                return found[0]
        return None

    def header(self, *, model: str, benchmark: str, external_id: str | None) -> RunHeader:
        """The run of one benchmark, without what its rows tell."""
        mine = self.of_benchmark(benchmark)
        details = self._source if self.own else {}
        library = as_mapping(self.raw.get("eval_library"))
        times = [one for one in (instant(self.raw.get("evaluation_timestamp")), *(result.timestamp for result in mine)) if one]
        return RunHeader(
            model=model,
            benchmark=benchmark,
            configuration=self._configuration(mine),
            external_id=external_id,
            framework=self.framework,
            framework_version=(_known(library.get("version")) or "").removeprefix(f"{self.framework}:") or None,
            status=_status(details.get("run_status")),
            status_reason=text(details.get("status_reason")) or None,
            started_at=times[0] if times else None,
            ended_at=instant(details.get("ended_at")),
            n_expected=self._expected(mine),
            settings=self._settings(mine),
        )

    @cached_property
    def _model_args(self) -> Mapping[str, Any]:
        """Model arguments of lm-eval, which its converter keeps as text."""
        given = as_mapping(as_mapping(self.raw.get("model_info")).get("additional_details")).get("model_args")
        return parse_model_args(_literal(given) if isinstance(given, str) and given.lstrip().startswith("{") else given)

    @cached_property
    def _source(self) -> Mapping[str, Any]:
        return as_mapping(as_mapping(self.raw.get("source_metadata")).get("additional_details"))

    @cached_property
    def _detailed(self) -> Mapping[str, Any]:
        return as_mapping(self.raw.get("detailed_evaluation_results"))

    def _expected(self, mine: Sequence[Result]) -> int | None:
        """How many questions the source declares: only lm-eval's and trackr's own counts are known to be of questions."""
        if self.own:
            return whole(self._source.get("n_expected"))
        if (self.library or "").lower() in LM_EVAL:
            return next((result.n for result in mine if result.n is not None), None)
        return None

    def _configuration(self, mine: Sequence[Result]) -> Settings:
        """The configuration columns. What trackr wrote is taken as it is; elsewhere the usual spellings are looked for."""
        info = as_mapping(as_mapping(self.raw.get("model_info")).get("additional_details"))
        generation = next((result.generation for result in mine if result.generation), {})
        details = as_mapping(generation.get("additional_details"))
        if self.own:
            given = {**info, **details}
            return _own_configuration(given)
        tokens = SPELLINGS["max_new_tokens"]
        args = {name: as_mapping(generation.get("generation_args")).get(name) for name in tokens}
        return settings_from(args, self._model_args, details, {name: value for name, value in info.items() if name not in tokens})

    def _settings(self, mine: Sequence[Result]) -> dict[str, Any]:
        """Everything that is not mapped."""
        rest = {name: value for name, value in self.raw.items() if name not in _NOT_SETTINGS}
        metrics = {result.label: {"metric_config": result.config} for result in mine}
        generation = next((result.generation for result in mine if result.generation), None)
        kept = {**rest, "metrics": metrics, "generation_config": generation}
        return {name: masked(value) for name, value in kept.items() if value not in (None, {}, [])}


NO_DOCUMENT = Document({})


def read_document(path: Path) -> Document:
    """A document; SourceFormatError where it is no such thing."""
    raw = json_document(path)
    if not isinstance(raw, dict):
        raise SourceFormatError(str(path), "", "an object (an Every Eval Ever document)", raw)
    listed = raw.get("evaluation_results")
    if not isinstance(listed, list):
        raise SourceFormatError(str(path), "evaluation_results", "a list of results", listed)
    own = text(as_mapping(as_mapping(raw.get("source_metadata")).get("additional_details")).get("exported_by")) == OWN
    results: list[Result] = []
    problems: list[tuple[str, str]] = []
    for position, entry in enumerate(listed):
        found = _result(entry, own=own)
        if isinstance(found, Result):
            results.append(found)
        else:
            problems.append((f"evaluation_results[{position}]", found))
    told_apart = _distinct(results)
    by_key: dict[tuple[str | None, str | None], list[Result]] = {}
    for result in told_apart:
        for key in {(result.id, result.name), (result.id, None), (None, result.name)}:
            if key != (None, None):
                by_key.setdefault(key, []).append(result)
    return Document(raw, tuple(told_apart), tuple(problems), by_key)


def split_name(name: str, result_id: str | None) -> tuple[str, str | None]:
    """(benchmark, filter): lm-eval's converter writes `task/filter` as the name of `metric:filter`."""
    filtered = (result_id or "").rpartition(":")[2]
    if result_id and ":" in result_id and filtered and name.endswith(f"/{filtered}") and len(name) > len(filtered) + 1:
        return name[: -len(filtered) - 1], filtered
    return name, None


def metric_of(result_id: str | None, filtered: str | None) -> str:
    """Name of the metric of a row whose result no document describes."""
    if not result_id:
        return UNNAMED
    return f"{result_id[: -len(filtered) - 1]},{filtered}" if filtered else result_id


def instant(value: Any) -> datetime | None:
    """A time as the schema writes it: seconds since 1970 as text, or ISO 8601; nothing where it is neither."""
    seconds = number(value).value
    if seconds is not None:
        return datetime.fromtimestamp(seconds, tz=UTC) if 0 < seconds < _LATEST else None
    try:
        return moment(value) if isinstance(value, str) and value.strip() else None
    except (ValueError, OverflowError):
        return None


def _result(entry: Any, *, own: bool) -> Result | str:
    """An entry, or what is wrong with it."""
    if not isinstance(entry, dict):
        return f"expected an object, found {str(entry)[:80]!r}"
    name = text(entry.get("evaluation_name"))
    if not name or not name.strip():
        return "expected a name of the evaluation (evaluation_name), found none"
    details = as_mapping(entry.get("score_details"))
    found = number(None if isinstance(details.get("score"), bool) else details.get("score"))
    if found == (None, None):
        return f"{name}: expected a number as score_details.score, found {details.get('score')!r:.80}"
    result_id = text(entry.get("evaluation_result_id")) or None
    config = as_mapping(entry.get("metric_config"))
    source = as_mapping(entry.get("source_data"))
    benchmark, filtered = (name, None) if own else split_name(name, result_id)
    dataset = text(source.get("dataset_name"))
    metric = _metric(config, name, result_id)
    if not own and dataset and _is_metric_word(benchmark):
        metric, benchmark = benchmark, dataset
    uncertainty = as_mapping(details.get("uncertainty"))
    stderr = uncertainty.get("standard_error")
    return Result(
        id=result_id,
        name=name,
        benchmark=benchmark,
        label=f"{metric},{filtered}" if filtered else metric,
        metric=metric,
        value=found.value,
        special=found.special,
        stderr=number(stderr.get("value") if isinstance(stderr, dict) else stderr).value,
        n=as_count(uncertainty.get("num_samples"), source.get("samples_number")),
        config=config,
        generation=as_mapping(entry.get("generation_config")),
        timestamp=instant(entry.get("evaluation_timestamp")),
    )


def _metric(config: Mapping[str, Any], name: str, result_id: str | None) -> str:
    """The metric's name: its own, else its kind or id, those that only repeat the evaluation's name left out."""
    stated = (*(config.get(key) for key in ("metric_name", "metric_kind", "metric_id")), result_id)
    given = [one.strip() for value in stated if (one := text(value)) and one.strip()]
    return next((one for one in given if one != name), given[0] if given else UNNAMED)


def _distinct(results: Sequence[Result]) -> list[Result]:
    """Results whose labels tell them apart within their benchmark: by the result's id, else by a number."""
    taken: dict[tuple[str, str], int] = {}
    counts: dict[tuple[str, str], int] = {}
    for result in results:
        counts[result.benchmark, result.label] = counts.get((result.benchmark, result.label), 0) + 1
    told: list[Result] = []
    for result in results:
        label = result.id if counts[result.benchmark, result.label] > 1 and result.id else result.label
        seen = taken[result.benchmark, label] = taken.get((result.benchmark, label), 0) + 1
        label = label if seen == 1 else f"{label}#{seen}"
        told.append(result if label == result.label else replace(result, label=label))
    return told


def _own_configuration(given: Mapping[str, Any]) -> Settings:
    """The columns as trackr wrote them, as text; one that somebody made unreadable is left out."""
    columns = {name: text(given.get(name)) for name in Settings.model_fields}
    try:
        return Settings.model_validate({name: value for name, value in columns.items() if value is not None})
    except ValidationError as err:
        bad = {problem["loc"][0] for problem in err.errors()}
        return Settings.model_validate({name: value for name, value in columns.items() if value is not None and name not in bad})


def _is_metric_word(name: str) -> bool:
    plain = name.strip().lower().replace(" ", "_").replace("-", "_")
    return plain in _METRIC_WORDS or is_binary(plain) or measures_text(plain)


def _bound(value: Any) -> float | None:
    """A bound; the schema writes infinite ones as text."""
    found = number(None if isinstance(value, bool) else value)
    return {"inf": math.inf, "-inf": -math.inf}.get(found.special or "", found.value)


def _known(value: Any) -> str | None:
    """Text that says something."""
    found = (text(value) or "").strip()
    return found if found and found.lower() != "unknown" else None


def _status(value: Any) -> Any:
    return value if value in {"partial", "failed"} else "finished"


def _literal(words: str) -> Any:
    """An object as Python prints it, which is how the converters write a dictionary of model arguments."""
    import ast

    if len(words) > _LONGEST_LITERAL:
        return None
    try:
        value = ast.literal_eval(words)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
