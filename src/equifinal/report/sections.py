"""The content of each section of the report, as plain data for the template."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from equifinal.errors import EquifinalError
from equifinal.identifiability.verdicts import GLOBALLY, LOCALLY, NOT
from equifinal.language.expression import fractional, number_text
from equifinal.language.happening import happening_lines
from equifinal.plots import chains, identifiability, marginals, trajectories
from equifinal.prediction.predict import Check, Predictions, check, predict, prior_rows
from equifinal.problem.problem import Problem
from equifinal.report.mathml import block, equation, mathml, name_mathml, rate
from equifinal.report.rendering import Figures
from equifinal.results import diagnostics
from equifinal.results.meaning import COMBINATION, NOISE, PARAMETER, QUANTITY, Finding, Meaning
from equifinal.words.diagnostics import concern_sentence, sampler_notes
from equifinal.words.identifiability import advice_sentence, design_sentences, freedom_sentences, headline, sureness
from equifinal.words.meaning import (
    bits_text,
    driven_by,
    rounded,
    sentence,
    shrinkage_text,
    spread,
    value_text,
    verdict_word,
    weakest_sentence,
)
from equifinal.words.problem import problem_facts
from equifinal.words.trajectories import BADGES, precision_text

if TYPE_CHECKING:
    from arviz import InferenceData

MOST_CHAINS, MOST_STRIPS, MOST_PANELS = 12, 60, 24


def in_short(
    data: InferenceData,
    meaning: Meaning,
    rows: Mapping[str, diagnostics.Row],
    concerns: list[diagnostics.Concern],
    checks: list[Check],
    verdicts: Any,
) -> dict[str, Any]:
    parameters = meaning.of_kind(PARAMETER, NOISE)
    well = [f.name for f in parameters if f.verdict == GLOBALLY and not (f.weak or f.bounded)]
    bounded = [f.name for f in parameters if f.verdict == GLOBALLY and f.bounded]
    several = [f.name for f in parameters if f.verdict == LOCALLY]
    weak = [f.name for f in parameters if f.weak and f.verdict == GLOBALLY]
    free = [f.name for f in parameters if f.verdict == NOT]
    hidden = sorted({name for (_, name), verdict in verdicts.items() if verdict is False})
    values = [r for r in rows.values() if r["ess_bulk"] == r["ess_bulk"]]
    return {
        "headline": _headline(meaning),
        "determined": [
            {"math": _math(f), "estimate": value_text(f), "weak": f.weak} for f in meaning.of_kind(COMBINATION)
        ],
        "well": well,
        "several": several,
        "weak": weak,
        "bounded": bounded,
        "free": free,
        "quantities_free": [f.name for f in meaning.of_kind(QUANTITY) if f.verdict == NOT],
        "hidden": hidden,
        "coverage": [f"{_place(c.experiment, c.output)} {c.inside_90:.0%}" for c in checks],
        "least_ess": min((min(r["ess_bulk"], r["ess_tail"]) for r in values), default=float("nan")),
        "rhat": max((r["rhat"] for r in values if r["rhat"] == r["rhat"]), default=float("nan")),
        "state": "bad" if any(c.serious for c in concerns) else "mixed" if concerns else "good",
        "sampler": data.attrs["sampler"],
        "drawn": f"{data.posterior.sizes['chain']} × {data.posterior.sizes['draw']:,}",
    }


def _headline(meaning: Meaning) -> str:
    parameters, combinations = meaning.of_kind(PARAMETER), len(meaning.of_kind(COMBINATION))
    counts = {word: sum(f.verdict == word for f in parameters) for word in (GLOBALLY, LOCALLY, NOT)}
    if not counts[NOT]:
        return headline(meaning.identifiability)
    start = f"{counts[GLOBALLY] or 'None'} of the {len(parameters)} parameters can be identified"
    start += f", {counts[LOCALLY]} only up to alternatives" if counts[LOCALLY] else ""
    combined = f"{combinations} combination{'s' * (combinations != 1)} of them"
    if not combinations:
        return f"{start}."
    return f"{start}; so can {combined}." if counts[GLOBALLY] else f"{start}, but {combined} can."


def _tone_of(finding: Finding) -> str:
    if finding.verdict == NOT:
        return "free"
    return "weak" if finding.weak or finding.bounded or finding.verdict == LOCALLY else "known"


def model(problem: Problem) -> dict[str, Any]:
    model, facts = problem.model, problem_facts(problem)
    equations = [equation(rate(x), model.equations[x]) for x in model.states]
    definitions = [equation(name_mathml(n), e) for n, e in model.definitions.items() if n not in model.outputs]
    outputs = [
        equation(name_mathml(y), model.definitions[y]) if y in model.definitions else block(name_mathml(y))
        for y in model.outputs
    ]
    own = model.states if model.before is None else ()
    starts = [equation(name_mathml(f"{x}(0)"), model.initial[x]) for x in own]
    constants = {n: number_text(v) for n, v in model.constants.items()}
    interest = (*model.quantities.items(), *model.trajectories.items())
    quantities = [equation(name_mathml(n), e) for n, e in interest]
    several = len(problem.experiments) > 1
    return {
        "equations": _safe(equations),
        "definitions": _safe(definitions),
        "outputs": _safe(outputs),
        "starts": _safe(starts),
        "constants": constants,
        "inputs": list(model.inputs),
        "quantities": _safe(quantities),
        "experiments": facts["experiments"] if several else [],
        "happening": [] if several else happening_lines(model),
        "text": facts["equations"],
    }


def knowable(meaning: Meaning, figures: Figures) -> dict[str, Any]:
    analysis = meaning.identifiability
    return {
        "headline": headline(analysis),
        "complete": analysis.complete,
        "diagram": figures(
            "Which parameters and quantities can be identified, and which combinations ideal data determine",
            lambda: identifiability.draw_identifiability(analysis, meaning.problem.quantities),
        ),
        "combinations": _safe([block(mathml(fractional(c))) for c in analysis.determined]),
        "functions": list(analysis.functions),
        "design": design_sentences(analysis),
        "constants": {n: number_text(v) for n, v in analysis.constants.items()},
        "increments": sorted({o.output for e in meaning.problem.experiments for o in e.observations if o.increment}),
        "freedoms": freedom_sentences(analysis.freedoms),
        "advice": [advice_sentence(a) for a in analysis.advice],
        "sureness": sureness(analysis, timed=False),
    }


def given(problem: Problem, figures: Figures) -> dict[str, Any]:
    data = []
    for experiment, fact in zip(problem.experiments, problem_facts(problem)["experiments"], strict=True):
        data += [{"experiment": experiment.name} | entry for entry in fact["observations"] if entry["count"]]
    theta = prior_rows(problem)
    try:
        before, checks = predict(problem, theta), check(problem, theta)
    except EquifinalError:  # some priors reach where nothing can be solved
        return {"priors": problem.priors, "data": data, "before": [], "failed": "All prior draws"}
    panels = [
        figures(
            f"What the prior alone predicts for {b.name}",
            lambda b=b: trajectories.draw_outputs(  # type: ignore[misc]
                problem, before, checks, names=[b.name], experiments=[b.experiment], prior=True
            ),
        )
        for b in [b for b in before.bands if b.kind == "output"][:MOST_PANELS]
    ]
    failed = f"{before.failed} of {before.draws} prior draws" if before.failed else ""
    return {"priors": problem.priors, "data": data, "before": panels, "failed": failed}


def said(meaning: Meaning, figures: Figures) -> dict[str, Any]:
    groups = []
    titles = {
        COMBINATION: "Combinations that the data determine",
        PARAMETER: "Parameters",
        NOISE: "Parameters of the noise",
        QUANTITY: "Quantities of interest",
    }
    drawn = 0
    for kind, title in titles.items():
        entries = []
        for finding in meaning.of_kind(kind):
            drawn += 1
            picture = None
            if drawn <= MOST_STRIPS:
                picture = figures(
                    f"Prior and posterior of {finding.name}",
                    lambda f=finding: marginals.plot_marginal(f, meaning.problem),  # type: ignore[misc]
                )
            entries.append(_entry(meaning, finding) | {"picture": picture})
        if entries:
            groups.append({"title": title, "entries": entries})
    return {"groups": groups, "weakest": weakest_sentence(meaning)}


def _doubt(finding: Finding) -> str:
    if finding.verdict != GLOBALLY or finding.kind == NOISE:
        return ""
    return ", barely informed" if finding.weak else ", only bounded" if finding.bounded else ""


def _entry(meaning: Meaning, finding: Finding) -> dict[str, Any]:
    words = sentence(meaning, finding).removeprefix(f"{finding.name}: ").removeprefix("not identifiable. ")
    return {
        "name": finding.name,
        "math": _math(finding),
        "label": _label(meaning.problem, finding),
        "verdict": verdict_word(finding),
        "tone": _tone_of(finding),
        "sentence": words[:1].upper() + words[1:],
        "shrinkage": shrinkage_text(finding.shrinkage),
        "bits": bits_text(finding.information.bits),
        "doubt": _doubt(finding),
        "driven": driven_by(finding),
    }


def table(meaning: Meaning, rows: Mapping[str, diagnostics.Row]) -> list[dict[str, Any]]:
    table_rows = []
    for finding in meaning.findings:
        row = rows.get(finding.name)
        quantiles = [finding.quantile(q) for q in (0.05, 0.5, 0.95)]
        table_rows.append(
            {
                "math": _math(finding),
                "label": _label(meaning.problem, finding),
                "mean": rounded(finding.mean, finding.sd),
                "sd": spread(finding.sd) if finding.sd > 0 else "0",
                "quantiles": [rounded(q, finding.sd, finding.mean) for q in quantiles],
                "verdict": verdict_word(finding),
                "tone": _tone_of(finding),
                "shrinkage": shrinkage_text(finding.shrinkage) or "-",
                "driven": driven_by(finding),
                "ess": "" if row is None or row["ess_bulk"] != row["ess_bulk"] else f"{row['ess_bulk']:,.0f}",
            }
        )
    return table_rows


def fit(problem: Problem, shown: Predictions, checks: list[Check], figures: Figures) -> dict[str, Any]:
    outputs = [b for b in shown.bands if b.kind == "output"][:MOST_PANELS]
    panels = [
        figures(
            f"Fit of {_place(b.experiment, b.name)}: data, median, and bands of 50% and 90%",
            lambda b=b: trajectories.draw_outputs(  # type: ignore[misc]
                problem, shown, checks, names=[b.name], experiments=[b.experiment]
            ),
        )
        for b in outputs
    ]
    checked = {(c.experiment, c.output): c for c in checks}
    pairs_of_panels = []
    for b, panel in zip(outputs, panels, strict=True):
        pairs_of_panels.append(panel)
        if c := checked.get((b.experiment, b.name)):
            label = f"Residuals of {_place(c.experiment, c.output)}"
            pairs_of_panels.append(figures(label, lambda c=c: trajectories.draw_residuals(problem, [c])))  # type: ignore[misc]
    table = [
        {
            "output": _place(c.experiment, c.output),
            "count": c.values.size,
            "inside_50": f"{c.inside_50:.0%}",
            "inside_90": f"{c.inside_90:.0%}",
            "largest": "-" if c.largest != c.largest else f"{c.largest:.1f}",
            "words": _coverage_words(c),
        }
        for c in checks
    ]
    happens = any(b.moments for b in outputs)
    return {
        "panels": pairs_of_panels,
        "table": table,
        "failed": shown.failed,
        "draws": shown.draws,
        "happens": happens,
    }


def _coverage_words(checked: Check) -> str:
    """Say whether the share inside the 90% band could be chance, at the level of 1%."""
    from scipy.stats import binom

    n, inside = checked.values.size, round(checked.inside_90 * checked.values.size)
    if binom.cdf(inside, n, 0.9) < 0.01:
        return "too few inside: the model misses something, or the noise is assumed too small"
    counts = np.array_equal(checked.values, np.round(checked.values))  # then bands hold more than their share
    if n >= 20 and not counts and binom.cdf(round(checked.inside_50 * n) - 1, n, 0.5) > 0.999:
        return "more inside than chance explains: the noise may be assumed too large"
    return "as expected"


def states(problem: Problem, shown: Predictions, verdicts: Any, figures: Figures) -> list[dict[str, Any]]:
    panels = []
    for band in [b for b in shown.bands if b.kind != "output"][:MOST_PANELS]:
        verdict = verdicts.get((band.experiment, band.name))
        place = _place(band.experiment, band.name)
        words = BADGES[verdict]
        picture = figures(
            f"Prediction of {place}, {words}",
            lambda b=band: trajectories.draw_states(  # type: ignore[misc]
                problem, shown, verdicts, names=[b.name], experiments=[b.experiment], said=False
            ),
        )
        panels.append(
            {
                "place": place,
                "words": words,
                "tone": _tone(verdict),
                "precision": precision_text(band),
                "picture": picture,
            }
        )
    return panels


def _tone(verdict: bool | None) -> str:
    return "known" if verdict else "free" if verdict is False else "weak"


def sampler(
    data: InferenceData, rows: Mapping[str, diagnostics.Row], concerns: list[diagnostics.Concern], figures: Figures
) -> dict[str, Any]:
    attributes = data.attrs
    worst = sorted(rows, key=lambda name: np.nan_to_num(rows[name]["ess_bulk"], nan=-1.0))[:MOST_CHAINS]
    names = [name for name in rows if name in worst]
    drawings = {"Trace": chains.plot_traces, "Ranks": chains.plot_ranks, "Autocorrelation": chains.plot_autocorrelation}
    panels = [
        [figures(f"{title} of {n}", lambda n=n, d=draw: d(data, names=[n])) for title, draw in drawings.items()]  # type: ignore[misc]
        for n in names
    ]
    keys = {"ess_bulk": ",.0f", "ess_tail": ",.0f", "iact": ".1f", "mcse_over_sd": ".2%", "rhat": ".3f"}
    return {
        "name": attributes["sampler"],
        "drawn": f"{data.posterior.sizes['chain']} chains of {data.posterior.sizes['draw']:,} draws",
        "accepted": f"{diagnostics.acceptance(data):.1%}",
        "solves": f"{int(attributes['solves']):,}",
        "failed": f"{int(attributes['failed_solves']):,}",
        "notes": [*json.loads(attributes.get("notes", "[]")), *sampler_notes(data)],
        "warnings": [concern_sentence(concern) for concern in concerns],
        "rows": [
            {"name": n, "cells": ["-" if r[k] != r[k] else format(r[k], f) for k, f in keys.items()]}
            for n, r in rows.items()
        ],
        "panels": panels,
        "left_out": len(rows) - len(names),
    }


def again(data: InferenceData) -> dict[str, Any]:
    attributes = data.attrs
    settings = json.loads(attributes["settings"])
    solver, options = settings.pop("solver"), settings.pop("options")
    # with a sampler chosen by itself the same choice is made again, for the same seed
    file = shlex.quote(f"{attributes['problem']}.toml")
    command = f"equifinal fit {file} --seed {attributes['seed']} --chains {settings['chains']}"
    command += f" --draws {settings['draws']} --thin {settings['thin']}"
    sampler = attributes["sampler"]
    if not any(note.startswith(f"{sampler}: ") for note in json.loads(attributes["notes"])):  # it was asked for
        command += f" --sampler {sampler} --warmup {settings['warmup']}"
    return {
        "settings": {"sampler": attributes["sampler"], "seed": attributes["seed"], **settings, **options},
        "solver": solver,
        "versions": json.loads(attributes["versions"]),
        "fingerprint": attributes["fingerprint"],
        "command": command,
    }


# --- small ---


def _place(experiment: str, name: str) -> str:
    return f"{name} [{experiment}]" if experiment else name


def _math(finding: Finding) -> Any:
    from markupsafe import Markup

    if finding.kind != COMBINATION:
        return Markup(block(name_mathml(finding.name)))
    return Markup(block(mathml(fractional(finding.expression))))


def _label(problem: Problem, finding: Finding) -> str:
    """What a name means to its reader: label and unit, where they are given."""
    label = problem.labels.get(finding.name) if finding.kind != COMBINATION else None
    return "" if label is None else ", ".join(text for text in (label.label, label.unit) if text)


def _safe(parts: list[str]) -> list[Any]:
    from markupsafe import Markup

    return [Markup(part) for part in parts]
