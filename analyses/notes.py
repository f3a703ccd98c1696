"""Warnings about groups: each by its name, and those of the same kind in one line where there are many."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMED = 5
"""Groups of the same trouble that get a line each, and that a line about more of them names."""


class Note(NamedTuple):
    """What is wrong with a group."""

    group: str
    what: str
    kind: str = ""
    """The same for all groups with this trouble, where `what` has numbers of the group in it; empty: `what`."""


def merged(notes: Iterable[Note], groups: int) -> list[str]:
    """Lines of warnings in the order of the notes, of `groups` groups in all: `GROUP: what`.

    A trouble of more than five groups is one line, in the place of the first: `12 of 20 groups: kind (the first five, and 7 more)`.
    The tables of the analysis name the others.
    """
    ordered = list(notes)
    kinds: dict[str, list[Note]] = {}
    for note in ordered:
        kinds.setdefault(note.kind or note.what, []).append(note)
    lines = []
    for note in ordered:
        kind = note.kind or note.what
        some = kinds[kind]
        if len(some) <= NAMED:
            lines.append(f"{note.group}: {note.what}")
        elif note is some[0]:
            named = ", ".join(one.group for one in some[:NAMED])
            lines.append(f"{len(some):,} of {groups:,} groups: {kind} ({named}, and {len(some) - NAMED:,} more)")
    return lines
