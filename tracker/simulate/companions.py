"""What stands beside the run folders of a simulated study: label file and study file."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.simulate.cells import Study

LABEL_SOURCE = "simulated"
GRID_PATH = r"""[[path]]
pattern = '(?:^|/)px0*(?P<input_size>\d+)/'
input_mode = "fixed"
"""
SWEEP_PATH = r"""[[path]]
pattern = '(?:^|/)(?:max_tiles-0*(?P<max_tiles>\d+)|pixel_cap-0*(?P<pixel_cap>\d+))/source-(?P<source_quality>\w+)/'
input_mode = "native"
"""


def asked(made: Study) -> dict[str, list[int]]:
    """Positions of the questions that some cell asks, by benchmark."""
    places: dict[str, set[int]] = {name: set() for name in made.question_sets}
    for cell in made.cells:
        held = places[cell.benchmark.name]
        if len(held) < cell.benchmark.questions:
            held.update(made.rows(cell).tolist())
    return {name: sorted(held) for name, held in places.items()}


def labels_csv(made: Study) -> str:
    """Domain and skill of every question that is asked and has labels."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["benchmark", "question_key", "scheme", "value", "source"])
    for name, places in asked(made).items():
        questions = made.question_sets[name]
        if questions.template.labels:
            for question in [questions.questions[place] for place in places]:
                writer.writerow([name, question.key, "domain", question.domain, LABEL_SOURCE])
                writer.writerow([name, question.key, "skill", question.skill, LABEL_SOURCE])
    return text.getvalue()


def study_toml(made: Study) -> str:
    """The study file that says how the folders map to the schema. Where runs of a benchmark differ in length it has no number of questions."""
    counts: dict[str, set[int]] = {benchmark.name: set() for benchmark in made.plan.benchmark}
    for cell in made.cells:
        counts[cell.benchmark.name].add(cell.benchmark.questions if cell.setting is None else cell.setting.questions)
    questions = "\n".join(f"{json.dumps(name)} = {min(found)}" for name, found in counts.items() if len(found) == 1)
    paths = [*([GRID_PATH] if made.models else []), *([SWEEP_PATH] if made.swept else [])]
    where = "what is done to images" if made.swept else "the input size"
    head = f'# How trackr reads these folders: {where} is part of the path.\nlabels = ["labels.csv"]\n\n[questions]\n{questions}\n\n'
    return head + "\n".join(paths)
