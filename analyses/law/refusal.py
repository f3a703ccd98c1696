"""The error of a study none of whose groups can be fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analyses.cells import PARAMETERS_OF_MODEL, lacking
from analyses.notes import NAMED
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
    """It gives the reasons, five of them where there are more, and says what would help."""
    lacks = {what: mask for resource in resources for what, mask in lacking(study, resource).items()}
    hints = [HINTS[what] for what, mask in lacks.items() if what in HINTS and mask.any()]
    named = [*reasons[:NAMED], *([f"and {len(reasons) - NAMED:,} more"] if len(reasons) > NAMED else [])]
    return AnalysisError(f"no group can be fitted: {'; '.join(named) or 'there is none'}", hint="; ".join(hints) or LEVELS)
