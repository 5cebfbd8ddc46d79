"""What is written for other tools has the same likelihood where it can be run, and is valid where that is checked."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equifinal.examples import find_problem
from equifinal.fibre.of_problem import fibre_of
from equifinal.fibre.reparametrised import reparametrised
from equifinal.formats import toml
from equifinal.formats.export.latex import problem_to_latex, to_latex
from equifinal.formats.load import load
from equifinal.formats.petab.writing import problem_to_petab
from equifinal.formats.sbml.writing import model_to_sbml
from equifinal.formats.toml_writing import problem_to_toml
from equifinal.language.lookalikes import names_in
from equifinal.language.parser import parse_expression
from equifinal.posterior.posterior import Posterior
from equifinal.prediction.simulate import simulate
from equifinal.problem.data import Experiment
from equifinal.problem.problem import Problem
from equifinal.studies.exporting import exported
from tests.support.petab import FILES_1, FILES_2, write

# two experiments, relative noise, a definition, numbers by row, several families
TEXT = """
[model]
equations = '''
x' = -k*x/(K + x) + feed
z' = k*x - z^2
total = x + z
y = total*gain
x(0) = x0
z(0) = 0
'''
outputs = ["y", "z"]
[constants]
feed = 0.1
gain = 2
x0 = 3
[parameters]
k = { prior = "lognormal", meanlog = 0, sdlog = 1, upper = 20, nominal = 1.3 }
K = { prior = "loguniform", lower = 0.01, upper = 100, nominal = 2 }
s = { prior = "halfnormal", sd = 1, nominal = 0.2 }
start = { prior = "gamma", shape = 2, rate = 1, nominal = 1.5 }
[[experiment]]
name = "one"
[experiment.noise]
y = { family = "normal", sd = "s", relative = 0.1 }
z = { family = "laplace", scale = "s" }
[experiment.data]
time = [0, 1, 2.5]
y = [5, 4, 3]
z = [nan, 1.2, 1]
[[experiment]]
name = "two"
constants = { feed = 0.5, x0 = "start" }
[experiment.noise]
y = { family = "normal", sd = "s", relative = 0.1 }
z = { family = "laplace", scale = "s" }
[experiment.data]
time = [1, 3]
y = [4, 6]
z = [0.5, 1]
[solver]
rtol = 1e-9
atol = 1e-12
"""


def log_likelihood(problem: Problem) -> float:
    posterior = Posterior(problem)
    theta = np.array([[problem.nominal[name] for name in posterior.parameters]])
    return float(posterior.log_likelihood(theta).values[0])


@pytest.fixture(scope="module")
def problem() -> Problem:
    return toml.loads(TEXT, name="exported")


def test_petab_gives_the_same_posterior(problem: Problem, tmp_path: Path) -> None:
    path = write(tmp_path, problem_to_petab(problem, problem.nominal))
    back = load(path)
    assert log_likelihood(back) == pytest.approx(log_likelihood(problem), abs=2e-4)
    theta = np.array([[problem.nominal[name] for name in problem.parameters]])
    own, its = Posterior(problem), Posterior(back)
    order = [problem.parameters.index(name) for name in its.parameters]
    assert its.log_prior(theta[:, order])[0] == pytest.approx(own.log_prior(theta)[0], abs=1e-9)


@pytest.mark.slow  # the library takes long to import
def test_petab_is_valid(problem: Problem, tmp_path: Path) -> None:
    petab = pytest.importorskip("petab.v2")
    path = write(tmp_path, problem_to_petab(problem, problem.nominal))
    assert not petab.Problem.from_yaml(path).validate()


def test_sbml_is_valid_and_gives_the_same_outputs(problem: Problem, tmp_path: Path) -> None:
    libsbml = pytest.importorskip("libsbml")
    text = model_to_sbml(problem.model, problem.nominal, name="exported")
    document = libsbml.readSBMLFromString(text)
    document.setConsistencyChecks(libsbml.LIBSBML_CAT_UNITS_CONSISTENCY, False)
    document.checkConsistency()
    assert not document.getNumErrors(libsbml.LIBSBML_SEV_ERROR)
    path = tmp_path / "model.xml"
    path.write_text(text)
    back = load(path)
    times = [0.5, 2.0]
    values = {name: back.nominal[name] for name in back.parameters}
    its = simulate(back, values, times=times)[0]
    own = simulate(problem, dict(problem.nominal), times=times)[0]
    for state in ("x", "z"):
        assert its.states[state] == pytest.approx(own.states[state], rel=1e-4)


def test_the_pymc_script_computes_the_same_likelihood(problem: Problem) -> None:
    script = exported(problem, problem.nominal, "pymc")["problem.py"]
    names: dict[str, object] = {"__name__": "exported"}
    exec(compile(script, "exported.py", "exec"), names)
    theta = [problem.nominal[name] for name in problem.parameters]
    assert names["log_likelihood"](theta) == pytest.approx(log_likelihood(problem), abs=1e-5)  # type: ignore[operator]


def test_pymc_builds_the_model_and_evaluates_it(problem: Problem) -> None:
    """Its log probability changes from one point to another as ours does, priors included."""
    pytest.importorskip("pymc", reason="PyMC is not installed; uv run --with pymc pytest runs this")
    names: dict[str, Any] = {"__name__": "exported"}
    exec(compile(exported(problem, problem.nominal, "pymc")["problem.py"], "exported.py", "exec"), names)
    model = names["build_model"]()
    posterior = Posterior(problem)
    nominal = np.array([problem.nominal[name] for name in posterior.parameters])
    theta = np.array([nominal, nominal * [1.1, 0.8, 1.3, 0.9]])
    prior = sum(problem.priors[name].log_density(theta[:, i]) for i, name in enumerate(posterior.parameters))
    ours = prior + posterior.log_likelihood(theta).values
    log_density = model.compile_logp(jacobian=False)
    its = [log_density(_as_pymc_has_it(model, dict(zip(posterior.parameters, row, strict=True)))) for row in theta]
    # PyMC has log K, and K a density 1/K larger
    ours += np.log(theta[:, posterior.parameters.index("K")])
    assert its[1] - its[0] == pytest.approx(ours[1] - ours[0], abs=1e-5)
    assert its[0] == pytest.approx(ours[0], abs=1e-5)


def _as_pymc_has_it(model: Any, values: dict[str, float]) -> dict[str, Any]:
    """Values of its free variables, on the scales on which it has them."""
    import pymc

    found: dict[str, Any] = {}
    for variable in model.free_RVs:
        name = variable.name
        value = np.asarray(np.log(values["K"]) if name == "log K" else values[name])
        transform = model.rvs_to_transforms[variable]
        if transform is not None:
            value = transform.forward(pymc.math.constant(value), *variable.owner.inputs).eval()
        found[model.rvs_to_values[variable].name] = value
    return found


def test_stan_has_every_observation(problem: Problem) -> None:
    text = exported(problem, problem.nominal, "stan")["problem.stan"]
    assert text.count("normal_lpdf") == 5
    assert text.count("double_exponential_lpdf") == 4
    assert text.count("{") == text.count("}")
    assert "real<lower=0.01, upper=100.0> K;" in text


@pytest.mark.slow  # Stan compiles for a minute
def test_stan_evaluates_the_model(problem: Problem) -> None:
    """Its log likelihood is ours, and its log density changes from one point to another as ours does."""
    pytest.importorskip("httpstan", reason="Stan is not installed; uv run --with httpstan --with setuptools runs this")
    from httpstan import models

    program = exported(problem, problem.nominal, "stan")["problem.stan"]
    asyncio.run(models.build_services_extension_module(program, ["-O0"]))
    stan: Any = models.import_services_extension_module(models.calculate_model_name(program))
    posterior = Posterior(problem)
    nominal = np.array([problem.nominal[name] for name in posterior.parameters])
    theta = np.array([nominal, nominal * [1.1, 0.8, 1.3, 0.9]])
    names = ["start_" if name == "start" else name for name in posterior.parameters]  # a word of Stan programs
    free = [stan.transform_inits({}, dict(zip(names, row.tolist(), strict=True))) for row in theta]
    likelihood = posterior.log_likelihood(theta).values
    assert [stan.write_array({}, one, True, False)[-1] for one in free] == pytest.approx(likelihood, abs=1e-5)
    ours = likelihood + posterior.log_prior(theta)
    its = [stan.log_prob({}, one, False) for one in free]
    assert its[1] - its[0] == pytest.approx(ours[1] - ours[0], abs=1e-5)


@pytest.mark.parametrize("name", ["own", "si", "hiv", "influenza", "seasonal"])
def test_stan_is_accepted_by_its_compiler(problem: Problem, name: str, tmp_path: Path) -> None:
    """Syntax and types, by the compiler that comes with httpstan."""
    package = importlib.util.find_spec("httpstan")
    if package is None or package.origin is None:
        pytest.skip("Stan's compiler is not installed; uv run --with httpstan pytest runs this")
    chosen = problem if name == "own" else load(find_problem(name))
    middle = {p: float(prior.quantile(0.5)) for p, prior in chosen.priors.items()}
    path = tmp_path / "problem.stan"
    path.write_text(exported(chosen, middle | dict(chosen.nominal), "stan")["problem.stan"])
    compiler = Path(package.origin).parent / "stanc"
    done = subprocess.run([compiler, path, "--o", tmp_path / "out.hpp"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_problem_file_gives_the_same_likelihood_to_the_last_digit(tmp_path: Path) -> None:
    for version, files in ((1, FILES_1), (2, FILES_2)):
        imported = load(write(tmp_path / str(version), files))
        back = toml.loads(problem_to_toml(imported), name=imported.name)
        assert log_likelihood(back) == log_likelihood(imported)
        assert back.nominal == imported.nominal


def test_formulas_in_latex() -> None:
    assert to_latex(parse_expression("beta*S/(K_m + S)")) == r"\frac{\beta \, S}{K_{m} + S}"
    assert to_latex(parse_expression("exp(-k*t)")) == r"\exp\left(-k \, t\right)"
    assert to_latex(parse_expression("a^n")) == "a^{n}"
    assert to_latex(parse_expression("abs(x - y)*m_")) == r"\left|x-y\right| \, m"
    assert to_latex(parse_expression("1/(a*(b + c)^2) - 2/3")) == r"\frac{1}{a \, \left(b + c\right)^{2}}-\frac{2}{3}"
    assert to_latex(parse_expression("x_total*k12_in")) == r"x_{\mathrm{total}} \, k_{\mathrm{12,in}}"
    cases = to_latex(parse_expression("piecewise(a, t < 2, b, t >= 5, c)"))
    assert cases == r"\begin{cases} a & t < 2 \\ b & t \ge 5 \\ c & \text{otherwise} \end{cases}"


def test_the_identifiable_model_has_fewer_parameters_and_the_same_outputs() -> None:
    si = load(find_problem("si"))
    values = {name: float(prior.quantile(0.4)) for name, prior in si.priors.items()}
    new = reparametrised(fibre_of(si, outputs_only=True), values, names_in([si.model]))
    assert new is not None
    model = new.model(si.model)
    assert len(model.parameters) == 3
    # at any other parameters with the same combinations as well, whatever the free one was fixed at
    other = {**values, "rho": 0.8 * values["rho"], "beta": 0.8 * values["beta"], "I0": values["I0"] / 0.8}
    other["gamma"] = values["gamma"] - 10_000 * (values["beta"] - other["beta"])
    reduced = Problem((Experiment(model),))
    times = [1.0, 3.0, 7.0]
    for theta in (values, other):
        mine = simulate(si, theta, times=times)[0].outputs["cases"]
        its = simulate(reduced, new.values(theta), times=times)[0].outputs["cases"]
        assert its == pytest.approx(mine, rel=1e-4)


SCALED = """
[model]
equations = '''
c1' = -k1*c1
c1(0) = a
y = s*c1
c2 = k_1 + k1
'''
outputs = ["y"]
[parameters]
k1 = { prior = "loguniform", lower = 0.1, upper = 10 }
k_1 = { prior = "loguniform", lower = 0.1, upper = 10 }
a = { prior = "loguniform", lower = 0.1, upper = 10 }
s = { prior = "loguniform", lower = 0.1, upper = 10 }
"""


def test_names_of_combinations_are_nobody_elses() -> None:
    """A state may be called c1, and a definition c2."""
    problem, values = toml.loads(SCALED), {"k1": 0.5, "k_1": 1.0, "a": 2.0, "s": 3.0}
    new = reparametrised(fibre_of(problem, outputs_only=True), values, names_in([problem.model]))
    assert new is not None
    assert not {"c1", "c2"} & {*new.combinations}
    reduced = Problem((Experiment(new.model(problem.model)),))
    found = simulate(reduced, new.values(values), times=[1.0])[0].outputs["y"]
    assert found == pytest.approx(6 * np.exp(-0.5), rel=1e-5)


def test_names_that_would_look_alike_stand_as_they_are() -> None:
    text = problem_to_latex(toml.loads(SCALED), {})
    assert r"\mathtt{k\_1} + \mathtt{k1}" in text
    assert "c_{1}" in text
