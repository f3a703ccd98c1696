"""The rows of one lmms-eval samples file as columns: a few hundred rows at a time, a column at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tracker.batch import Refusal
from tracker.readers import lm_choices
from tracker.readers.keys import keyed, own_ids
from tracker.readers.lines import shorten
from tracker.readers.lm_rows import paused_collector
from tracker.readers.lm_rules import (
    NO_METRICS,
    PREDICTION_FIELDS,
    UNJUDGED,
    Rule,
    graded,
    has_other_scale,
    is_binary,
    judged,
    predicted,
    rule_of,
    score_field,
)
from tracker.readers.lm_table import CHUNK_BYTES, CHUNK_ROWS, CONVERTERS, KEY_NAMES, Chunk, as_json_lists, hashed, options_text, tables
from tracker.readers.values import NOTHING, Number, json_text, text, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tracker.readers.lm_results import Results
    from tracker.readers.lm_rows import Block

WRITTEN = frozenset(
    {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "doc_hash", "prompt_hash", "target_hash", "input", "input_media"}
    | {"token_counts", "filter", "metrics"}
)
"""Keys of a row that are no metric."""
SHORT_ANSWER = 200
"""A filtered response up to this length is kept as the prediction."""
_NESTED = frozenset({"options", "option_scores"})
_OPTION = re.compile(r"^[ \t]*\(?([A-Z])[.):][ \t]+(.*?)[ \t]*$", re.MULTILINE)
_LEAD_IN = re.compile(r"\s*(?:The choices are listed below|There are several options|选项如下所示|有如下几个选项|Options|Choices)[:：]\s*$")
_KEPT_QUESTIONS = 5_000


class Question(NamedTuple):
    """What a prompt asks: options on lettered lines of their own are told from the text."""

    text: str | None
    options: str | None
    n_options: int | None
    content_hash: str | None


NO_QUESTION = Question(text=None, options=None, n_options=None, content_hash=None)
_QUESTIONS: dict[tuple[str, str, str], Question] = {}
_ASKED: dict[tuple[str, str, tuple[str | None, ...]], dict[str, pa.Array]] = {}
_KINDS = {"n_options": pa.int64()}


def question_of(prompt: str, before: str = "", after: str = "") -> Question:
    """A prompt's question, remembered: the same questions occur in hundreds of runs."""
    known = _QUESTIONS.get((prompt, before, after))
    if known is None:
        if len(_QUESTIONS) >= _KEPT_QUESTIONS:
            _QUESTIONS.clear()
        known = _QUESTIONS[prompt, before, after] = _question(prompt, before, after)
    return known


def _question(prompt: str, before: str, after: str) -> Question:
    body = prompt.strip().removeprefix(before.strip()).removesuffix(after.strip()).strip()
    found = list(_OPTION.finditer(body))
    while found and "".join(one[1] for one in found) != "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(found)]:
        found.pop()
    if len(found) < 2:
        return Question(text=body, options=None, n_options=None, content_hash=hashed(body, None))
    asked = _LEAD_IN.sub("", body[: found[0].start()]).strip()
    options = options_text([one[2] for one in found])
    return Question(text=asked, options=options, n_options=len(found), content_hash=hashed(asked, options))


@dataclass(frozen=True, slots=True)
class _Plan:
    """How rows with these names are read."""

    native: tuple[str, ...]
    metrics: tuple[str, ...]
    others: tuple[str, ...]
    rule: Rule | None


