"""Write runs as lmms-eval 0.7 does: a folder per model, a results file per invocation, a sample file per task."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from tracker.simulate.questions import LETTERS
from tracker.simulate.responses import MAX_NEW_TOKENS
from tracker.simulate.rows import identity, nature, rows_of, text
from tracker.simulate.scores import aggregates, metrics, score_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracker.simulate.answers import Answers
    from tracker.simulate.cells import Cell, SimulatedModel
    from tracker.simulate.questions import Question, QuestionSet

VERSION = "0.7.2"
EMPTY_HASH = hashlib.sha256(b"null").hexdigest()
"""lmms-eval hashes a document it no longer passes on: one constant for every row."""
ZONE = timezone(timedelta(hours=8))
FIRST_START = datetime(2026, 3, 2, tzinfo=UTC)
PRECISION = "bfloat16"


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of the evaluation tool: a model under one setting on all its benchmarks."""

    cell: Cell
    """One of its cells: the others differ in the benchmark."""
    order: int
    """Place among all invocations of the study; decides its times."""

    @property
    def model(self) -> SimulatedModel:
        """The model that is asked."""
        return self.cell.model

    @property
    def started(self) -> datetime:
        """When it started; no two start in the same second."""
        return FIRST_START + timedelta(minutes=17 * self.order)

    @property
    def stamp(self) -> str:
        """The stamp in file names: start time in UTC+8."""
        return self.started.astimezone(ZONE).strftime("%Y%m%d_%H%M%S")

    @property
    def sanitized(self) -> str:
        """The folder name that lmms-eval makes of the model name."""
        return self.model.source.replace("/", "__")


