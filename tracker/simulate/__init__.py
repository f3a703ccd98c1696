"""Write the run folders of a study with planted truth."""

from tracker.simulate.spec import PRESETS, StudyPlan, load, preset
from tracker.simulate.study import Form, Report, simulate

__all__ = ["PRESETS", "Form", "Report", "StudyPlan", "load", "preset", "simulate"]
