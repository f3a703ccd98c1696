"""Readers, in the order in which they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.readers.base import Reader


def all_readers() -> tuple[Reader, ...]:
    """Every reader; the study file's own tables are asked first, the native table last."""
    from tracker.readers import (
        evalscope,
        every_eval_ever,
        helm,
        inspect_ai,
        lighteval,
        lm_eval,
        lmms_eval,
        mlflow,
        native,
        opencompass,
        score_table,
        table,
        vlmevalkit,
    )

    return (
        table.READER,
        score_table.READER,
        mlflow.READER,
        inspect_ai.READER,
        lm_eval.READER,
        lmms_eval.READER,
        vlmevalkit.READER,
        helm.READER,
        evalscope.READER,
        opencompass.READER,
        lighteval.READER,
        every_eval_ever.READER,
        native.READER,
    )


def reader(name: str) -> Reader:
    """The reader of a name."""
    return next(one for one in all_readers() if one.name == name)
