"""Samples of an Inspect log become rows in native columns."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracker.readers.inspect_parse import ATTACHMENT
from tracker.readers.inspect_scores import OLD_NAME, Profiles, meaning, values_of
from tracker.readers.keys import keyed, own_ids, question_key
from tracker.readers.values import as_list, as_mapping, best, json_text, number, p_gold, text, whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

CATEGORY = ("category", "subject", "domain", "topic")
SUBCATEGORY = ("subcategory", "sub_category", "subdomain", "subfield", "subtopic", "level", "difficulty")
"""Metadata fields that name a question's category and subcategory, in order."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SHORT = 200


@dataclass(slots=True)
class Reading:
    """How samples of one log are read, and what was met on the way."""

    model: str
    benchmark: str
    order: Sequence[str]
    headline: str | None = None
    old_name: str = OLD_NAME
    profiles: Profiles = field(default_factory=Profiles)
    primary: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    own_ids: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.own_ids = own_ids(self.benchmark)

    def learn(self, samples: Iterable[Any]) -> None:
        """Learn from samples, or their summaries, what their scores mean."""
        self.profiles.learn(samples, self.old_name)
        self.primary = self.profiles.primary(self.order, self.headline)

    def row(self, sample: Mapping[str, Any]) -> dict[str, Any] | str:
        """A sample as a row, or why it is none."""
        key = self._key(sample)
        if key is None:
            return "expected a sample with an id (run the evaluation again)"
        epoch = whole(sample.get("epoch"))
        failed = sample.get("error") is not None and not sample.get("scores")
        row = {
            "question_id": key,
            "repetition": None if epoch is None else max(epoch - 1, 0),
            "status": "failed" if failed else None,
            **_question(sample),
            **_output(sample),
            **self._usage(sample),
            "latency_s": _seconds(sample),
        }
        row |= {} if failed else self._scores(sample)
        self._count(sample, failed=failed)
        return row

    def _key(self, sample: Mapping[str, Any]) -> str | None:
        metadata = as_mapping(sample.get("metadata"))
        own = {name: metadata[name] for name in self.own_ids if isinstance(metadata.get(name), str | int)}
        found = question_key("inspect", self.benchmark, own) if own else None
        key = text(sample.get("id"))
        return found or (keyed("inspect", key) if key is not None and key.strip() else None)

    def _scores(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        row: dict[str, Any] = {"correct": None, "score": None, "score_rule": self.primary, "prediction": None}
        scores = sample.get("scores")
        scores = scores if isinstance(scores, dict) else {self.old_name: sample.get("score")}
        if sample.get("invalidation"):
            row["status"] = "unscored"
        for name, value in values_of(sample, self.old_name):
            told = meaning(value)
            given = told.number.special or told.number.value
            if name != self.primary or sample.get("invalidation"):
                row[f"scores.{name}"] = given
                continue
            row["score"] = given
            profile = self.profiles.by_name.get(name)
            decided = told.verdict or (profile is not None and not profile.between)
            row["correct"] = told.number.value == 1.0 if decided and told.number.value in {0.0, 1.0} else None
        row["prediction"] = self._answer(scores)
        return row

    def _answer(self, scores: Mapping[str, Any]) -> str | None:
        """The answer that the primary scorer found, else the first that one found."""
        scorer = (self.primary or "").partition(".")[0]
        answers = {str(name).rpartition("/")[2]: text(as_mapping(score).get("answer")) for name, score in scores.items()}
        return answers.get(self.primary or "") or answers.get(scorer) or next(filter(None, answers.values()), None)

    def _usage(self, sample: Mapping[str, Any]) -> dict[str, Any]:
        """Tokens of the evaluated model: prompt tokens count those read from and written to a cache too."""
        usage = as_mapping(as_mapping(sample.get("model_usage")).get(self.model))
        into, out, total = (whole(usage.get(name)) for name in ("input_tokens", "output_tokens", "total_tokens"))
        cached = sum(whole(usage.get(f"input_tokens_cache_{name}")) or 0 for name in ("read", "write"))
        if into is not None and cached and total != into + (out or 0):
            into += cached
        return {"prompt_tokens": into, "generated_tokens": out}

    def _count(self, sample: Mapping[str, Any], *, failed: bool) -> None:
        limit = text(as_mapping(sample.get("limit")).get("type")) or text(sample.get("limit"))
        retries = as_list(sample.get("error_retries"))
        met = ("failed" if failed else None, f"limit_{limit}" if limit else None, "retried" if retries else None)
        for name in (*met, "invalidated" if sample.get("invalidation") else None):
            if name is not None:
                self.counts[name] = self.counts.get(name, 0) + 1


def _question(sample: Mapping[str, Any]) -> dict[str, Any]:
    attachments = as_mapping(sample.get("attachments")) or as_mapping(as_mapping(sample.get("transcript")).get("content"))
    options = [text(_resolved(one, attachments)) or "" for one in as_list(sample.get("choices"))] or None
    asked, images = _input(sample.get("input"), attachments)
    metadata = as_mapping(sample.get("metadata"))
    return {
        "text": asked,
        "options": options,
        "gold": _gold(sample.get("target"), attachments, options),
        "image_key": images[0] if len(images) == 1 else None,
        "category": _named(metadata, CATEGORY),
        "subcategory": _named(metadata, SUBCATEGORY),
    }


def _named(metadata: Mapping[str, Any], names: Sequence[str]) -> str | None:
    if not metadata:
        return None
    found = (metadata.get(name) for name in names)
    return next(
        (text(one) for one in found if isinstance(one, str | int) and not isinstance(one, bool) and 0 < len(str(one)) <= _SHORT), None
    )


def _gold(target: Any, attachments: Mapping[str, Any], options: Sequence[str] | None) -> str | None:
    """The target; several as a JSON list, letters of several right options too."""
    if isinstance(target, list):
        targets = [text(_resolved(one, attachments)) or "" for one in target]
        return (targets[0] or None) if len(targets) == 1 else json_text(targets) if targets else None
    gold = text(_resolved(target, attachments))
    if not gold:
        return None
    return gold.strip() if options else gold


def _input(told: Any, attachments: Mapping[str, Any]) -> tuple[str | None, list[str]]:
    """What is asked: the text itself, or the last message of the user; and its images."""
    told = _resolved(told, attachments)
    if not isinstance(told, list):
        return text(told) or None, []
    messages = [one for one in told if isinstance(one, dict)]
    asked = next((one for one in reversed(messages) if one.get("role") == "user"), None) or (messages[-1] if messages else {})
    content = _resolved(asked.get("content"), attachments)
    parts = [one for one in as_list(content) if isinstance(one, dict)]
    images = [_image(one["image"], attachments) for one in parts if one.get("type") == "image" and isinstance(one.get("image"), str)]
    return _content(content, attachments), images


def _content(content: Any, attachments: Mapping[str, Any]) -> str | None:
    """Text of a message; reasoning, images and tool use are left out."""
    content = _resolved(content, attachments)
    if isinstance(content, str):
        return content or None
    told = [
        text(_resolved(one.get("text"), attachments)) for one in as_list(content) if isinstance(one, dict) and one.get("type") == "text"
    ]
    told += [one for one in as_list(content) if isinstance(one, str)]
    return "\n".join(one for one in told if one) or None


def _image(image: str, attachments: Mapping[str, Any]) -> str:
    """A path or address as it is, an image's data by their hash."""
    image = text(_resolved(image, attachments)) or image
    if not image.startswith("data:"):
        return image
    _, _, data = image.partition(",")
    try:
        content = base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        content = data.encode("utf-8", "replace")
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _resolved(value: Any, attachments: Mapping[str, Any]) -> Any:
    """A value, or the attachment that it stands for."""
    return attachments.get(value[len(ATTACHMENT) :], value) if isinstance(value, str) and value.startswith(ATTACHMENT) else value


def _output(sample: Mapping[str, Any]) -> dict[str, Any]:
    attachments = as_mapping(sample.get("attachments"))
    output = as_mapping(sample.get("output"))
    choice = as_mapping(next(iter(as_list(output.get("choices"))), None))
    response = text(_resolved(output.get("completion"), attachments)) or _content(
        as_mapping(choice.get("message")).get("content"), attachments
    )
    if not response:
        said = (one for one in reversed(as_list(sample.get("messages"))) if isinstance(one, dict) and one.get("role") == "assistant")
        response = next((found for one in said if (found := _content(one.get("content"), attachments))), None)
    return {"response": response, **_option_scores(sample, choice, response)}


def _option_scores(sample: Mapping[str, Any], choice: Mapping[str, Any], response: str | None) -> dict[str, Any]:
    """Log-probabilities of the option letters, where the answer is one letter and every letter is among the tokens at its place."""
    content = as_list(as_mapping(choice.get("logprobs")).get("content"))
    letters = _LETTERS[: len(as_list(sample.get("choices")))]
    answer = (response or "").strip()
    if not content or len(letters) < 2 or answer not in letters or len(answer) != 1:
        return {}
    place = next((one for one in content if isinstance(one, dict) and str(one.get("token")).strip() == answer), None)
    found: dict[str, float] = {}
    for one in as_list(as_mapping(place).get("top_logprobs")):
        token, value = str(as_mapping(one).get("token")).strip(), number(as_mapping(one).get("logprob")).value
        if value is not None and token in letters and len(token) == 1:
            found[token] = max(value, found.get(token, value))
    if len(found) < len(letters):
        return {}
    scores = [found[letter] for letter in letters]
    target = sample.get("target")
    gold = text(target[0] if isinstance(target, list) and len(target) == 1 else target) or ""
    likeliest = best(scores)
    return {
        "option_scores": scores,
        "p_gold": p_gold(scores, letters.index(gold) if len(gold) == 1 and gold in letters else None),
        "logit_prediction": None if likeliest is None else letters[likeliest],
    }


def _seconds(sample: Mapping[str, Any]) -> float | None:
    found = (number(sample.get(name)).value for name in ("working_time", "total_time"))
    return next((one for one in found if one is not None and one >= 0), None)


def summaries(parts: Iterable[Any]) -> Iterator[Any]:
    """Entries of summaries; of entries of one sample and epoch the last counts."""
    last: dict[tuple[str, Any], Any] = {}
    for part in parts:
        for one in as_list(part):
            if isinstance(one, dict):
                last[str(one.get("id")), text(one.get("epoch"))] = one
    yield from last.values()
