"""Inspect logs by trackr's reader against inspect_ai's own `samples_df` on the same logs; prints JSON.

    python benchmarks/inspect_logs.py FOLDER [SAMPLES]

Logs that inspect_ai's own writer makes are put into FOLDER unless they are there: `light` (short answers) and `heavy`
(transcripts of some 100 KB, as agents leave them). trackr reads every sample whole, its texts uncut; `samples_df` with its
default columns reads the summaries in the archive alone, whose texts are cut, and the last figure its way to whole samples.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
SHARES = {"light": 1.0, "heavy": 0.1}
"""Sets of logs, and how many of the samples asked for each has."""


def main() -> None:
    """Measure both sets."""
    folder, wanted = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5_000
    figures: dict[str, Any] = {}
    for name, share in SHARES.items():
        figures[name] = measured(written(folder / f"{name}_{wanted}", int(wanted * share), heavy=name == "heavy"))
    print(json.dumps(figures, indent=2))


def measured(folder: Path) -> dict[str, Any]:
    """Samples per second of both ways, the best of five."""
    from inspect_ai.analysis import SampleSummary, samples_df
    from inspect_ai.analysis._dataframe.samples.columns import SampleMessages

    rows, trackr = best(lambda: read(folder), times=5)
    own_rows, own = best(lambda: len(samples_df(str(folder), parallel=False, quiet=True)), times=5)
    _, whole = best(lambda: len(samples_df(str(folder), [*SampleSummary, *SampleMessages], parallel=False, quiet=True)), times=1)
    if rows != own_rows:
        message = f"trackr read {rows} samples, inspect_ai {own_rows}"
        raise RuntimeError(message)
    return {
        "samples": rows,
        "megabytes": round(sum(path.stat().st_size for path in folder.glob("*.eval")) / 1e6, 1),
        "trackr_s": trackr,
        "samples_df_s": own,
        "samples_df_with_messages_s": whole,
        "trackr_samples_per_s": rows / trackr,
        "samples_df_over_trackr (target >= 2)": own / trackr,
        "samples_df_with_messages_over_trackr": whole / trackr,
    }


def read(folder: Path) -> int:
    """All records of the logs below a folder, by trackr's reader."""
    from tracker.batch import Batch
    from tracker.readers.base import Folder
    from tracker.readers.inspect_ai import READER
    from tracker.study import Study

    study = Study.empty()
    found = READER.find(Folder(folder, sorted(path.name for path in folder.iterdir())), study)
    return sum(part.records.num_rows for source in found for part in READER.read(source, study) if isinstance(part, Batch))


def best(call: Callable[[], int], times: int) -> tuple[int, float]:
    """The result, and the shortest time (s)."""
    took, result = [], 0
    for _ in range(times):
        start = time.perf_counter()
        result = call()
        took.append(time.perf_counter() - start)
    return result, min(took)


def written(folder: Path, samples: int, *, heavy: bool) -> Path:
    """Two logs with so many samples together, written once by inspect_ai: a small evaluation of a mock model, its samples repeated."""
    if folder.is_dir():
        return folder
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.log import read_eval_log, write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate

    def answer(number: int) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", f"The answer is {number % 7}, because it is. " * (400 if heavy else 3))
        output.usage = ModelUsage(input_tokens=20, output_tokens=30, total_tokens=50)
        return output

    asked = [Sample(id=f"q{at}", input=f"What is {at}? " * (200 if heavy else 3), target=str(at % 7)) for at in range(20)]
    model = get_model("mockllm/model", custom_outputs=[answer(at * at) for at in range(200)])
    task = Task(dataset=asked, solver=[generate()] * (5 if heavy else 1), scorer=includes(), name="bench")
    (log,) = evaluate(task, model=model, log_dir=str(folder.with_name(f"{folder.name}_seed")), display="none")
    log = read_eval_log(log.location)
    seeds, each = log.samples or [], samples // 2
    partial = folder.with_name(f"{folder.name}.partial")
    partial.mkdir(parents=True, exist_ok=True)
    for part in range(2):
        log.samples = [seeds[at % len(seeds)].model_copy(update={"id": f"q{at}", "uuid": f"{part}-{at}"}) for at in range(each)]
        log.eval.eval_id = f"bench-{part}"
        write_eval_log(log, str(partial / f"2026-01-0{part + 1}T00-00-00-00-00_bench_{part}.eval"))
    partial.rename(folder)
    return folder


if __name__ == "__main__":
    main()
