"""What is drawn under a trajectory: inputs as the solver sees them, infusions as long as they last, doses."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from equifinal.formats.toml import loads
from equifinal.plots.strips import changes, draw, strips
from equifinal.plots.style import colours
from equifinal.prediction.predict import Band, predict
from equifinal.problem.problem import Problem

TEXT = """
[model]
equations = '''
gut' = -ka*gut
blood' = ka*gut - ke*blood + u + s
gut(0) = 0
blood(0) = 0
y = blood
'''
inputs = ["u", "s"]
outputs = ["y"]

[inputs]
u = { time = [0, 2, 4], value = [1, 3, 0] }
s = { time = [0, 3], value = [2, 5], interpolation = "step" }

[[dose]]
state = "gut"
amount = 10
time = 1

[[dose]]
state = "blood"
rate = 4
duration = 1.5
time = 2

[[change]]
time = 5
set = { gut = 0 }

[parameters]
ka = { prior = "uniform", lower = 1.0, upper = 2.0 }
ke = { prior = "uniform", lower = 1.0, upper = 2.0 }
"""


def band() -> tuple[Problem, Band]:
    problem = loads(TEXT)
    found = predict(problem, np.array([[1.5, 1.2], [1.6, 1.3]]), times=np.linspace(0, 6, 13))
    return problem, found.named("y", problem.experiments[0].name)


def test_strips() -> None:
    problem, of_y = band()
    drawn = {}
    for label, strip in strips(problem, of_y):
        axes = drawn[label] = Figure().subplots()
        draw(axes, label, strip)
    assert list(drawn) == ["u", "s", "dose, gut", "infusion, blood"]
    x, y = drawn["u"].lines[0].get_data()
    np.testing.assert_allclose(np.interp([0, 1, 2, 3, 4, 6], x, y), [1, 2, 3, 1.5, 0, 0])
    x, y = drawn["s"].lines[0].get_data()
    assert (list(x), list(y)) == ([0, 3, 6], [2, 5, 5])
    assert drawn["s"].lines[0].get_drawstyle() == "steps-post"
    assert drawn["dose, gut"].collections[0].get_segments()[0].tolist() == [[1, 0], [1, 10]]
    x, y = drawn["infusion, blood"].lines[0].get_data()
    assert (list(x), list(y)) == ([0, 2, 3.5, 6], [0, 4, 0, 0])
    largest = {label: axes.texts[0].get_text() for label, axes in drawn.items()}
    assert largest == {"u": "3", "s": "5", "dose, gut": "10", "infusion, blood": "4"}
    assert changes(of_y) == [5.0]


def test_colours_of_many_lines_are_different() -> None:
    assert len({tuple(np.atleast_1d(c).tolist()) for c in colours(20)}) == 20