@dataclass
class Reading:
    """One samples file being read; what has been seen so far decides at the end whether the run is complete."""

    path: str
    task: str
    results: Results
    seen: set[Any] = field(default_factory=set)
    documents: set[Any] = field(default_factory=set)
    truncated: bool = False
    damage: str | None = None
    _plans: dict[frozenset[str], _Plan] = field(default_factory=dict)
    _prompts: list[str | None] = field(default_factory=list)

    def parts(self, blocks: Iterator[Block]) -> Iterator[Refusal | dict[str, Any]]:
        """Refusals, and the tables of bounded chunks."""
        more = True
        while more:
            refusals: list[Refusal] = []
            with paused_collector():
                made, more = self._chunk(blocks, refusals)
            yield from refusals
            if made is not None:
                yield made

    def _chunk(self, blocks: Iterator[Block], refusals: list[Refusal]) -> tuple[dict[str, Any] | None, bool]:
        """The tables of the next chunk, and whether more may follow."""
        chunk, size = Chunk(), 0
        for block in blocks:
            refusals += block.refusals
            self.truncated = self.truncated or block.truncated
            size += block.size
            if block.rows:
                refusals += self._take(block, chunk)
            if len(chunk.keys) >= CHUNK_ROWS or size > CHUNK_BYTES:
                return self._made(chunk, refusals), True
        return self._made(chunk, refusals), False

    def reason(self, expected: int | None) -> str | None:
        """Why the run is partial, if it is."""
        if self.damage:
            return self.damage
        if self.truncated:
            return "samples file is cut off"
        if expected is not None and len(self.documents) < expected:
            return f"{len(self.documents)} of {expected} questions"
        return None

    def _made(self, chunk: Chunk, refusals: list[Refusal]) -> dict[str, Any] | None:
        if not chunk.keys:
            return None
        made = tables(chunk, self.path, self.seen, self._questions())
        self._prompts = []
        refusals += made.refusals
        return {"records": made.records, "questions": made.questions, "labels": made.labels, "record_scores": made.record_scores}

    def _take(self, block: Block, chunk: Chunk) -> list[Refusal]:
        """Append a block's rows to the chunk."""
        shapes = list(map(tuple, block.rows))
        layouts = set(shapes)
        names = frozenset().union(*layouts)
        plan = self._plans.get(names)
        if plan is None:
            plan = self._plans[names] = self._plan(names, block.rows)
        rows, lines = block.rows, block.lines
        column = _columns(rows, layouts)
        entries = _entries(rows, plan, column)
        keys = self._keys(plan, column, entries.values)
        refused = []
        if None in keys:
            refused = self._unkeyed(block, keys, plan)
            kept = [place for place, key in enumerate(keys) if key is not None]
            rows, lines = [rows[place] for place in kept], [lines[place] for place in kept]
            keys, shapes = [keys[place] for place in kept], [shapes[place] for place in kept]
            if not rows:
                return refused
            column = _columns(rows, set(shapes))
            entries = _entries(rows, plan, column)
        own = self._judge(plan, entries)
        own.update(_described(plan, shapes, entries, column))
        own.update(_answers(entries.values, entries.first, column, len(rows)))
        refused += self._choices(own, rows, lines, column)
        self.documents.update(_hashable(column("doc_id")) if "doc_id" in names else keys)
        given = {name: column(name) for name in plan.native}
        if "option_scores" in given and (made := as_json_lists(given["option_scores"])) is not None:
            own["option_scores"] = made
            del given["option_scores"]
        start = len(chunk.keys)
        chunk.add(keys, lines, own, given)
        self._prompts.extend(self._asked(column))
        if plan.others:
            chunk.scorers.extend(_further(rows, plan.others, start))
        return refused

    def _plan(self, names: frozenset[str], rows: Sequence[Mapping[str, Any]]) -> _Plan:
        native = tuple(name for name in CONVERTERS if name in names and (name in _NESTED or not _is_nested(rows, name)))
        free = [name for name in names if name not in WRITTEN and name not in native and name not in NO_METRICS and name not in KEY_NAMES]
        free.sort(key=_first_places(rows).__getitem__)
        loose = [name for name in free if _is_metric(rows, name)]
        rule = rule_of(self.task, loose)
        if rule is not None:
            return _Plan(native, tuple(one for one in rule.metrics if one in names), (), rule)
        listed = [name for name in self.results.metrics(self.task) if name in loose and not has_other_scale(name)]
        primary = listed or [name for name in loose if self._may_lead(name)]
        first = tuple(primary[:1])
        return _Plan(native, first, tuple(name for name in loose if name not in first), None)

    def _may_lead(self, name: str) -> bool:
        """Whether a metric that no configuration lists can stand for the answer's credit."""
        better = self.results.of_task("higher_is_better", self.task)
        lower = isinstance(better, dict) and better.get(name) is False
        return not lower and not has_other_scale(name)

    def _keys(self, plan: _Plan, column: Callable[[str], list[Any]], entries: list[Any]) -> list[Any]:
        if plan.rule is not None and plan.rule.key is not None:
            try:
                keys = list(map(itemgetter(plan.rule.key), entries))
            except (KeyError, TypeError):
                name = plan.rule.key
                keys = [entry.get(name) if type(entry) is dict else None for entry in entries]
        else:
            keys = column("doc_id")
            if own_ids(self.task):  # the data set has ids, and a position must not pass for one
                keys = [None if (key := text(one)) is None else keyed("lmms_eval", key) for one in keys]
        for name in KEY_NAMES:
            stated = column(name)
            if stated.count(None) < len(stated):
                keys = [key if one is None or type(one) is dict else one for key, one in zip(keys, stated, strict=True)]
                break
        kinds = set(map(type, keys))
        if kinds <= {int, str} and "" not in keys:
            return list(map(str, keys))
        return [None if key is None or key == "" else text(key) for key in keys]

    def _unkeyed(self, block: Block, keys: list[Any], plan: _Plan) -> list[Refusal]:
        wanted = "doc_id" if plan.rule is None or plan.rule.key is None else f"{plan.rule.metrics[0]}.{plan.rule.key}"
        reason = f"no {wanted}, so that the question is not known (correct or delete the line)"
        rows = zip(block.lines, block.rows, keys, strict=True)
        return [Refusal(file=self.path, line=line, reason=reason, text=shorten(json_text(row))) for line, row, key in rows if key is None]

    def _judge(self, plan: _Plan, entries: _Entries) -> dict[str, list[Any]]:
        """correct, score, special and score_rule of every row."""
        if entries.first is None:
            return {}
        score_key = text(self.results.task_config(self.task).get("score_key"))
        quick = _quickly(entries, plan.rule, score_key)
        if quick is not None:
            return quick
        names, values = entries.names, entries.values
        verdicts = [
            UNJUDGED if name is None else judged(entry, name, plan.rule, score_key) for name, entry in zip(names, values, strict=True)
        ]
        return {
            "correct": [one.correct for one in verdicts],
            "score": [one.number.value for one in verdicts],
            "special": [one.number.special for one in verdicts],
            "score_rule": [_said(name, entry, plan.rule, score_key) for name, entry in zip(names, values, strict=True)],
        }

    def _asked(self, column: Callable[[str], list[Any]]) -> list[str | None]:
        """The prompts, without the lists that some models' prompts come in."""
        prompts = column("input")
        if prompts.count(None) == len(prompts):
            prompts = [one[0] if isinstance(one, list) and one and isinstance(one[0], str) else None for one in column("arguments")]
        return prompts if set(map(type, prompts)) == {str} else [text(_innermost(one)) for one in prompts]

    def _questions(self) -> dict[str, pa.Array]:
        """What a chunk's prompts ask, as columns; remembered too, since the next run asks the same in the same order."""
        asked = (*self._wrapping, tuple(self._prompts))
        known = _ASKED.get(asked)
        if known is None:
            while _ASKED and sum(len(one[2]) for one in _ASKED) + len(self._prompts) > _KEPT_QUESTIONS:
                del _ASKED[next(iter(_ASKED))]
            found = [NO_QUESTION if one is None else question_of(one, *self._wrapping) for one in self._prompts]
            known = {
                name: pa.array(column, _KINDS.get(name, pa.string()))
                for name, column in zip(Question._fields, zip(*found, strict=True), strict=True)
            }
            _ASKED[asked] = known
        cycled = any(plan.rule is not None and plan.rule.cycled for plan in self._plans.values())
        return {**known, "image_key": known["content_hash"]} if cycled else known

    @cached_property
    def _wrapping(self) -> tuple[str, str]:
        """The prompts that the task puts before and after its questions."""
        given = self.results.task_config(self.task).get("lmms_eval_specific_kwargs")
        given = given if isinstance(given, dict) else {}
        return text(given.get("pre_prompt")) or "", text(given.get("post_prompt")) or ""

    def _choices(
        self, own: dict[str, list[Any]], rows: Sequence[Mapping[str, Any]], lines: Sequence[int], column: Callable[[str], list[Any]]
    ) -> list[Refusal]:
        """Log-likelihoods of multiple choice tasks."""
        filtered = column("filtered_resps")
        first = filtered[0]
        if not (isinstance(first, list) and len(first) > 1 and lm_choices.pairs(first)):
            return []
        correct = own.get("correct") or [None] * len(rows)
        found = [
            lm_choices.choice(one, row.get("target"), None, None if right is None else float(right))
            for one, row, right in zip(filtered, rows, correct, strict=True)
        ]
        own["option_scores"] = [None if one is None else json_text(one.scores) for one in found]
        own["p_gold"] = [None if one is None else one.p_gold for one in found]
        own["logit_prediction"] = [None if one is None else one.best for one in found]
        gold = own["gold"]
        own["gold"] = [old if one is None or one.gold_text is None else one.gold_text for one, old in zip(found, gold, strict=True)]
        own["n_options"] = [None if one is None else len(one.scores) for one in found]
        return [
            Refusal(file=self.path, line=line, reason=one.problem)
            for one, line in zip(found, lines, strict=True)
            if one is not None and one.problem
        ]


