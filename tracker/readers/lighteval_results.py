"""The results file that lighteval writes for a whole invocation: what it says of one task."""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from json import JSONDecoder
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.batch import AggregateScore, Settings
from tracker.errors import InputError
from tracker.readers.base import read_head
from tracker.readers.lines import json_document
from tracker.readers.lm_rules import has_other_scale, is_binary
from tracker.readers.secrets import masked
from tracker.readers.setting import settings_from
from tracker.readers.values import as_mapping, number, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

STAMP = r"\d{4}-\d{2}-\d{2}T\d{2}[-:]\d{2}[-:]\d{2}(?:\.\d+)?"
_PLAIN_SUITES = frozenset({"", "lighteval", "community", "custom", "extended"})
"""Suites that say nothing of how a task is asked; of any other the name is the prompt (`leaderboard`, `original`, `helm`, ...)."""
_CORRECT = re.compile(
    r"(?:.*_)?(?:extractive_match|(?:prefix_|suffix_)?(?:quasi_)?exact_match|p?q?em|pass@\w+|g-pass@\w+|maj@\w+|acc_norm(?:_\w+)?|acc_pmi|"
    r"acc_golds_likelihood|mc1|simpleqa_judge|prompt_level_(?:strict|loose)_acc|ruler_match_(?:any|all))",
    re.IGNORECASE,
)
_GENERAL = re.compile(rb'"config_general"\s*:\s*')
_RESULTS = re.compile(rb'\n  "results"\s*:\s*')


class Task(NamedTuple):
    """A task's name taken apart."""

    name: str
    shots: int | None = None
    suite: str | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """A results file, or what stands in for one that is missing: an empty document."""

    document: Mapping[str, Any]

    @property
    def general(self) -> Mapping[str, Any]:
        """What it says of the whole invocation."""
        return as_mapping(self.document.get("config_general"))

    @property
    def tasks(self) -> list[str]:
        """Tasks with results, in order; the average over all of them is none."""
        return [task for task in as_mapping(self.document.get("results")) if task != "all"]

    def config(self, task: str) -> Mapping[str, Any]:
        """A task's configuration: by its whole name, before 0.8 without the shots."""
        configs = as_mapping(self.document.get("config_tasks"))
        return next((found for name in _names(task) if (found := as_mapping(configs.get(name)))), {})

    def expected(self, task: str) -> int | None:
        """How many questions the run set out to ask; -1 says nothing."""
        count = whole(self.config(task).get("effective_num_docs"))
        return count if count is not None and count >= 0 else None

    def model(self) -> str | None:
        """The model's name."""
        own = as_mapping(self.general.get("model_config")).get("model_name")
        return (text(self.general.get("model_name")) or text(own) or "").strip() or None

    def scores(self, task: str) -> tuple[AggregateScore, ...]:
        """The aggregate scores of a task, as stated."""
        return tuple(self._scores(task))

    def _scores(self, task: str) -> Iterator[AggregateScore]:
        stated = as_mapping(as_mapping(self.document.get("results")).get(task))
        for name, value in stated.items():
            found = number(value)
            if name.endswith("_stderr") or isinstance(value, bool) or found == (None, None):
                continue
            stderr = number(stated.get(f"{name}_stderr")).value
            yield AggregateScore(metric=name, value=found.value, special=found.special, stderr=stderr, n=self.expected(task))

    def other_scales(self, task: str) -> frozenset[str]:
        """Metrics whose aggregate lies outside 0 to 1: they are no share of right answers."""
        return frozenset(one.metric for one in self.scores(task) if one.value is not None and not 0 <= one.value <= 1)

    def configuration(self, task: str, *, generates: bool | None) -> Settings:
        """The configuration columns. A limit on new tokens means nothing where options are only scored."""
        told, named = self.general, task_of(task)
        model = as_mapping(told.get("model_config"))
        generation = {**as_mapping(told.get("generation_parameters")), **as_mapping(model.get("generation_parameters"))}
        own = self.config(task)
        limits = ({"max_new_tokens": generation.get("max_new_tokens")}, {"max_new_tokens": own.get("generation_size")})
        shots = named.shots if named.shots is not None else whole(own.get("num_fewshots"))
        plain = {name: value for name, value in model.items() if name not in {"max_tokens", "max_new_tokens"}}
        return settings_from(
            *(limits if generates else limits[:1] if generates is None else ()),
            plain,
            {"dtype": told.get("model_dtype")},
            few_shot=shots if shots is not None and shots >= 0 else None,
            prompt=self._prompt(task),
        )

    def _prompt(self, task: str) -> str | None:
        suite = (task_of(task).suite or "").strip()
        instruction = text(as_mapping(self.general.get("model_config")).get("system_prompt"))
        parts = [suite] if suite.lower() not in _PLAIN_SUITES else []
        if instruction:
            sha = hashlib.sha256(instruction.encode("utf-8", "replace")).hexdigest()
            parts.append(f"system_instruction {sha[:12]}")
        return "; ".join(parts) or None

    def settings(self, task: str, stamp: str | None) -> dict[str, Any]:
        """Everything that is not mapped, for this task."""
        kept: dict[str, Any] = {
            "config_general": self.general,
            "task": task,
            "task_config": self.config(task),
            "version": next(
                (found for name in _names(task) if (found := as_mapping(self.document.get("versions")).get(name)) is not None), None
            ),
            "summary": as_mapping(self.document.get("summary_tasks")).get(task),
            "stamp": stamp,
        }
        return {name: masked(value) for name, value in kept.items() if value not in (None, {}, [], "")}


