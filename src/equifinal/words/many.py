"""Many fits, a line or a row for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from equifinal.studies.many import Outcome
from equifinal.words.diagnostics import concern_sentence
from equifinal.words.identifiability import UNSEEN, freedom_sentences

VERDICTS = {"good": "sound", "mixed": "with warnings", "bad": "do not use", "failed": "failed"}


def cpu_text(outcome: Outcome) -> str:
    """CPU seconds; of a fit that was resumed, only the last part is known."""
    if math.isnan(outcome.cpu_seconds):
        return "-"
    return f"{'over ' * outcome.resumed}{outcome.cpu_seconds:,.{0 if outcome.cpu_seconds >= 100 else 1}f}"


def freedoms_text(outcome: Outcome) -> list[str]:
    """What no data can show; that nothing changes is said once for all of them, above the table."""
    if outcome.freedoms is None:
        return ["not analysed"]
    return [text.removesuffix(f": {UNSEEN}") for text in freedom_sentences(outcome.freedoms)] or ["none"]


def outcome_line(outcome: Outcome) -> str:
    if outcome.failure:
        return f"{outcome.name}: failed: {outcome.failure}"
    ess = "no" if math.isnan(outcome.ess) else f"at least {outcome.ess:,.0f}"
    return (
        f"{outcome.name}: {VERDICTS[outcome.state]}, {outcome.sampler}, {ess} effective draws, {cpu_text(outcome)} CPU "
        "seconds"
    )


def headline(outcomes: Sequence[Outcome], of: int) -> str:
    """How many are done, and how they went."""
    counts = {state: sum(outcome.state == state for outcome in outcomes) for state in VERDICTS}
    parts = [f"{number} {VERDICTS[state]}" for state, number in counts.items() if number]
    done = f"{len(outcomes)} of {of} problems are done" if len(outcomes) < of else f"{of} problems"
    return f"{done}: {', '.join(parts)}." if parts else f"{done}."


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "source": outcome.source,
        "verdict": VERDICTS[outcome.state],
        "failure": outcome.failure or None,
        "sampler": outcome.sampler or None,
        "effective_draws": outcome.ess,
        "cpu_seconds": outcome.cpu_seconds,
        "resumed": outcome.resumed,
        "freedoms": None if outcome.freedoms is None else freedom_sentences(outcome.freedoms),
        "concerns": [concern_sentence(concern) for concern in outcome.concerns],
        "warnings": list(outcome.said),
    }
