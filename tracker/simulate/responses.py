"""How answers are worded: the text around the option letter, and its length in generated tokens."""

from __future__ import annotations

MAX_NEW_TOKENS = 48
RESPONSES = (("{}", 1), ("{}.", 2), ("({})", 3), ("The answer is {}.", 5))
SHARES = (0.93, 0.04, 0.02, 0.01)
"""How often each of them is used."""
LOOKING = (
    "Looking at the image step by step, first the foreground, then the people beside the building, then the signs above the windows "
    "and last the objects on the ground, the question is which"
)
ENDINGS = ((f"({{}}) {LOOKING}", MAX_NEW_TOKENS), (LOOKING, MAX_NEW_TOKENS), ("None of the options can be made out.", 9))
CUT_OFF, CUT_OFF_UNPARSED, UNPARSED = range(len(RESPONSES), len(RESPONSES) + 3)
"""Wordings of the endings: run into the token limit, with and without an option before it, and a short text without one."""
WORDINGS = (*RESPONSES, *ENDINGS)
