"""The results file that lm-evaluation-harness and lmms-eval write beside their samples: what it says of one task."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from json import JSONDecoder
from typing import TYPE_CHECKING, Any

from tracker.batch import AggregateScore, Settings
from tracker.errors import SourceFormatError
from tracker.readers.lines import json_document
from tracker.readers.secrets import masked
from tracker.readers.setting import SPELLINGS, settings_from
from tracker.readers.values import as_list, as_mapping, number, text, truth, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

NAME_KEYS = ("peft", "delta", "pretrained", "model", "model_version", "model_name", "model_id", "path", "engine")
"""Where both frameworks look for a model's name: a LoRA run is named after its adapter."""
_PER_TASK = ("configs", "versions", "n-shot", "higher_is_better", "n-samples", "task_hashes", "group_subtasks")
_NOT_SETTINGS = {"results", "groups", "config", *_PER_TASK}
_FIRST_KEY = re.compile(rb'\A(?:\xef\xbb\xbf)?\s*\{\s*"results"\s*:\s*')
_MARKS = re.compile(rb'_stderr(?:,[^"\n]*)?"\s*:|"(?:configs|versions|group_subtasks|n-shot)"\s*:')
_LMMS_MARKS = re.compile(rb'_stderr_cl(?:t|ustered),|"(?:doc_to_visual|lmms_eval_specific_kwargs|lmms_eval_version|model_configs)"')
_STAND_INS = {"", " ", "alias", "name", "sample_len", "sample_count", "samples"}


@dataclass(frozen=True, slots=True)
class Results:
    """A results file, or what stands in for one that is missing: an empty document."""

    document: Mapping[str, Any]
    model_args: Mapping[str, Any]

    @property
    def config(self) -> Mapping[str, Any]:
        """The run's own configuration."""
        return as_mapping(self.document.get("config"))

    @property
    def tasks(self) -> list[str]:
        """Tasks and groups that have results, in order."""
        return list(as_mapping(self.document.get("results")))

    def of_task(self, key: str, task: str) -> Any:
        """An entry of one of the tables that are keyed by task."""
        return as_mapping(self.document.get(key)).get(task)

    def task_config(self, task: str) -> Mapping[str, Any]:
        """The task's own configuration."""
        return as_mapping(self.of_task("configs", task))

    def expected(self, task: str) -> int | None:
        """How many questions the run set out to ask (after a limit)."""
        count = whole(as_mapping(self.of_task("n-samples", task)).get("effective"))
        return count if count is not None and count >= 0 else None

    def metrics(self, task: str) -> list[str]:
        """The task's metrics in its own order, those left out that are better when lower."""
        listed = [text(as_mapping(one).get("metric")) for one in as_list(self.task_config(task).get("metric_list"))]
        names = [name for name in listed if name] or [name for name, _ in self._result_keys(task)]
        better = as_mapping(self.of_task("higher_is_better", task))
        lower = {
            name
            for one in as_list(self.task_config(task).get("metric_list"))
            if truth(as_mapping(one).get("higher_is_better")) is False and (name := text(as_mapping(one).get("metric")))
        }
        return [name for name in dict.fromkeys(names) if better.get(name) is not False and name not in lower]

    def filters(self, task: str) -> list[str]:
        """The task's filters in its own order, the primary one first."""
        listed = [text(as_mapping(one).get("name")) for one in as_list(self.task_config(task).get("filter_list"))]
        names = [name for name in listed if name]
        return list(dict.fromkeys(names or (name for _, name in self._result_keys(task) if name)))

    def _result_keys(self, task: str) -> Iterator[tuple[str, str]]:
        for key, value in as_mapping(self.of_task("results", task)).items():
            if key.strip() not in _STAND_INS and not _stderr_of(key) and number(value).value is not None:
                metric, _, filtered = key.rpartition(",")
                yield (metric, filtered) if metric else (filtered, "")

    def scores(self, task: str) -> tuple[AggregateScore, ...]:
        """The aggregate scores of a task or group, as stated."""
        return tuple(self._scores(task))

    def _scores(self, task: str) -> Iterator[AggregateScore]:
        stated = as_mapping(self.of_task("results", task)) or as_mapping(self.of_task("groups", task))
        size = self.expected(task)
        for key, value in stated.items():
            if key.strip() in _STAND_INS or _stderr_of(key):
                continue
            metric, _, filtered = key.rpartition(",")
            metric = metric or filtered
            label = metric if not filtered or filtered in {"none", metric} else f"{metric},{filtered}"
            error_key = f"{metric}_stderr,{filtered}" if "," in key else f"{key}_stderr"
            stderr = number(stated.get(error_key)).value
            for name, one in value.items() if isinstance(value, dict) else [(None, value)]:
                found = number(one)
                if isinstance(one, bool) or found == (None, None):
                    continue
                full = label if name is None else f"{label}.{name}"
                yield AggregateScore(metric=full, value=found.value, special=found.special, stderr=stderr, n=size)

    def model(self) -> str | None:
        """The model's name, by the framework's own rule."""
        written = text(self.document.get("model_name"))
        named = next((text(self.model_args[key]) for key in NAME_KEYS if self.model_args.get(key)), None)
        source = text(self.config.get("model"))
        return (written or "").strip() or (named or "").strip() or (source or "").strip() or None

    def seconds(self) -> float | None:
        """Wall time of the whole evaluation."""
        return number(self.document.get("total_evaluation_time_seconds")).value

    def settings(self, task: str | None) -> dict[str, Any]:
        """Everything that is not mapped, for this task; memory addresses of functions are left out, they mean nothing."""
        config = {key: value for key, value in self.config.items() if key != "model_args"}
        rest = {key: value for key, value in self.document.items() if key not in _NOT_SETTINGS and value is not None}
        mine = {
            key.replace("-", "_"): found for key in _PER_TASK if task is not None and (found := self.of_task(key, task)) not in (None, [])
        }
        if "configs" in mine:
            mine["task_config"] = mine.pop("configs")
        kept = {"config": config, "model_args": dict(self.model_args), **rest, **mine}
        return {key: masked(value) for key, value in kept.items() if value not in (None, {}, [])}


