"""Request states and per-instance statistics of a HELM run folder, joined into rows of native columns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tracker.batch import Refusal
from tracker.readers.helm_spec import SEPARATE, Spec, is_metric, key_of, perturbation_name, primary, says_right, value_of
from tracker.readers.keys import image_place
from tracker.readers.lm_choices import letter
from tracker.readers.values import NOTHING, Number, as_list, as_mapping, best, json_text, number, p_gold, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CORRECT = "correct"


class Place(NamedTuple):
    """What request states and statistics are joined on."""

    instance: str
    perturbation: str | None
    trial: int


@dataclass(slots=True)
class Answer:
    """One answered instance: its request states (several where each reference was asked) and its statistics."""

    place: Place
    position: int
    states: list[Mapping[str, Any]] = field(default_factory=list)
    stats: dict[str, Number] = field(default_factory=dict)
    split: str | None = None


def judged(statistics: Sequence[Any], file: str) -> tuple[dict[Place, Answer], list[Refusal]]:
    """What per-instance statistics say, as answers without request states; several entries of one place are one answer."""
    found: dict[Place, Answer] = {}
    refused: list[Refusal] = []
    for position, told in enumerate(statistics, 1):
        entry = as_mapping(told)
        place = _place(entry.get("instance_id"), entry.get("perturbation"), entry.get("train_trial_index"))
        if place is None or not isinstance(entry.get("stats"), list):
            refused.append(_bad(file, "entry", position, "an instance_id, a train_trial_index and a list of stats", told))
            continue
        _add(found.setdefault(place, Answer(place, position)), entry["stats"])
    return found, refused


def joined(states: Sequence[Any], statistics: Mapping[Place, Answer], file: str) -> tuple[list[Answer], list[Refusal]]:
    """Answers in the order of request states, then those of which there are only statistics."""
    answers: dict[tuple[Place, int], Answer] = {}
    refused: list[Refusal] = []
    for position, state in enumerate(states, 1):
        instance = as_mapping(as_mapping(state).get("instance"))
        place = _place(instance.get("id"), instance.get("perturbation"), as_mapping(state).get("train_trial_index"))
        if place is None:
            refused.append(_bad(file, "request state", position, "an instance with an id and a train_trial_index", state))
            continue
        asked = 0
        if state.get("reference_index") is None:
            while (place, asked) in answers:
                asked += 1
        answers.setdefault((place, asked), Answer(place, position, split=text(instance.get("split")))).states.append(state)
    for place, told in statistics.items():
        answer = answers.setdefault((place, 0), told)
        answer.stats, answer.split = told.stats, answer.split or told.split
    return list(answers.values()), refused


def _place(instance: Any, perturbation: Any, trial: Any) -> Place | None:
    named = text(instance)
    at = 0 if trial is None else whole(trial)
    if named is None or not named.strip() or at is None or at < 0 or isinstance(instance, bool | dict | list):
        return None
    return Place(named, perturbation_name(perturbation), at)


def _add(answer: Answer, stats: Sequence[Any]) -> None:
    for stat in stats:
        name = as_mapping(as_mapping(stat).get("name"))
        metric = text(name.get("name"))
        if metric is None:
            continue
        found = value_of(stat)
        if found != NOTHING:
            answer.stats.setdefault(metric, found)
        answer.split = answer.split or text(name.get("split"))


class Rows:
    """Answers of one folder as rows of native columns."""

    def __init__(self, spec: Spec, answers: Sequence[Answer], predictions: Mapping[Place, Mapping[str, Any]]) -> None:
        self.spec, self.predictions = spec, predictions
        names = dict.fromkeys(name for answer in answers for name in answer.stats)
        outside = {name for answer in answers for name, stat in answer.stats.items() if stat.value is not None and not 0 <= stat.value <= 1}
        self.metric = primary(spec, names, outside)
        self.paired = any(answer.place.perturbation for answer in answers)
        """Whether there are perturbed copies: they share their pair_key with the originals."""

    def row(self, answer: Answer) -> dict[str, Any]:
        """One record with its question."""
        row = _question(self.spec, answer) | _answer(self.spec, answer, self.predictions.get(answer.place, {}))
        row |= _verdict(self.metric, answer, row)
        key = key_of(answer.place.instance)
        label = answer.place.perturbation
        row["question_id"] = f"{key} {label}" if label else key
        row["pair_key"] = key if self.paired else None
        return row


def _question(spec: Spec, answer: Answer) -> dict[str, Any]:
    """What was asked, without the prompt around it."""
    if not answer.states:
        return {}
    instance = answer.states[0]["instance"]
    asked = as_mapping(instance.get("input"))
    references = [one for one in as_list(instance.get("references")) if isinstance(one, dict)]
    outputs = [text(as_mapping(one.get("output")).get("text")) for one in references]
    right = [place for place, one in enumerate(references) if _CORRECT in as_list(one.get("tags"))]
    options = options_of(spec, answer.states[0], outputs)
    extra = as_mapping(instance.get("extra_data"))
    return {
        "text": _words(asked),
        "image_key": image_of(asked),
        "options": options,
        "gold": _gold(outputs, right, options),
        "category": text(extra.get("category") or extra.get("subject")) or spec.category,
        "subcategory": text(instance.get("sub_split")),
    }


def options_of(spec: Spec, state: Mapping[str, Any], outputs: Sequence[str | None]) -> list[str] | None:
    """Options in order: those a letter stands for, or the references where each of them was asked."""
    mapping = state.get("output_mapping")
    if isinstance(mapping, dict) and mapping and spec.method != "ranking_binary":
        return [text(one) or "" for one in mapping.values()]
    if spec.method in SEPARATE and outputs:
        return [one or "" for one in outputs]
    return None


def _gold(outputs: Sequence[str | None], right: Sequence[int], options: Sequence[str] | None) -> str | None:
    """The letter of the correct option, else the correct reference; a JSON list where several are."""
    if options is None:
        found = [outputs[place] for place in right if outputs[place] is not None]
    else:
        places = (
            place if place < len(options) and options[place] == outputs[place] else _index(options, outputs[place]) for place in right
        )
        found = [letter(place) for place in places if place is not None]
    return None if not found else found[0] if len(found) == 1 else json_text(found)


def _index(options: Sequence[str], wanted: str | None) -> int | None:
    return next((place for place, one in enumerate(options) if one == wanted), None)


def _answer(spec: Spec, answer: Answer, shown: Mapping[str, Any]) -> dict[str, Any]:
    """What came back, and what it cost."""
    row: dict[str, Any] = {"repetition": answer.place.trial}
    results = [as_mapping(state.get("result")) for state in answer.states]
    times = [number(result.get("request_time")).value for result in results]
    known = [one for one in times if one is not None and one >= 0]
    row["latency_s"] = sum(known) if known and len(known) == len(times) else _value(answer, "inference_runtime")
    row["prompt_tokens"] = _count(answer, "num_prompt_tokens")
    row["generated_tokens"] = _count(answer, "num_completion_tokens", "num_output_tokens")
    asked = any("request" in state for state in answer.states)
    if asked and not any(result.get("success") is not False and as_list(result.get("completions")) for result in results):
        row["status"] = "failed"
    if spec.method in SEPARATE:
        return row | {"prompt_tokens": None, "generated_tokens": None} | _by_reference(answer)
    completions = [one for result in results[:1] for one in as_list(result.get("completions")) if isinstance(one, dict)]
    said = text(completions[0].get("text")) if completions else text(shown.get("predicted_text"))
    row["response"] = said
    mapping = answer.states[0].get("output_mapping") if answer.states else None
    if isinstance(mapping, dict) and mapping and spec.method != "ranking_binary":
        row["prediction"] = _chosen(mapping, said, text(shown.get("mapped_output")))
    elif said is not None:
        row["prediction"] = said.strip()
    return row


def _chosen(mapping: Mapping[str, Any], said: str | None, mapped: str | None) -> str | None:
    """The option that an answer means: its letter as HELM maps it, else the one that HELM shows."""
    letters = list(mapping)
    if said is not None and said.strip() in mapping:
        return letter(letters.index(said.strip()))
    return next((letter(place) for place, one in enumerate(mapping.values()) if mapped is not None and text(one) == mapped), None)


def _by_reference(answer: Answer) -> dict[str, Any]:
    """Log-likelihoods of the references, each asked alone, and HELM's choice (which may weigh them by length or calibrate them)."""
    chosen = whole(_value(answer, "predicted_index"))
    row: dict[str, Any] = {"prediction": letter(chosen) if chosen is not None and chosen >= 0 else None}
    by_place: dict[int, float | None] = {}
    for state in answer.states:
        place = whole(state.get("reference_index"))
        if place is not None and place >= 0 and text(state.get("request_mode")) in {None, "original"}:
            by_place.setdefault(place, reference_logprob(state, place))
    references = [one for one in as_list(answer.states[0]["instance"].get("references")) if isinstance(one, dict)] if answer.states else []
    scores = [by_place.get(place) for place in range(len(references))]
    if not scores or any(one is None for one in scores):
        return row
    right = [place for place, one in enumerate(references) if _CORRECT in as_list(one.get("tags"))]
    shares = [p_gold(scores, place) for place in right]
    top = best(scores)
    row["option_scores"] = scores
    row["p_gold"] = min(1.0, sum(one for one in shares if one is not None)) if shares and None not in shares else None
    row["logit_prediction"] = None if top is None else letter(top)
    return row


