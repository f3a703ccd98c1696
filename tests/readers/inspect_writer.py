"""Logs by inspect_ai's own writer with a mock model, and what inspect_ai itself reads from them; run as a program of its own.

    python tests/readers/inspect_writer.py FOLDER

Importing inspect_ai takes seconds and starts threads, so tests run this once.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspect_ai import Epochs, Task, eval_retry, task
from inspect_ai import eval as evaluate
from inspect_ai.analysis import samples_df
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ChatMessageUser,
    ContentImage,
    ContentText,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)
from inspect_ai.scorer import Score, Scorer, Target, accuracy, choice, match, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, generate, multiple_choice, solver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspect_ai.model import Model

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
MODEL = "mockllm/model"
flags = {"failing": False}


def output(said: str, logprobs: Logprobs | None = None) -> ModelOutput:
    """A model's answer that used ten tokens, five from a cache, and wrote three."""
    choices = [ChatCompletionChoice(message=ChatMessageAssistant(content=said), stop_reason="stop", logprobs=logprobs)]
    usage = ModelUsage(input_tokens=10, output_tokens=3, total_tokens=18, input_tokens_cache_read=5)
    return ModelOutput(model=MODEL, choices=choices, usage=usage)


def model(outputs: Iterable[ModelOutput]) -> Model:
    """A mock model with these answers."""
    return get_model(MODEL, custom_outputs=iter(outputs), memoize=False)


@scorer(metrics={"helpful": [mean()], "length": [mean(), stderr()]})
def parts() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={"helpful": 1, "length": 7.5})

    return score


@scorer(metrics=[mean(), accuracy()])
def rating() -> Scorer:
    """1, 2, ... and NaN for the third sample: on no scale of right answers."""

    async def score(state: TaskState, target: Target) -> Score:
        number = int(str(state.sample_id).rpartition("-")[2])
        return Score.unscored(reason="grader_failed") if number == 2 else Score(value=number + 1, answer="rated")

    return score


@solver
def flaky() -> Solver:
    """Fails at the second sample while that is wanted, and never ends at the fourth."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id == "q-1" and flags["failing"]:
            message = "boom"
            raise ValueError(message)
        while state.sample_id == "q-3":
            state = await generate(state)
            state.messages.append(ChatMessageUser(content="go on"))
        return await generate(state)

    return solve


@task
def tiny(num_fewshot: int = 2, style: str = "plain") -> Task:
    asked = [
        Sample(id=f"q-{at}", input=f"What is {at}?", target=[str(at), f"n{at}"], metadata={"category": "math", "level": at})
        for at in range(5)
    ]
    return Task(dataset=asked, solver=flaky(), scorer=[rating(), match(), parts()], epochs=Epochs(2, ["mean", "max"]), message_limit=6)


@task
def pick() -> Task:
    asked = [Sample(input=f"Pick {at}", choices=["red", "blue"], target="A") for at in range(4)]
    return Task(dataset=asked, solver=multiple_choice(), scorer=choice())


@task
def letters() -> Task:
    asked = [Sample(id=at, input=f"Letter {at}?", choices=["red", "blue"], target="AB"[at % 2]) for at in range(2)]
    return Task(dataset=asked, solver=generate(), scorer=match())


@task
def look() -> Task:
    shown = [ContentText(text="What is shown? " * 20), ContentImage(image=f"data:image/png;base64,{PIXEL}")]
    return Task(dataset=[Sample(id="one", input=[ChatMessageUser(content=shown)], target="dot")], solver=generate(), scorer=match())


@solver
def answering_agent(url: str = "http://user:hidden@localhost:1") -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.output = ModelOutput.from_content("agent", "dot")
        state.messages.append(state.output.message)
        return state

    return solve


@task
def agent() -> Task:
    return Task(dataset=[Sample(id="one", input="?", target="dot")], solver=answering_agent(), scorer=match())


def main() -> None:
    """Write the logs in both formats, and `expected.json` with what samples_df and read_eval_log say of each."""
    folder = Path(sys.argv[1])
    expected: dict[str, Any] = {}
    likely = [TopLogprob(token=one, logprob=at) for one, at in (("A", -0.1), ("B", -2.5))]
    probabilities = Logprobs(content=[Logprob(**likely[0].model_dump(), top_logprobs=likely)])
    for kind in ("eval", "json"):
        flags["failing"] = True
        common: dict[str, Any] = {"log_dir": str(folder / kind), "log_format": kind, "display": "none"}
        logs = {}
        logs["tiny"] = evaluate(
            tiny(num_fewshot=3), model=model(output(f"answer {at % 3}") for at in range(100)), fail_on_error=False, **common
        )
        failed = evaluate(tiny(style="odd"), model=model(output(f"answer {at % 3}") for at in range(100)), max_samples=1, **common)
        flags["failing"] = False
        logs["failed"] = failed
        logs["retried"] = _retry(failed, common)
        logs["pick"] = evaluate(pick(), model=model(output(f"ANSWER: {one}") for one in "ABAB"), max_tokens=77, **common)
        logs["letters"] = evaluate(letters(), model=model([output("A", probabilities)] * 2), **common)
        logs["look"] = evaluate(look(), model=model([output("a dot")]), **common)
        logs["agent"] = evaluate(agent(), model="none", **common)
        expected[kind] = {name: _expected(log[0].location) for name, log in logs.items()}
    (folder / "expected.json").write_text(json.dumps(expected), encoding="utf-8")


def _retry(failed: list[Any], common: dict[str, Any]) -> list[Any]:
    """A retry makes its model anew from the log: the mock's default answer would ask the network for a tokenizer."""
    from inspect_ai.model._providers.mockllm import MockLLM

    async def count(self: MockLLM, *_: Any, **__: Any) -> int:
        return 10

    vars_of: Any = MockLLM
    vars_of.count_tokens = count
    return eval_retry(failed, **common)


def _expected(location: str) -> dict[str, Any]:
    log = read_eval_log(location, resolve_attachments=True)
    frame = samples_df(location, parallel=False, quiet=True) if log.samples else None
    return {
        "file": Path(location.removeprefix("file://")).name,
        "status": log.status,
        "eval_id": log.eval.eval_id,
        "task_id": log.eval.task_id,
        "frame": [] if frame is None else [{str(name): _value(one) for name, one in row.items()} for row in frame.to_dict("records")],
        "metrics": [
            [score.name, score.scorer, score.reducer, name, _value(metric.value)]
            for score in (log.results.scores if log.results else [])
            for name, metric in score.metrics.items()
        ],
        "completions": {f"{one.id} {one.epoch}": one.output.completion for one in log.samples or []},
        "started": log.stats.started_at,
        "ended": log.stats.completed_at,
    }


def _value(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return (
        value.item()
        if hasattr(value, "item")
        else value
        if isinstance(value, str | int | float | bool | None | list | dict)
        else str(value)
    )


if __name__ == "__main__":
    main()