@dataclass(slots=True)
class LmmsEvalWriter:
    """Writes invocations below a folder; keeps the parts of lines that no run changes."""

    folder: Path
    question_sets: dict[str, QuestionSet]
    _constant: dict[str, list[_Constant]] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare the constant parts."""
        self._constant = {
            name: [_Constant.of(questions.template.layout, question) for question in questions.questions]
            for name, questions in self.question_sets.items()
        }

    def write(self, invocation: Invocation, runs: Sequence[Answers]) -> int:
        """Write one invocation; gives the bytes written."""
        folder = self.folder / invocation.cell.place / invocation.sanitized
        folder.mkdir(parents=True, exist_ok=True)
        written = 0
        for answers in runs:
            questions = self.question_sets[answers.cell.benchmark.name]
            path = folder / f"{invocation.stamp}_samples_{questions.template.task}.jsonl"
            written += path.write_bytes("".join(self._lines(answers)).encode())
        results = json.dumps(_results(invocation, runs, self.question_sets), indent=2, ensure_ascii=False).encode()
        written += (folder / f"{invocation.stamp}_results.json").write_bytes(results)
        return written

    def _lines(self, answers: Answers) -> Iterator[str]:
        constant = self._constant[answers.cell.benchmark.name]
        questions = self.question_sets[answers.cell.benchmark.name]
        layout = questions.template.layout
        for doc_id, row in enumerate(rows_of(answers)):
            about = constant[row.question]
            head = f'{{"doc_id": {doc_id}, {about.head}"filtered_resps": "{row.response}", "doc_hash": "{EMPTY_HASH}", '
            if row.failed:
                yield f'{head}{about.asked}, "token_counts": [null], "status": "failed", {about.identity}, {about.nature}}}\n'
                continue
            scores = metrics(layout, questions.questions[row.question], row.prediction, correct=row.correct)
            parsed = f'"prediction": "{row.prediction}", ' if layout == "hrbench" else ""
            yield (
                f"{head}{scores}{about.asked}, "
                f'"token_counts": [{{"input_tokens": {row.prompt_tokens}, "output_tokens": {row.generated_tokens}, "reasoning_tokens": 0}}], '
                f'{about.identity}, "visual_tokens": {row.tokens}{_tiles(row.tiles)}, "effective_pixels": {row.effective_pixels}{row.latency}, '
                f"{parsed}{row.confidences}}}\n"
            )


def _tiles(tiles: int) -> str:
    return f', "tiles": {tiles}' if tiles else ""


@dataclass(frozen=True, slots=True)
class _Constant:
    """Parts of a line that depend on the question only."""

    head: str
    asked: str
    identity: str
    nature: str
    """With its id: only rows without scores say these, the others have them in their scores."""

    @classmethod
    def of(cls, layout: str, question: Question) -> _Constant:
        return cls(
            head=f'"target": "{LETTERS[question.gold]}", ',
            asked=f'"input": {text(prompt(layout, question))}',
            identity=identity(question),
            nature=f'"question_id": "{question.key}", {nature(question)}',
        )


def prompt(layout: str, question: Question) -> str:
    """The text that the task sends to the model."""
    closing = (
        "Answer the option letter directly." if layout == "hrbench" else "Answer with the option's letter from the given choices directly."
    )
    if layout == "mme_realworld":
        choices = "\n".join(f"({letter}) {option}" for letter, option in zip(LETTERS, question.options, strict=False))
        return f"{question.text} The choices are listed below:\n{choices}\n{closing}"
    choices = "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, question.options, strict=False))
    return f"{question.text}\n{choices}\n{closing}"


def _results(invocation: Invocation, runs: Sequence[Answers], question_sets: dict[str, QuestionSet]) -> dict[str, Any]:
    """Everything that a results file of lmms-eval holds."""
    tasks = {question_sets[answers.cell.benchmark.name].template.task: answers for answers in runs}
    sets = {task: question_sets[answers.cell.benchmark.name] for task, answers in tasks.items()}
    generated = sum(len(answers.question) for answers in runs)
    seconds = round(60 + 0.0009 * sum(int(answers.prompt_tokens.sum()) for answers in runs) ** 0.5 * 9, 3)
    begun = 3_000_000.0 + 1020.0 * invocation.order
    limit = invocation.cell.limit
    return {
        "results": {task: {"alias": task, **aggregates(sets[task], answers)} for task, answers in tasks.items()},
        "group_subtasks": {task: [] for task in tasks},
        "configs": {task: _task_config(task, questions) for task, questions in sets.items()},
        "versions": dict.fromkeys(tasks, "Yaml"),
        "n-shot": dict.fromkeys(tasks, 0),
        "higher_is_better": {task: dict.fromkeys(score_names(questions), True) for task, questions in sets.items()},
        "n-samples": {
            task: {"original": len(sets[task].rows) if limit else len(answers.question), "effective": len(answers.question)}
            for task, answers in tasks.items()
        },
        "config": {
            "model": _adapter(invocation.model),
            "model_args": _model_args(invocation.cell),
            "batch_size": "1",
            "batch_sizes": [],
            "device": None,
            "use_cache": None,
            "limit": None if limit is None else float(limit),
            "offset": 0,
            "bootstrap_iters": 100000,
            "gen_kwargs": "",
            "random_seed": 0,
            "numpy_seed": 1234,
            "torch_seed": 1234,
            "fewshot_seed": 1234,
            "model_backend": "hf",
            "resolved_cli_args": {"model": _adapter(invocation.model), "tasks": ",".join(tasks), "log_samples": True},
        },
        "git_hash": "v0.7.2",
        "git_branch": "main",
        "date": invocation.stamp,
        "lmms_eval_version": VERSION,
        "throughput": {
            "total_gen_tokens": generated,
            "total_elapsed_time": seconds,
            "avg_speed": round(generated / seconds, 6),
            "avg_rank": 0.0,
        },
        "usage": {"total": {"input_tokens": sum(int(answers.prompt_tokens[answers.scored].sum()) for answers in runs), "n_api_calls": 0}},
        "task_hashes": {
            task: hashlib.sha256(json.dumps(_task_config(task, questions)).encode()).hexdigest() for task, questions in sets.items()
        },
        "model_source": _adapter(invocation.model),
        "model_name": invocation.model.source,
        "model_name_sanitized": invocation.sanitized,
        "system_instruction": None,
        "system_instruction_sha": None,
        "fewshot_as_multiturn": False,
        "chat_template": None,
        "chat_template_sha": None,
        "start_time": begun,
        "end_time": begun + seconds,
        "total_evaluation_time_seconds": str(seconds),
    }


def _adapter(model: SimulatedModel) -> str:
    """lmms-eval's name of the model class."""
    return {"Qwen2.5-VL": "qwen2_5_vl", "Qwen3-VL": "qwen3_vl"}.get(model.series, "internvl2")


def _model_args(cell: Cell) -> str:
    spelled = {"max_tiles": "max_num", "pixel_cap": "max_pixels"}
    knob = "" if cell.knob is None else f",{spelled[cell.knob[0]]}={cell.knob[1]}"
    return f"pretrained={cell.model.source},dtype={PRECISION}{knob}"


def _task_config(task: str, questions: QuestionSet) -> dict[str, Any]:
    address = f"0x7f62{int(hashlib.sha256(task.encode()).hexdigest()[:8], 16):08x}"
    return {
        "task": task,
        "dataset_path": f"simulated/{task}",
        "test_split": "test",
        "full_docs": False,
        "process_results_use_image": False,
        "doc_to_visual": f"<function {questions.template.layout}_doc_to_visual at {address}>",
        "doc_to_text": f"<function {questions.template.layout}_doc_to_text at {address}>",
        "doc_to_target": "answer",
        "process_results": f"<function {questions.template.layout}_process_results at {address}>",
        "description": "",
        "target_delimiter": " ",
        "fewshot_delimiter": "\n\n",
        "num_fewshot": 0,
        "metric_list": [
            {"metric": name, "aggregation": f"<function aggregate at {address}>", "higher_is_better": True}
            for name in score_names(questions)
        ],
        "output_type": "generate_until",
        "generation_kwargs": {"max_new_tokens": MAX_NEW_TOKENS, "temperature": 0, "do_sample": False, "until": ["\n\n"]},
        "repeats": 1,
        "should_decontaminate": False,
        "score_key": "score",
        "metadata": [{"version": 0.0}],
    }