def reference_logprob(state: Mapping[str, Any], place: int) -> float | None:
    """Sum of the log-probabilities of a reference's own tokens: the last ones of prompt and reference, echoed by the model."""
    references = as_list(as_mapping(state.get("instance")).get("references"))
    reference = references[place] if place < len(references) else None
    wanted = (text(as_mapping(as_mapping(reference).get("output")).get("text")) or "").strip()
    completions = as_list(as_mapping(state.get("result")).get("completions"))
    tokens = as_list(as_mapping(completions[0]).get("tokens")) if completions else []
    tail, total = "", 0.0
    for token in reversed(tokens):
        found = number(as_mapping(token).get("logprob")).value
        if found is None:
            return None
        tail, total = (text(as_mapping(token).get("text")) or "") + tail, total + found
        if len(tail.strip()) >= len(wanted):
            return total if wanted and tail.strip() == wanted else None
    return None


def _verdict(metric: str | None, answer: Answer, row: Mapping[str, Any]) -> dict[str, Any]:
    """The primary metric as score, the others as further scores; without statistics, HELM's exact match of a mapped letter."""
    found: dict[str, Any] = {}
    if metric is not None and metric in answer.stats:
        value = answer.stats[metric]
        found = {"score": value.special or value.value, "score_rule": metric, "status": None}
        if says_right(metric) and value.value in {0.0, 1.0}:
            found["correct"] = value.value == 1.0
    elif not answer.stats and row.get("options") and row.get("gold") and row.get("response") is not None and "status" not in row:
        right = row["gold"] if not str(row["gold"]).startswith("[") else None
        if right is not None:
            found = {"correct": row.get("prediction") == right, "score_rule": "exact_match of the mapped letter (no statistics)"}
    else:
        found = {"score": None}
    for name, value in answer.stats.items():
        if name != metric and is_metric(name):
            found[f"scores.{name}"] = value.special or value.value
    return found


