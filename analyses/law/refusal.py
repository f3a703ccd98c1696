"""The error of a study none of whose groups can be fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyses.cells import PARAMETERS_OF_MODEL, lacking
from tracker.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analyses.cells import CellStudy, ResourceName

HINTS = {
    PARAMETERS_OF_MODEL: "trackr catalog import FILE gives models their parameters",
    "visual_tokens": "records need the field visual_tokens (docs/formats.md names where each format has it)",
    "effective_pixels": "records need the field effective_pixels (docs/formats.md)",
}
LEVELS = "a group needs at least 5 cells and three sizes of model or of image; --by family,suite or --by suite makes larger groups"


def no_group_fitted(study: CellStudy, reasons: Sequence[str], resources: Sequence[ResourceName] = ("tokens",)) -> AnalysisError:
    """It gives the first of the reasons, and says what would help."""
    lacks = {what: mask for resource in resources for what, mask in lacking(study, resource).items()}
    hints = [HINTS[what] for what, mask in lacks.items() if what in HINTS and mask.any()]
    return AnalysisError(
        f"no group can be fitted: {reasons[0] if reasons else 'there is none'}",
        hint="; ".join(hints) or LEVELS,
    )
