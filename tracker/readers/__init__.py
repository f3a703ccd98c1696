"""Readers, in the order in which they are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracker.readers.base import Reader


def all_readers() -> tuple[Reader, ...]:
    """Every reader; the study file's own tables are asked first, the native table last."""
    from tracker.readers import lm_eval, lmms_eval, native, table

    return (table.READER, lm_eval.READER, lmms_eval.READER, native.READER)


def reader(name: str) -> Reader:
    """The reader of a name."""
    return next(one for one in all_readers() if one.name == name)
