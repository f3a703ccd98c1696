"""What the header of an Inspect log says of its run: model, benchmark, configuration, status, aggregate scores."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracker.batch import AggregateScore, RunHeader, Settings
from tracker.readers.columns import moment
from tracker.readers.secrets import HIDDEN, hides, is_secret, masked_text
from tracker.readers.setting import PRECISION_KEYS, SPELLINGS, revision_of, settings_from
from tracker.readers.values import as_list, as_mapping, number, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

FRAMEWORK = "inspect_ai"
NO_MODEL = frozenset({"", "none", "none/none"})
LOCAL_ENGINES = ("hf/", "vllm/", "sglang/")
"""Providers that only run a model whose name stands behind them."""
LIMITS = ("message_limit", "token_limit", "time_limit", "working_limit", "turn_limit", "cost_limit")
REASONING = ("reasoning_effort", "reasoning_tokens")
_STDERR = re.compile(r"(?:.*_)?stderr|bootstrap_std")
_PATH = re.compile(r"(?:/|~|\.{1,2}/|file:|[A-Za-z]:[\\/])")
_MAPPED = frozenset(PRECISION_KEYS).union(*SPELLINGS.values())
_EVAL_KEPT = (
    "task", "task_id", "run_id", "eval_set_id", "task_version", "task_file", "task_attribs", "task_args", "task_args_passed", "solver",
    "solver_args", "sandbox", "model", "model_generate_config", "model_base_url", "model_args", "model_roles", "config", "revision",
    "packages", "scorers",
)  # fmt: skip
_LONGEST_TEXT, _LONGEST_LIST, _LONGEST_ARGUMENT = 2_000, 50, 80
_NO_CHOICE = re.compile(
    r"(?:^|_)(?:timeout|seed|retries|connections|concurrency|workers|parallelism|verbose|debug|cache|log_level|batch_size|device|gpus)$",
    re.IGNORECASE,
)
"""How an evaluation was carried out, not what was evaluated."""


@dataclass(frozen=True, slots=True)
class Log:
    """A log without its samples. Every part may be missing or of a wrong type in a damaged file."""

    document: Mapping[str, Any]

    @property
    def spec(self) -> Mapping[str, Any]:
        """What was evaluated (`eval`)."""
        return as_mapping(self.document.get("eval"))

    @property
    def results(self) -> Mapping[str, Any]:
        """Aggregate scores and counts."""
        return as_mapping(self.document.get("results"))

    @property
    def stats(self) -> Mapping[str, Any]:
        """Times and token usage."""
        return as_mapping(self.document.get("stats"))

    @property
    def plan(self) -> Mapping[str, Any]:
        """Solvers and the generation settings in force."""
        return as_mapping(self.document.get("plan"))

    @property
    def status(self) -> str:
        """`started`, `success`, `cancelled` or `error`."""
        return text(self.document.get("status")) or "started"

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """The solvers in order."""
        return [step for step in as_list(self.plan.get("steps")) if isinstance(step, dict)]

    @property
    def scores(self) -> list[Mapping[str, Any]]:
        """The aggregate scores as entries {name, scorer, reducer, metrics}; logs of 2024 had one `scorer` and its `metrics`."""
        old = self.results.get("scorer")
        if isinstance(old, dict):
            return [{"scorer": old.get("name"), **old, "metrics": self.results.get("metrics") or old.get("metrics")}]
        return [one for one in as_list(self.results.get("scores")) if isinstance(one, dict)]

    def model(self) -> str:
        """The model: `eval.model`; for none/none the one that was used, else the one role's, else the agent's name."""
        named = (text(self.spec.get("model")) or "").strip()
        if named.lower() not in NO_MODEL:
            engine = next((one for one in LOCAL_ENGINES if named.startswith(one) and named != one), None)
            if engine is not None:
                given = as_mapping(self.spec.get("model_args")).get("model_path")
                return text(given) or named.removeprefix(engine)
            return named
        used = [
            name for name in as_mapping(self.stats.get("model_usage")) if name.strip().lower() not in NO_MODEL and not self._judges(name)
        ]
        if len(used) == 1:
            return used[0]
        roles = [name for role in as_mapping(self.spec.get("model_roles")).values() if (name := text(as_mapping(role).get("model")))]
        if len(roles) == 1 and not used:
            return roles[0]
        return self._agent() or named or "none/none"

    def _judges(self, model: str) -> bool:
        """Whether a model is named by a scorer or bound to the role of a grader."""
        grader = as_mapping(as_mapping(self.spec.get("model_roles")).get("grader")).get("model")
        return model == grader or model in str(self.spec.get("scorers"))

    def _agent(self) -> str | None:
        """Name of the solver that stands for the model: the one chosen for the evaluation, else the last but `generate`."""
        steps = [name for step in self.steps if (name := text(step.get("solver")))]
        own = [name for name in steps if name.rpartition("/")[2] != "generate"]
        return text(self.spec.get("solver")) or next(reversed(own or steps), None)

    def benchmark(self) -> str | None:
        """The task without its package: `inspect_evals/arc_easy` is arc_easy."""
        task = (text(self.spec.get("task")) or "").strip()
        return task.rpartition("/")[2] or task or None

    def external_id(self) -> str | None:
        """`eval_id`, which every attempt has anew; before 0.3.100 run and task."""
        own = text(self.spec.get("eval_id"))
        parts = [one for name in ("run_id", "task_id") if (one := text(self.spec.get(name)))]
        return own or "/".join(parts) or None

    def configuration(self) -> Settings:
        """The configuration columns."""
        tokens = SPELLINGS["max_new_tokens"]
        generation = [self.plan.get("config"), self.spec.get("model_generate_config"), *(step.get("params") for step in self.steps)]
        arguments = {name: value for name, value in as_mapping(self.spec.get("task_args")).items() if "revision" not in name}
        instruction = text(self._generation("system_message"))
        return settings_from(
            *({name: as_mapping(one).get(name) for name in tokens} for one in generation),
            as_mapping(self.spec.get("model_args")),
            arguments,
            prompt=None if not instruction else f"system_message {_hash(instruction)}",
            variant=self._variant(),
        )

    def _variant(self) -> str | None:
        """What else was chosen for this evaluation: arguments given to task and solver, limits, effort of reasoning."""
        parts = [found] if (found := revision_of(as_mapping(self.spec.get("model_args")))) else []
        given = self.spec.get("task_args_passed")
        parts += _arguments(as_mapping(given if given is not None else self.spec.get("task_args")))
        solver = text(self.spec.get("solver"))
        if solver:
            chosen = self.spec.get("solver_args_passed")
            inner = ",".join(_arguments(as_mapping(chosen if chosen is not None else self.spec.get("solver_args"))))
            parts.append(f"solver={solver}({inner})" if inner else f"solver={solver}")
        config = as_mapping(self.spec.get("config"))
        parts += [f"{name}={value}" for name in LIMITS if (value := text(config.get(name)))]
        parts += [f"{name}={value}" for name in REASONING if (value := text(self._generation(name)))]
        return ",".join(parts) or None

    def _generation(self, name: str) -> Any:
        """A generation setting: the plan's, else the model's."""
        found = as_mapping(self.plan.get("config")).get(name)
        return as_mapping(self.spec.get("model_generate_config")).get(name) if found is None else found

    def expected(self) -> int | None:
        """Samples times epochs that the run set out to log; None where it stopped early on purpose."""
        if self.results.get("early_stopping"):
            return None
        stated = whole(self.results.get("total_samples"))
        if stated:
            return stated
        data, config = as_mapping(self.spec.get("dataset")), as_mapping(self.spec.get("config"))
        chosen, limit = as_list(data.get("sample_ids")), config.get("limit")
        count = len(chosen) or whole(data.get("samples"))
        if not count:
            return None
        if not chosen and isinstance(limit, list) and len(limit) == 2:
            first, last = whole(limit[0]) or 0, whole(limit[1]) or 0
            count = min(count, max(last - first, 0))
        elif not chosen and (most := whole(limit)):
            count = min(count, most)
        return count * max(whole(config.get("epochs")) or 1, 1) or None

    def header(self) -> RunHeader:
        """The run, as far as the header tells; whether its samples are all there is known after reading them."""
        status, reason = self._outcome()
        return RunHeader(
            model=self.model(),
            benchmark=self.benchmark(),
            configuration=self.configuration(),
            external_id=self.external_id(),
            framework=FRAMEWORK,
            framework_version=text(as_mapping(self.spec.get("packages")).get(FRAMEWORK)),
            status=status,
            status_reason=reason,
            n_expected=self.expected(),
            started_at=_moment(self.stats.get("started_at")) or _moment(self.spec.get("created")),
            ended_at=_moment(self.stats.get("completed_at")),
            settings=self.settings(),
            tags={name: True for one in self._tags() if (name := text(one))},
        )

    def _outcome(self) -> tuple[Any, str | None]:
        """Status of the run and why; an evaluation that failed with some samples done is partial (see `inspect_ai`)."""
        if self.status == "success":
            return "finished", None
        if self.status == "error":
            message = (text(as_mapping(self.document.get("error")).get("message")) or "").strip()
            return "failed", f"error: {message[:300]}" if message else "error"
        return "partial", "cancelled" if self.status == "cancelled" else "not finished: it is still running, or was stopped"

    def _tags(self) -> list[Any]:
        """Tags now, that is with later edits."""
        return as_list(self.document.get("tags")) or as_list(self.spec.get("tags"))

    def settings(self) -> dict[str, Any]:
        """Everything that is not mapped, without what gives access to something."""
        dataset = {name: value for name, value in as_mapping(self.spec.get("dataset")).items() if name != "sample_ids"}
        kept = {
            **{name: self.spec.get(name) for name in _EVAL_KEPT},
            "dataset": dataset,
            "plan": self.plan,
            "metadata": self.document.get("metadata") or self.spec.get("metadata"),
            "model_usage": self.stats.get("model_usage"),
            "role_usage": self.stats.get("role_usage"),
            "completed_samples": self.results.get("completed_samples"),
            "invalidated": self.document.get("invalidated") or None,
        }
        return {name: plain(value) for name, value in kept.items() if value not in (None, "", {}, [])}

    def aggregates(self) -> tuple[AggregateScore, ...]:
        """The aggregate scores as stated, `<score>.<metric>`, with `@<reducer>` where it is not the mean."""
        return tuple(one for entry in self.scores for one in _aggregates(entry))

    def order(self) -> list[str]:
        """Names of scores in the order of the results, then of the scorers that were asked for."""
        named = [name for entry in self.scores if (name := score_name(entry))]
        scorers = [name for one in as_list(self.spec.get("scorers")) if (name := text(as_mapping(one).get("name")))]
        return list(dict.fromkeys([*named, *(name.rpartition("/")[2] for name in scorers)]))

    def headline(self) -> str | None:
        """The score that the task itself declares as its best summary (since 0.3.26x); a mere default is not meant."""
        declared = as_mapping(self.spec.get("headline_metric"))
        fits = (
            score_name(entry)
            for entry in self.scores
            if all(
                declared.get(mine) in {None, entry.get(its)}
                for mine, its in (("scorer", "scorer"), ("score", "name"), ("reducer", "reducer"))
            )
            and declared.get("metric") in {None, *as_mapping(entry.get("metrics"))}
        )
        return next(fits, None) if declared else None


def plain(value: Any) -> Any:
    """A JSON value for settings: secrets masked, long texts and lists cut."""
    if isinstance(value, str):
        value = masked_text(value)
        return value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]}... ({len(value)} characters)"
    if isinstance(value, dict):
        return {str(key): HIDDEN if hides(str(key), one) else plain(one) for key, one in value.items()}
    if isinstance(value, list):
        more = [f"... ({len(value)} entries)"] if len(value) > _LONGEST_LIST else []
        return [*(plain(one) for one in value[:_LONGEST_LIST]), *more]
    return value


def score_name(entry: Mapping[str, Any]) -> str | None:
    """`scorer`, or `scorer.key` where a scorer gives several values."""
    name, scorer = text(entry.get("name")), text(entry.get("scorer"))
    short = (scorer or "").rpartition("/")[2]
    return name if not name or not short or name == short or re.fullmatch(rf"{re.escape(short)}\d*", name) else f"{short}.{name}"


def _aggregates(entry: Mapping[str, Any]) -> Iterator[AggregateScore]:
    name, reducer = score_name(entry) or "score", text(entry.get("reducer"))
    metrics = {
        key: number(value)
        for key, one in as_mapping(entry.get("metrics")).items()
        if number(value := as_mapping(one).get("value") if isinstance(one, dict) else one) != (None, None)
    }
    errors = [key for key in metrics if _STDERR.fullmatch(key)]
    known = [key for key in metrics if key not in errors]
    count = whole(entry.get("scored_samples"))
    pairs = {_paired(key, known): metrics[key].value for key in reversed(errors)}
    for key in known or errors:
        label = f"{name}.{key}@{reducer}" if reducer and reducer != "mean" else f"{name}.{key}"
        yield AggregateScore(metric=label, value=metrics[key].value, special=metrics[key].special, stderr=pairs.get(key), n=count)


def _paired(error: str, metrics: list[str]) -> str | None:
    """The metric whose standard error this is: the one it is named after, else accuracy, mean or the first."""
    named = error.removesuffix("err").removesuffix("std").rstrip("_")
    return next((one for one in (named, "accuracy", "mean") if one in metrics), next(iter(metrics), None))


def _arguments(given: Mapping[str, Any]) -> list[str]:
    """Arguments as `name=value`, those left out that have columns of their own, say nothing or are places on one machine."""
    parts = []
    for name, value in sorted(given.items()):
        said = text(plain(value))
        if value is None or said is None or name in _MAPPED or (isinstance(value, str) and _PATH.match(value)):
            continue
        if is_secret(name) or _NO_CHOICE.search(name):
            continue
        parts.append(f"{name}={said}" if len(said) <= _LONGEST_ARGUMENT else f"{name}=sha256:{_hash(said)}")
    return parts


def _hash(said: str) -> str:
    return hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:12]


def _moment(value: Any) -> datetime | None:
    try:
        return moment(value) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        return None
