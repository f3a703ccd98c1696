"""Image clusters of the questions of the ceiling analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from analyses.answers import AskedQuestions, objects
from analyses.clusters import find_clusters
from analyses.cohort import select, statement
from analyses.identity import places

if TYPE_CHECKING:
    import numpy.typing as npt

    from analyses.ceiling.observations import Questions
    from analyses.session import StarSession


def clusters_of(session: StarSession, questions: Questions) -> npt.NDArray[np.int64]:
    """The image cluster of each question (`analyses.clusters.Clusters`); reads the materialised table `cohort`."""
    columns = select(session.connection, statement("ceiling_images"), where="answers")
    at = places(questions.ids, np.ma.getdata(columns["question_id"]))
    text = {name: objects(columns[name])[at] for name in ("suite", "image_key", "pair_key")}
    return find_clusters(AskedQuestions(text=text | {"benchmark": questions.benchmark}, n_options=questions.n_options)).of_question
