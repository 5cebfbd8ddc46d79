"""Sections on what is given before a fit: the model, what can be known, data and priors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equifinal.errors import EquifinalError
from equifinal.language.expression import fractional, number_text
from equifinal.language.happening import happening_lines
from equifinal.plots import identifiability
from equifinal.prediction.predict import check, predict, prior_rows
from equifinal.problem.problem import Problem
from equifinal.report.mathml import block, equation, mathml, name_mathml, rate
from equifinal.report.rendering import Figures
from equifinal.report.trajectories import MOST_PANELS, MOST_WIDE, output_figure
from equifinal.report.typeset import label_of, safe
from equifinal.results.conformity import foreseen
from equifinal.results.meaning import Meaning
from equifinal.words.conformity import discord_sentences
from equifinal.words.identifiability import advice_sentence, design_sentences, freedom_sentences, headline, sureness
from equifinal.words.problem import problem_facts

if TYPE_CHECKING:
    pass


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
        "equations": safe(equations),
        "definitions": safe(definitions),
        "outputs": safe(outputs),
        "starts": safe(starts),
        "constants": constants,
        "inputs": list(model.inputs),
        "quantities": safe(quantities),
        "experiments": facts["experiments"] if several else [],
        "happening": [] if several else happening_lines(model),
        "text": facts["equations"],
    }


def knowable(meaning: Meaning, figures: Figures) -> dict[str, Any]:
    analysis = meaning.identifiability
    return {
        "exact": analysis.is_exact,
        "headline": headline(analysis),
        "complete": analysis.complete,
        "diagram": figures(
            "Which parameters and quantities can be identified, and which combinations ideal data determine",
            lambda: identifiability.draw_identifiability(analysis, meaning.problem.quantities),
        ),
        "combinations": safe([block(mathml(fractional(c))) for c in analysis.determined]),
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
    priors = [
        {
            "math": safe([block(name_mathml(n))])[0],
            "label": label_of(problem, n),
            "prior": str(p),
            "scale": p.coordinate,
        }
        for n, p in problem.priors.items()
    ]
    theta = prior_rows(problem)
    try:
        before, checks = predict(problem, theta), check(problem, theta)
    except EquifinalError:  # some priors reach where nothing can be solved
        return {"priors": priors, "data": data, "before": [], "wide": True, "failed": "All prior draws", "told": []}
    outputs = [b for b in before.bands if b.kind == "output"][:MOST_PANELS]
    panels = [
        output_figure(
            figures, f"What the prior alone predicts for {b.name}", problem, before, checks, b, len(outputs), True
        )
        for b in outputs
    ]
    failed = f"{before.failed} of {before.draws} prior draws" if before.failed else ""
    told = discord_sentences(foreseen(problem, checks))
    wide = len(outputs) <= MOST_WIDE
    return {"priors": priors, "data": data, "before": panels, "wide": wide, "failed": failed, "told": told}