def read_results(path: Path) -> Results:
    """A results file; SourceFormatError where it is no such thing."""
    document = json_document(path)
    if not isinstance(document, dict) or not isinstance(document.get("results"), dict):
        raise SourceFormatError(str(path), "results", "an object that maps tasks to metrics", document)
    return Results(document, parse_model_args(as_mapping(document.get("config")).get("model_args")))


NO_RESULTS = Results({}, {})
"""What is known when there is no results file."""


def results_tasks(head: bytes) -> list[str] | None:
    """Tasks of a results file by its head; None when it is no results file, empty when the head is too short to tell."""
    match = _FIRST_KEY.match(head)
    if not match or not _MARKS.search(head):
        return None
    body = head[match.end() :].decode("utf-8", "replace")
    try:
        value, _ = JSONDecoder().raw_decode(body)
    except (ValueError, RecursionError):
        return []
    return [name for name, told in value.items() if _may_score(told)] if isinstance(value, dict) else None


def _may_score(told: Any) -> bool:
    """Whether an entry is of a task, or of a group with scores; a group that only has a name is not."""
    return not isinstance(told, dict) or not told or any(name.strip() and name != "alias" for name in told)


def is_lmms(head: bytes) -> bool:
    """Whether a results file's head has marks that only lmms-eval makes."""
    return _LMMS_MARKS.search(head) is not None


def parse_model_args(value: Any) -> dict[str, Any]:
    """`model_args` as a mapping: a dict since lm-eval 0.4.10, before that (and in lmms-eval) text like `a=1,b=c`."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, str):
        return {}
    args: dict[str, Any] = {}
    last = None
    for part in value.split(","):
        name, sign, given = part.partition("=")
        if sign:
            last = name.strip()
            args[last] = given.strip()
        elif last is not None and part.strip():
            args[last] = f"{args[last]},{part}"
    return args


def configuration(results: Results, task: str) -> Settings:
    """The configuration columns as far as the results file gives them."""
    config, own = results.config, results.task_config(task)
    shots = next(
        (
            found
            for one in (results.of_task("n-shot", task), own.get("num_fewshot"), config.get("num_fewshot"))
            if (found := whole(one)) is not None and found >= 0
        ),
        None,
    )
    given = config.get("gen_kwargs")
    generation = (given if isinstance(given, dict) else parse_model_args(given), as_mapping(own.get("generation_kwargs")))
    return settings_from(
        *(_only_tokens(one) for one in generation),
        results.model_args,
        {"dtype": config.get("model_dtype")},
        few_shot=shots,
        prompt=_prompt(results),
    )


def started(value: Any) -> datetime | None:
    """lm-eval's `date`: a unix time, the start of the run."""
    seconds = number(value).value
    if seconds is None or not 0 < seconds < 32_503_680_000:
        return None
    return datetime.fromtimestamp(seconds, tz=UTC)


def ended(start: datetime | None, seconds: float | None) -> datetime | None:
    """Start plus wall time; the stamps in file names are some machine's local time and are not used."""
    if start is None or seconds is None or not 0 <= seconds < 10**9:
        return None
    return start + timedelta(seconds=seconds)


def _only_tokens(generation: Mapping[str, Any]) -> dict[str, Any]:
    """Of generation arguments only the limit on new tokens is a column."""
    return {name: generation.get(name) for name in SPELLINGS["max_new_tokens"]}


def _prompt(results: Results) -> str | None:
    """What was put around the questions on purpose: a chat template, a system instruction."""
    document = results.document
    parts = []
    if document.get("chat_template"):
        sha = text(document.get("chat_template_sha"))
        parts.append(f"chat_template {sha[:12]}" if sha else "chat_template")
    if document.get("fewshot_as_multiturn"):
        parts.append("fewshot_as_multiturn")
    instruction = text(document.get("system_instruction"))
    if instruction:
        sha = text(document.get("system_instruction_sha"))
        parts.append(f"system_instruction {sha[:12]}" if sha else f"system_instruction {instruction}")
    return "; ".join(parts) or None


def _stderr_of(key: str) -> bool:
    metric = key.rpartition(",")[0] or key
    return metric.endswith(("_stderr", "_stderr_clt", "_stderr_clustered"))