NO_RESULTS = Results({})
"""What is known when there is no results file."""


def read_results(path: Path) -> Results:
    """A results file; InputError where it is none."""
    document = json_document(path)
    if not isinstance(document, dict) or not isinstance(document.get("results"), dict):
        message = "expected an object with results, by task"
        raise InputError(message, where=str(path), hint="delete it or run lighteval again")
    return Results(document)


def results_tasks(path: Path) -> list[str]:
    """The tasks of a results file, by its head where that is enough; InputError where it is no such file."""
    try:
        head = read_head(path)
    except OSError:
        head = b""
    match = _RESULTS.search(head)
    if match is not None:
        try:
            value, _ = JSONDecoder().raw_decode(head[match.end() :].decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return read_results(path).tasks
        return Results({"results": value}).tasks
    return read_results(path).tasks


def names_model(path: Path) -> bool:
    """Whether a results file names its model, by its head where that is enough; not where it is no such file."""
    try:
        head = read_head(path)
        match = _GENERAL.search(head)
        if match is not None:
            with suppress(ValueError, RecursionError):
                value, _ = JSONDecoder().raw_decode(head[match.end() :].decode("utf-8", "replace"))
                return Results({"config_general": value}).model() is not None
        return read_results(path).model() is not None
    except (InputError, OSError):
        return False


def is_results(head: bytes) -> bool:
    """Whether a file begins like a results file of lighteval."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:4096]
    return start.startswith(b"{") and b'"config_general"' in start and b'"lighteval_sha"' in start


def task_of(task: str) -> Task:
    """Name, shots and suite of `suite|name|shots` (also with a further flag at its end) or, since 0.12, `name|shots`."""
    parts = [part.strip() for part in task.split("|")]
    shots = [int(part) for part in parts[1:] if part.isdigit() and len(part) < 6]
    words = [part for place, part in enumerate(parts) if place == 0 or not part.isdigit()]
    suite, name = (words[0], words[1]) if len(words) > 1 else (None, words[0])
    return Task((name.removesuffix(":_average") or name), shots[0] if shots else None, suite)


def category_of(task: str) -> str | None:
    """The subset that a task's name holds behind its first colon."""
    inner = task_of(task).name.partition(":")[2]
    return inner or None


def is_share(name: str, others: frozenset[str]) -> bool:
    """Whether a metric of this name can be a share of right answers."""
    plain = name.partition(":")[0]
    return name not in others and not has_other_scale(plain)


def says_correct(name: str) -> bool:
    """Whether a metric of this name says right or wrong; what stands behind a colon are its parameters."""
    plain = name.partition(":")[0]
    return is_binary(plain) or _CORRECT.fullmatch(plain) is not None


def _names(task: str) -> list[str]:
    """Under which names tables may hold a task: whole, without the shots, the name alone."""
    named = task_of(task)
    short = f"{named.suite}|{named.name}" if named.suite else named.name
    return list(dict.fromkeys((task, short, named.name)))
