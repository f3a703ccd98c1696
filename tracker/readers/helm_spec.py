"""What a HELM run folder says of its run: benchmark, model, configuration, splits, perturbations, main metric.

Read in helm/benchmark (runner.py, run_expander.py, adaptation/adapter_spec.py, static/schema_*.yaml) of crfm-helm 0.5.16.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.batch import AggregateScore
from tracker.readers.lm_rules import has_other_scale, is_binary
from tracker.readers.secrets import masked
from tracker.readers.setting import settings_from
from tracker.readers.values import Number, as_mapping, number, text, whole

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from tracker.batch import Settings

SEPARATE = frozenset({"multiple_choice_separate_original", "multiple_choice_separate_calibrated"})
"""Adapters that ask once per reference and compare log-probabilities."""
PLAIN_METHODS = frozenset({"", "generation", "chat", "generation_multimodal"})
"""Adapters that put nothing but a prompt template around the question: no prompt of its own."""
_HOW = frozenset((
    "model", "model_deployment", "method", "data_augmentation", "num_train_trials", "max_train_instances", "max_eval_instances",
    "num_outputs", "num_trials", "eval_split", "tokenizer", "num_prompt_tokens", "num_output_tokens", "increase_max_tokens",
    "temperature", "increase_temperature", "stop", "add_to_stop", "newline", "global_prefix", "anthropic", "claude_3", "amazon-nova",
    "idefics_instruct", "llava", "open_flamingo", "process_output", "groups", "use_few_shot",
))  # fmt: skip
"""Arguments of a run's name that say how it was run, not what was asked."""
_PROMPT = (
    "instructions",
    "prompt",
    "follow_format_instructions",
    "format_prompt",
    "chatml",
    "output_format_instructions",
    "use_chain_of_thought",
)
"""Arguments of a run's name that change the prompt."""
_OWN_ID = re.compile(r"id\d+")

RIGHT_OR_WRONG = (
    "exact_match", "quasi_exact_match", "prefix_exact_match", "quasi_prefix_exact_match", "quasi_leave_articles_exact_match",
    "exact_match_indicator", "final_number_exact_match", "exact_set_match", "math_equiv", "math_equiv_chain_of_thought",
    "chain_of_thought_correctness", "cleva_math_result_match", "float_equiv", "pass", "code_eval_acc",
)  # fmt: skip
"""Metrics whose 1 is right and whose 0 is wrong, in the order in which they are taken."""
_MAIN = {
    "quasi_exact_match": (
        "boolq imdb raft civil_comments wikifact babi_qa synthetic_reasoning legalbench legal_support lsat_qa med_qa entity_data_imputation "
        "entity_matching bbq casehold vqa voxceleb2 mutox mustard parade air_bench_foundation banking77 iemocap_audio cti_to_mitre"
    ),
    "quasi_prefix_exact_match": (
        "a_okvqa_base a_okvqa_dialect a_okvqa_chinese a_okvqa_hindi a_okvqa_spanish a_okvqa_swahili mm_star_perception mm_star_reasoning "
        "mm_star_knowledge blink_perception blink_knowledge blink_reasoning gqa hateful_memes viz_wiz vqa_base vqa_dialect mmmu unicorn pope "
        "seed_bench mme pairs fair_face exams_v vocal_sound corebench meld_audio"
    ),
    "quasi_leave_articles_exact_match": "real_world_qa",
}
MAIN = {group: metric for metric, groups in _MAIN.items() for group in groups.split()}
"""The metric by which HELM's own tables rank a group, where it is neither exact_match nor no matter of right and wrong."""
_NO_METRIC = re.compile(
    r"num_(?:references|train_trials|train_instances|prompt_tokens|completion_tokens|output_tokens|instances|perplexity_tokens|bytes)"
    r"|inference_\w*runtime|training_\w+_cost|batch_size|finish_reason_\w+|predicted_index|prompt_truncated"
)
_LOGS = re.compile(r"logprob\w*|max_prob")


