"""Write runs as native tables: one JSONL file per model with its runs interleaved."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from tracker.simulate.lmms_eval import PRECISION
from tracker.simulate.questions import LETTERS
from tracker.simulate.responses import MAX_NEW_TOKENS
from tracker.simulate.rows import identity, nature, rows_of, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tracker.simulate.answers import Answers
    from tracker.simulate.questions import QuestionSet

BLOCK = 64
"""Rows of a run before the next run has its turn."""


@dataclass(slots=True)
class NativeWriter:
    """Writes one file per model."""

    folder: Path
    question_sets: dict[str, QuestionSet]
    _constant: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare what no run changes."""
        self._constant = {name: _constant(questions) for name, questions in self.question_sets.items()}

    def write(self, name: str, runs: Sequence[Answers]) -> int:
        """Write the runs of a model; gives the bytes written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        written = 0
        with (self.folder / f"{name}.jsonl").open("wb") as stream:
            waiting = [self._lines(answers) for answers in runs]
            while waiting:
                blocks = [list(islice(lines, BLOCK)) for lines in waiting]
                written += stream.write("".join(line for block in blocks for line in block).encode())
                waiting = [lines for lines, block in zip(waiting, blocks, strict=True) if len(block) == BLOCK]
        return written

    def _lines(self, answers: Answers) -> Iterator[str]:
        cell = answers.cell
        constant = self._constant[cell.benchmark.name]
        settings = "".join(f'"{name}": {text(value)}, ' for name, value in cell.configuration.items())
        head = (
            f'{{"model": {text(cell.model.name)}, "benchmark": {text(cell.benchmark.name)}, '
            f'{settings}"few_shot": 0, "precision": "{PRECISION}", "max_new_tokens": {MAX_NEW_TOKENS}, '
        )
        for row in rows_of(answers):
            if row.failed:
                yield f'{head}{constant[row.question]}, "status": "failed", "response": ""}}\n'
                continue
            yield (
                f'{head}{constant[row.question]}, "correct": {str(row.correct).lower()}, "prediction": {_quoted(row.prediction)}, {row.confidences}, '
                f'"visual_tokens": {row.tokens}, "tiles": {row.tiles or "null"}, "effective_pixels": {row.effective_pixels}{row.latency}, '
                f'"prompt_tokens": {row.prompt_tokens}, "generated_tokens": {row.generated_tokens}, "response": "{row.response}"}}\n'
            )


def _quoted(prediction: str) -> str:
    return f'"{prediction}"' if prediction else "null"


def _constant(questions: QuestionSet) -> list[str]:
    sizes = zip(questions.image_width.tolist(), questions.image_height.tolist(), strict=True)
    return [
        f'"question_id": "{question.key}", {identity(question)}, {nature(question)}, "image_width": {width}, "image_height": {height}, '
        f'"text": {text(question.text)}, "options": {text(list(question.options))}, "gold": "{LETTERS[question.gold]}"'
        for question, (width, height) in zip(questions.questions, sizes, strict=True)
    ]