def _columns(rows: Sequence[dict[str, Any]], layouts: set[tuple[str, ...]]) -> Callable[[str], list[Any]]:
    """A column by name: quickly where every row has it."""
    common = frozenset(next(iter(layouts))).intersection(*layouts)
    some = frozenset().union(*layouts)

    def column(name: str) -> list[Any]:
        if name in common:
            return list(map(itemgetter(name), rows))
        return [row.get(name) for row in rows] if name in some else [None] * len(rows)

    return column


class _Entries(NamedTuple):
    """The metric that judges each row, and its value there; `first` is the first value, `single` the metric where all rows agree."""

    values: list[Any]
    first: Any
    single: str | None
    names: list[str | None]

    def whole(self, column: list[Any]) -> list[Any]:
        """A column of the rows that have a value, with null for those that have none."""
        if len(column) == len(self.values):
            return column
        following = iter(column)
        return [None if value is None else next(following) for value in self.values]


def _entries(rows: Sequence[Mapping[str, Any]], plan: _Plan, column: Callable[[str], list[Any]]) -> _Entries:
    if len(plan.metrics) == 1:
        single = plan.metrics[0]
        values = column(single)
        holes = None in values
        first = next((one for one in values if one is not None), None) if holes else values[0]
        return _Entries(values, first, single, [None if one is None else single for one in values] if holes else [single] * len(values))
    names = [next((name for name in plan.metrics if row.get(name) is not None), None) for row in rows]
    values = [None if name is None else row[name] for name, row in zip(names, rows, strict=True)]
    return _Entries(values, next((one for one in values if one is not None), None), None, names)