@dataclass(frozen=True, slots=True)
class Spec:
    """run_spec.json and scenario.json, or what the folder's name tells where they are missing."""

    document: Mapping[str, Any] = field(default_factory=dict)
    scenario: Mapping[str, Any] = field(default_factory=dict)
    adapter: Mapping[str, Any] = field(default_factory=dict)
    folder: str = ""

    @property
    def name(self) -> str:
        """The run's name: the scenario with its arguments, and how it was run."""
        return (text(self.document.get("name")) or "").strip() or self.folder

    @property
    def method(self) -> str:
        """How instances become requests."""
        return text(self.adapter.get("method")) or self.arguments.get("method", "")

    @property
    def arguments(self) -> dict[str, str]:
        """The arguments of the run's name."""
        parts = (part.partition("=") for part in _split_name(self.name)[1].split(","))
        return {name.strip(): value.strip() for name, sign, value in parts if sign}

    @property
    def groups(self) -> list[str]:
        """Run groups, by which HELM's tables are made."""
        found = self.document.get("groups")
        return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []

    @property
    def benchmark(self) -> str:
        """Scenario and what of its arguments says what is asked, such as `mmlu:subject=philosophy`."""
        kept = ",".join(f"{name}={value}" for name, value in self.arguments.items() if name not in _HOW and name not in _PROMPT)
        head = _split_name(self.name)[0] or self.name
        return f"{head}:{kept}" if kept else head

    @property
    def model(self) -> str | None:
        """The model, else its deployment, else (its slash written as `_`) from the name."""
        for key in ("model", "model_deployment"):
            named = (text(self.adapter.get(key)) or "").strip()
            if named:
                return named
        return self.arguments.get("model", self.arguments.get("model_deployment", "")).replace("_", "/", 1) or None

    @property
    def category(self) -> str | None:
        """The part of the benchmark that this run asks, where the scenario says so."""
        named = as_mapping(as_mapping(self.document.get("scenario_spec")).get("args"))
        return next((found for key in ("subject", "category") if (found := text(named.get(key) or self.arguments.get(key)))), None)

    def configuration(self) -> Settings:
        """The configuration columns."""
        asked = [f"{name}={value}" for name, value in self.arguments.items() if name in _PROMPT]
        how = [] if self.method in PLAIN_METHODS else [self.method]
        shots = whole(self.adapter.get("max_train_instances"))
        most = whole(self.adapter.get("max_tokens"))
        return settings_from(
            few_shot=shots if shots is not None and shots >= 0 else None,
            max_new_tokens=most if most is not None and most > 0 and self.method not in SEPARATE else None,
            prompt="; ".join([*how, *asked]) or None,
        )

    def settings(self) -> dict[str, Any]:
        """Everything that is not mapped."""
        kept = {
            "run_spec_name": text(self.document.get("name")),
            **{key: self.document.get(key) for key in ("scenario_spec", "metric_specs", "data_augmenter_spec", "groups", "annotators")},
            "adapter_spec": dict(self.adapter),
            "scenario": dict(self.scenario),
        }
        return {key: masked(value) for key, value in kept.items() if value not in (None, {}, [])}

    def metrics(self) -> list[str]:
        """The metrics that the run was told to compute, in its order."""
        found: list[str] = []
        specs = self.document.get("metric_specs")
        for one in specs if isinstance(specs, list) else []:
            names = as_mapping(as_mapping(one).get("args")).get("names")
            found += [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
        return list(dict.fromkeys(found))


def primary(spec: Spec, present: Iterable[str], outside: Container[str] = ()) -> str | None:
    """The metric that decides `correct` and `score`; docs/format-helm.md has the order. `outside` are metrics with a value outside [0, 1]."""
    names = [name for name in present if not _NO_METRIC.fullmatch(name) and not _LOGS.fullmatch(name) and "@" not in name]
    listed = spec.metrics()
    wanted = [
        *(MAIN[group] for group in spec.groups if group in MAIN),
        *(name for name in listed if says_right(name)),
        *RIGHT_OR_WRONG,
        *(name for name in names if says_right(name)),
        *(name for name in (*listed, *names) if name not in outside and not has_other_scale(name)),
    ]
    return next((name for name in wanted if name in names), None)


def says_right(metric: str) -> bool:
    """Whether a metric says right or wrong."""
    return metric in RIGHT_OR_WRONG or is_binary(metric)


def is_metric(name: str) -> bool:
    """Whether a statistic measures answers; the others describe requests, and have columns of their own or none."""
    return _NO_METRIC.fullmatch(name) is None


def value_of(stat: Mapping[str, Any]) -> Number:
    """A statistic's mean; nothing where it counted nothing (HELM leaves NaN out)."""
    if whole(stat.get("count")) == 0:
        return Number(None, None)
    return number(stat.get("mean"))


def perturbation_name(described: Any) -> str | None:
    """A perturbation in words: its name, and what parameters it has."""
    if not isinstance(described, dict) or not described:
        return None
    rest = {key: value for key, value in described.items() if key not in {"name", "robustness", "fairness", "computed_on"}}
    given = [f"{key}={text(value)}" for key, value in sorted(rest.items()) if value is not None]
    return " ".join([text(described.get("name")) or "unnamed", *given])


def key_of(instance_id: str) -> str:
    """An instance's key: HELM numbers instances itself (`id147`), so its name goes before such an id."""
    from tracker.readers.keys import keyed

    return f"helm:{instance_id}" if _OWN_ID.fullmatch(instance_id) else keyed("helm", instance_id)


def main_split(splits: Iterable[str]) -> str:
    """The split a run is about: test, else valid, else the first."""
    found = list(dict.fromkeys(splits))
    return next((one for one in ("test", "valid") if one in found), found[0] if found else "test")


def scores_of(stats: Sequence[Any], split: str, perturbation: str | None, *, worst: bool) -> tuple[list[AggregateScore], int | None]:
    """Aggregate scores of one split and perturbation, and how many instances it has.

    With `worst` the unperturbed run also gets what HELM computes over its perturbed copies, such as the worst case, named after them.
    """
    scores: list[AggregateScore] = []
    count: int | None = None
    for stat in stats:
        name = as_mapping(as_mapping(stat).get("name"))
        metric = text(name.get("name"))
        if not metric or (text(name.get("split")) or split) != split:
            continue
        described = as_mapping(name.get("perturbation"))
        computed = text(described.get("computed_on")) or "perturbed"
        label = perturbation_name(described)
        mine = label == perturbation and (label is None or computed == "perturbed")
        if mine and metric == "num_instances":
            count = whole(stat.get("mean"))
        if not is_metric(metric) or not (mine or (worst and perturbation is None and computed != "perturbed")):
            continue
        found = value_of(stat)
        if found == (None, None):
            continue
        part = text(name.get("sub_split"))
        full = metric + (f" [{part}]" if part else "") + ("" if mine else f" ({label}, {computed})")
        scores.append(AggregateScore(metric=full, value=found.value, special=found.special))
    return [one.model_copy(update={"n": count}) for one in scores], count


def perturbed(stats: Sequence[Any]) -> bool:
    """Whether statistics speak of perturbations that really took place, not only of the classes robustness and fairness."""
    names = (text(as_mapping(as_mapping(as_mapping(stat).get("name")).get("perturbation")).get("name")) for stat in stats)
    return any(name not in {None, "robustness", "fairness"} for name in names)


def _split_name(name: str) -> tuple[str, str]:
    """Scenario and arguments of a run's name; in copies that cannot hold a colon, `-` stands for it."""
    head, colon, arguments = name.partition(":")
    first, sign, _ = name.partition("=")
    if not colon and sign and "-" in first:
        head = first.rpartition("-")[0]
        arguments = name[len(head) + 1 :]
    return head, arguments
