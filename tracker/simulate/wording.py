"""Words of the questions: a question text per skill, and options that fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np

_THINGS = (
    "umbrella", "bicycle", "street sign", "backpack", "traffic cone", "bench", "dog", "lamp post", "suitcase", "balloon", "motorcycle", "flag",
    "kiosk", "handbag", "fire hydrant", "scooter", "poster", "trash can", "drone", "helmet", "scarf", "ladder", "shopping cart", "stroller",
    "mailbox", "statue", "awning", "clock", "delivery van", "life buoy", "kite", "guitar case", "water bottle", "price tag", "window box", "oar",
)  # fmt: skip
_PLACES = (
    "in front of the red building", "beside the fountain", "left of the staircase", "near the crossing", "under the balcony", "behind the counter",
    "at the far end of the pier", "next to the parked truck", "in the lower right corner", "on the second floor", "close to the bus stop",
    "by the entrance", "above the shop window", "between the two trees", "on the opposite sidewalk", "at the edge of the field",
)  # fmt: skip
_ANSWERS = {
    "S1": ("red", "blue", "green", "yellow", "white", "black", "orange", "purple", "brown", "gray"),
    "S2": ("OPEN 24H", "No. 17", "EXIT B", "Room 204", "SALE -30%", "Platform 6", "Est. 1924", "Line 12", "Gate C4", "Taxi"),
    "S3": ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "eleven"),
    "S4": ("left", "right", "above", "below", "in front", "behind", "inside", "outside", "upper left", "lower right"),
    "S5": ("a camera", "a book", "a phone", "a cup", "a map", "an umbrella", "a box", "a toy", "a hat", "a lantern"),
    "S6": ("it turns", "it waits", "it is broken", "it leaves", "it is in the way", "it is closed", "it is new", "it is lost", "it is for sale", "it falls"),
}  # fmt: skip
_ASKED = {
    "S1": "What is the color of the {thing} {place}?",
    "S2": "What does the text on the {thing} {place} say?",
    "S3": "How many people stand around the {thing} {place}?",
    "S4": "Where is the {other} with respect to the {thing} {place}?",
    "S5": "What is lying on the {thing} {place}?",
    "S6": "What can be said of the {thing} {place}, judging by the {other}?",
}


class Wording(NamedTuple):
    """A question and as many options as it has."""

    text: str
    options: tuple[str, ...]


def wording(skill: str, n_options: int, random: np.random.Generator) -> Wording:
    """A question that asks for this skill."""
    thing, other = random.choice(len(_THINGS), size=2, replace=False).tolist()
    place = _PLACES[int(random.integers(len(_PLACES)))]
    answers = _ANSWERS[skill]
    chosen = random.choice(len(answers), size=n_options, replace=False).tolist()
    return Wording(_ASKED[skill].format(thing=_THINGS[thing], other=_THINGS[other], place=place), tuple(answers[index] for index in chosen))