def _quickly(entries: _Entries, rule: Rule | None, score_key: str | None) -> dict[str, list[Any]] | None:
    """Verdicts of rows that all look alike (or have no value); None where they do not."""
    present = [one for one in entries.values if one is not None]
    kinds = set(map(type, present))
    if entries.single is None and (rule is None or kinds != {dict}):
        return None
    binary = entries.single is not None and is_binary(entries.single)
    says = {name: name for name in set(entries.names)}
    if kinds == {dict}:
        if rule is not None and rule.judge is not None:
            return _remembered(entries, present, rule)
        name = rule.field if rule is not None else score_field(entries.first, score_key)
        if name is None:
            return None
        try:
            present = list(map(itemgetter(name), present))
        except KeyError:
            return None
        binary = binary or rule is not None or is_binary(name)
        says = {metric: None if metric is None else rule.named(metric) if rule is not None else f"{metric}.{name}" for metric in says}
        kinds = set(map(type, present))
    distinct: set[Any] = set(present) if kinds <= {int, float} else {None}
    if not distinct <= {0, 1} and (binary or None in distinct or not all(-1e300 < one < 1e300 for one in distinct)):
        return None
    correct = [one == 1 for one in present] if binary else [None] * len(present)
    return {"correct": entries.whole(correct), "score": entries.whole(present), "score_rule": [says[one] for one in entries.names]}


