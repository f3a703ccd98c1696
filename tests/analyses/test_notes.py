"""Warnings of many groups in one line."""

from __future__ import annotations

from analyses.notes import Note, merged


def test_five_groups_with_the_same_trouble_have_a_line_each() -> None:
    assert merged([Note(f"G{i}", f"{i} cells", "few cells") for i in range(5)], 9) == [f"G{i}: {i} cells" for i in range(5)]


def test_six_groups_with_the_same_trouble_share_a_line_in_the_place_of_the_first() -> None:
    notes = [Note("A", "flat"), *(Note(f"G{i}", f"{i} cells", "few cells") for i in range(6)), Note("B", "flat")]
    assert merged(notes, 1234) == [
        "A: flat",
        "6 of 1,234 groups: few cells (G0, G1, G2, G3, G4, and 1 more)",
        "B: flat",
    ]


def test_without_a_kind_the_text_is_what_groups_share() -> None:
    assert merged([Note(f"G{i}", "flat") for i in range(7)], 7) == ["7 of 7 groups: flat (G0, G1, G2, G3, G4, and 2 more)"]
    assert merged([], 3) == []