def image_of(asked: Mapping[str, Any]) -> str | None:
    """The images of an input: their addresses, or paths below HELM's folder of scenarios, which are alike on every machine."""
    found = []
    for one in as_list(as_mapping(asked.get("multimedia_content")).get("media_objects")):
        place = text(as_mapping(one).get("location"))
        if place and str(as_mapping(one).get("content_type", "")).startswith("image"):
            found.append(image_place(place, "scenarios"))
    return None if not found else found[0] if len(found) == 1 else json_text(found)


def _words(asked: Mapping[str, Any]) -> str | None:
    plain = text(asked.get("text"))
    if plain:
        return plain
    media = as_list(as_mapping(asked.get("multimedia_content")).get("media_objects"))
    parts = [text(one.get("text")) for one in media if isinstance(one, dict) and one.get("text")]
    if parts:
        return "\n".join(part for part in parts if part)
    turns = [one for one in as_list(asked.get("messages")) if isinstance(one, dict)]
    return text(turns[-1].get("content")) if turns else plain


def _value(answer: Answer, name: str) -> float | None:
    return answer.stats[name].value if name in answer.stats else None


def _count(answer: Answer, *names: str) -> int | None:
    for name in names:
        found = whole(_value(answer, name))
        if found is not None and found >= 0:
            return found
    return None


def _bad(file: str, unit: str, position: int, expected: str, found: Any) -> Refusal:
    reason = f"{unit} {position}: expected {expected} (write the file again with helm-run, or remove the {unit})"
    return Refusal(file=file, reason=reason, text=json_text(found)[:500] if isinstance(found, dict | list) else text(found))


def by_run(answers: Sequence[Answer], main: str) -> dict[tuple[str, str | None], list[Answer]]:
    """Answers by split and perturbation, the main split without perturbation first."""
    found: dict[tuple[str, str | None], list[Answer]] = defaultdict(list)
    for answer in answers:
        found[answer.split or main, answer.place.perturbation].append(answer)
    return dict(sorted(found.items(), key=lambda one: (one[0][0] != main, one[0][1] is not None)))


def shown(predictions: Sequence[Any]) -> dict[Place, Mapping[str, Any]]:
    """display_predictions.json by place."""
    found: dict[Place, Mapping[str, Any]] = {}
    for one in map(as_mapping, predictions):
        place = _place(one.get("instance_id"), one.get("perturbation"), one.get("train_trial_index"))
        if place is not None:
            found.setdefault(place, one)
    return found