def _remembered(entries: _Entries, present: list[Any], rule: Rule) -> dict[str, list[Any]] | None:
    """Verdicts that depend on few fields: each combination is judged once."""
    if rule.judge is None or not rule.judged_on:
        return None
    try:
        cases = list(map(itemgetter(*rule.judged_on), present))
        known = {case: rule.judge(dict(zip(rule.judged_on, case, strict=True))) for case in set(cases)}
    except (KeyError, TypeError):
        return None
    correct = [known[case] for case in cases]
    scores = [None if one is None else float(one) for one in correct]
    return {
        "correct": entries.whole(correct),
        "score": entries.whole(scores),
        "score_rule": [None if one is None else rule.named(one) for one in entries.names],
    }


def _said(metric: str | None, entry: Any, rule: Rule | None, score_key: str | None) -> str | None:
    if metric is None:
        return None
    if rule is not None:
        return rule.named(metric)
    name = score_field(entry, score_key) if isinstance(entry, dict) else None
    return metric if name is None else f"{metric}.{name}"


def _described(plan: _Plan, shapes: list[tuple[str, ...]], entries: _Entries, column: Callable[[str], list[Any]]) -> dict[str, list[Any]]:
    """Gold and categories."""
    made: dict[str, list[Any]] = {"gold": _texts(column("target"))}
    rule = plan.rule
    media = column("input_media")
    if media.count(None) < len(media):
        made["image_key"] = [text(one[0]) if isinstance(one, list) and len(one) == 1 else None for one in media]
    if rule is not None and rule.category_is_metric:
        taken = {*WRITTEN, *CONVERTERS, *plan.metrics, *NO_METRICS, *KEY_NAMES}
        named = {shape: next((name for name in shape if name not in taken), None) for shape in set(shapes)}
        made["category"] = [named[shape] for shape in shapes]
    first = entries.first
    if not isinstance(first, dict):
        return made
    fields: dict[str, tuple[str | None, ...]] = {
        "subcategory": (rule.subcategory if rule is not None else _first_of(first, ("sub_category", "l2_category", "subdomain")),),
        "category": rule.category if rule is not None else ("category",),
        "image_key": (rule.image if rule is not None else None,),
    }
    for target, names in fields.items():
        if names and all(name is not None and name in first for name in names):
            made[target] = _joined(entries, names)
    return made


def _first_of(entry: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in entry), None)


def _joined(entries: _Entries, names: tuple[Any, ...]) -> list[Any]:
    """Fields of the metric's object as text, several joined by a slash."""
    present = [one for one in entries.values if type(one) is dict]
    if len(present) + entries.values.count(None) < len(entries.values):
        return [_slashed(tuple(one.get(name) for name in names)) if type(one) is dict else None for one in entries.values]
    if len(names) == 1:
        return entries.whole(_texts([one.get(names[0]) for one in present]))
    try:
        cases = list(map(itemgetter(*names), present))
        known = {case: _slashed(case) for case in set(cases)}
    except (KeyError, TypeError):
        return entries.whole([_slashed(tuple(one.get(name) for name in names)) for one in present])
    return entries.whole([known[case] for case in cases])


def _slashed(parts: tuple[Any, ...]) -> str | None:
    return "/".join(one for part in parts if (one := text(part))) or None


