"""A fit with its page."""

from __future__ import annotations

from dataclasses import replace
from warnings import warn

from equifinal.errors import EquifinalError
from equifinal.studies.fit import Fit
from equifinal.studies.folder import REPORT
from equifinal.studies.progress import show_stage


def with_report(done: Fit, *, progress: bool = True) -> Fit:
    """The fit, with a page beside its results unless it was interrupted."""
    if done.meaning is None or done.interrupted:
        return done
    from equifinal.report.page import write_report

    try:
        with show_stage("writing the report", progress):
            page = write_report(done.data, done.path.with_name(REPORT), done.meaning, done.summary, done.concerns)
        return replace(done, report=page)
    except EquifinalError as error:  # the results are safe
        warn(f"no report was written: {error}", stacklevel=2)
        return done