def _answers(entries: list[Any], first: Any, column: Callable[[str], list[Any]], size: int) -> dict[str, list[Any]]:
    """Response, prediction and token counts."""
    filtered = _responses(column("filtered_resps"))
    whole_text = column("resps")
    if whole_text.count(None) == size:
        response = filtered
    else:
        response = [old if new is None else new for new, old in zip(_responses(whole_text), filtered, strict=True)]
    made: dict[str, list[Any]] = {"response": response, "prediction": _predictions(entries, first, filtered)}
    counts = column("token_counts")
    if counts.count(None) < size:
        for name, source in (("prompt_tokens", "input_tokens"), ("generated_tokens", "output_tokens")):
            found = _counts(counts, source)
            made[name] = found if set(map(type, found)) <= {int, type(None)} else [whole(one) for one in found]
    return made


def _counts(counts: list[Any], name: str) -> list[Any]:
    """Tokens of answers that took one request; several requests have no one count."""
    try:
        if set(map(len, counts)) == {1}:
            return [None if one is None else one[name] for (one,) in counts]
    except (KeyError, TypeError):
        pass
    single = [one[0] if isinstance(one, list) and len(one) == 1 else None for one in counts]
    return [one.get(name) if isinstance(one, dict) else None for one in single]


def _predictions(entries: list[Any], first: Any, filtered: list[str | None]) -> list[str | None]:
    name = _first_of(first, PREDICTION_FIELDS) if isinstance(first, dict) else None
    if name is not None:
        found = [one.get(name) if type(one) is dict else None for one in entries]
        return found if set(map(type, found)) <= {str, type(None)} else [predicted(one) if type(one) is dict else None for one in entries]
    if None not in filtered and max(map(len, filtered)) <= SHORT_ANSWER:  # type: ignore[arg-type] # no None is left
        return filtered
    return [None if one is None or len(one) > SHORT_ANSWER else one for one in filtered]


def _responses(values: list[Any]) -> list[str | None]:
    """Text of responses: a text, or lists around it; several become JSON; log-likelihoods are no text."""
    kinds = set(map(type, values))
    if kinds <= {str, type(None)}:
        return values
    return [one if isinstance(one, str) else _response(one) for one in values]


def _response(value: Any) -> str | None:
    inner = _innermost(value)
    if isinstance(inner, list) and (not inner or lm_choices.pairs(inner) or lm_choices.pairs([inner])):
        return None
    return text(inner)


def _innermost(value: Any) -> Any:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _texts(values: list[Any]) -> list[str | None]:
    return values if set(map(type, values)) <= {str, type(None)} else [text(one) for one in values]


def _further(rows: Sequence[Mapping[str, Any]], names: Sequence[str], start: int) -> Iterator[tuple[int, str, Number]]:
    """Every other metric of a row: a number, the score inside an object, or a short list of numbers."""
    for place, row in enumerate(rows, start):
        for name in names:
            value = row.get(name)
            if value is not None:
                yield from ((place, scorer, found) for scorer, found in further(name, value))


def further(name: str, value: Any) -> Iterator[tuple[str, Number]]:
    """A metric's value under its name; the parts of a list of numbers under name[0], name[1], ..."""
    if isinstance(value, dict):
        inner = score_field(value)
        value = value.get(inner) if inner is not None else None
    if isinstance(value, list):
        parts = [graded(one, binary=False).number for one in value[:16] if not isinstance(one, list | dict)]
        yield from ((f"{name}[{place}]", one) for place, one in enumerate(parts) if one != NOTHING)
        return
    found = graded(value, binary=False).number
    if found != NOTHING:
        yield name, found


def _first_places(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Names in the order in which rows first mention them."""
    places: dict[str, int] = {}
    for row in rows:
        if not row.keys() <= places.keys():
            for name in row:
                places.setdefault(name, len(places))
    return places


def _is_nested(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return isinstance(next((found for row in rows if (found := row.get(name)) is not None), None), dict)


def _is_metric(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    value = next((found for row in rows if (found := row.get(name)) is not None), None)
    return isinstance(value, dict | list) or graded(value, binary=False).number != NOTHING


def _hashable(values: list[Any]) -> list[Any]:
    return values if set(map(type, values)) <= {int, str, type(None)} else [text(one) for one in values]
