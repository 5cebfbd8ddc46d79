from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equifinal.errors import DataError, EquifinalError, ModelError
from equifinal.examples import EXAMPLES, example_path
from equifinal.formats.load import load
from equifinal.formats.toml import loads
from equifinal.problem.problem import Problem

MODEL = '''
[model]
equations = """
x' = -k*x
y = a*x
x(0) = 1
"""
outputs = ["y"]
'''
REST = """
[parameters]
k = { prior = "lognormal", meanlog = 0, sdlog = 1 }
a = { prior = "uniform", lower = 0, upper = 2 }
[noise]
y = { family = "normal", sd = 0.1 }
"""
DATA = """
[data]
time = [1, 2, 3]
y = [0.5, "", 0.1]
"""
NOISE_TOO = """
b = { prior = "halfnormal", sd = 1 }
r = { prior = "halfnormal", sd = 1 }
"""


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_complete(name: str) -> None:
    problem = load(example_path(name))
    problem.require_complete()
    assert problem.name == name


def test_only_the_model_is_needed_for_an_analysis() -> None:
    problem = loads(MODEL)
    assert problem.parameters == ("k", "a")
    with pytest.raises(DataError) as caught:
        problem.require_complete()
    for word in ("prior for 'k'", "prior for 'a'", "data for output 'y'"):
        assert word in str(caught.value)


def test_a_whole_problem() -> None:
    problem = loads(MODEL + REST + DATA + "[sampling]\ndraws = 50\n[solver]\nrtol = 1e-8\n")
    problem.require_complete()
    (entry,) = problem.experiments[0].observations
    assert entry.times.tolist() == [1, 3]
    assert entry.values.tolist() == [0.5, 0.1]
    assert problem.solver.rtol == 1e-8
    assert problem.sampling == {"draws": 50}


def test_data_files(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(
        MODEL + REST + '[data]\nfile = "d.csv"\ncolumns = { time = "day", y = "measured" }\nignore = ["note"]\n'
    )
    (tmp_path / "d.csv").write_text("\ufeff# comment\nday;measured;note\n2;0.2;late\n\n1;0.5;\n3;NA;x\n2;0.3;again\n")
    (entry,) = load(tmp_path / "p.toml").experiments[0].observations
    assert entry.times.tolist() == [1, 2, 2]
    assert entry.values.tolist() == [0.5, 0.2, 0.3]


def test_increments_count_since_the_previous_row() -> None:
    text = (MODEL + REST + DATA).replace("[data]", '[data]\nincrements = ["y"]')
    (entry,) = loads(text).experiments[0].observations
    assert entry.increment
    # the row at time 2 is empty, yet the value at 3 counts since it
    assert entry.previous.tolist() == [0, 2]


def test_experiments_share_parameters_and_differ_in_conditions() -> None:
    text = (
        MODEL.replace("x(0) = 1", "x(0) = dose")
        + "[constants]\ndose = 1\n"
        + REST
        + """
[[experiment]]
name = "low"
[experiment.data]
time = [1, 2]
y = [0.5, 0.2]

[[experiment]]
name = "high"
constants = { dose = 10 }
initial = { x = "dose + extra" }
noise = { y = { family = "student-t", df = 4, scale = "s" } }
data = { time = [1], y = [5] }
"""
    ).replace("[noise]", 'extra = { prior = "halfnormal", sd = 1 }\ns = { prior = "halfnormal", sd = 1 }\n[noise]')
    problem = loads(text)
    problem.require_complete()
    low, high = problem.experiments
    assert (low.name, high.name) == ("low", "high")
    assert float(high.model.constants["dose"]) == 10
    assert problem.parameters == ("k", "a", "extra", "s")
    assert high.observations[0].noise.family == "student-t"


def test_inputs() -> None:
    text = (MODEL.replace("-k*x", "u - k*x") + REST + DATA).replace(
        'outputs = ["y"]', 'outputs = ["y"]\ninputs = ["u"]'
    )
    with pytest.raises(DataError, match="input 'u' has no values"):
        loads(text)
    problem = loads(text + '[inputs]\nu = { time = [0, 1, 2], value = [0, 1, 0], interpolation = "step" }\n')
    assert problem.experiments[0].inputs["u"].interpolation == "step"
    loads(text + "[inputs]\nu = 3\n")
    with pytest.raises(DataError, match=r"\[inputs\] u: .*times must increase"):
        loads(text + "[inputs]\nu = { time = [0, 0], value = [1, 2] }\n")


def test_model_errors_give_the_line_of_the_file() -> None:
    with pytest.raises(ModelError) as caught:
        loads(MODEL.replace("-k*x", "-ex(k)*x"), file="p.toml")
    assert str(caught.value).startswith("p.toml, line 4, column 7: 'ex'")
    with pytest.raises(
        ModelError,
        match=r"kk has no prior: add it to \[parameters\] or .*, or did you mean 'k'\?",
    ):
        loads(MODEL.replace("-k*x", "-kk*x") + REST)


ERRORS = [
    ("", "no \\[model\\]"),
    ("[modle]\n", "unknown key 'modle'; did you mean 'model'"),
    ("[model]\noutputs = ['x']\n", "needs equations"),
    ('[model]\nequations = "x\' = 1"\n', "needs outputs"),
    ("[model]\nequations = \"x' = 1\"\noutputs = 'x'\n", "list of names"),
    ("[model]\nequations = 3\noutputs = ['x']\n", "needs equations"),
    ("model = 3\n", "must be a table"),
    ("[model\n", "not valid TOML.*line 1"),
    (MODEL + REST.replace("uniform", "unifrom"), r"\[parameters\] a: unknown prior 'unifrom'; did you mean 'uniform'"),
    (MODEL + "[parameters]\nk = 3\na = 4\n", r"\[parameters\] k: expected a table"),
    (MODEL + "[parameters]\nk = { lower = 3 }\na = 4\n", r"\[parameters\] k: needs prior"),
    (MODEL + REST + "[parameters.z]\nprior='halfnormal'\nsd=1\n", "appears neither in the equations nor in the noise"),
    (MODEL + REST.replace("y =", "z ="), "'z' is not an output"),
    (MODEL + REST.replace('prior = "uniform"', 'priro = "uniform"'), "'priro' is not known; did you mean 'prior'"),
    (MODEL + REST.replace("family =", "famly ="), "'famly' is not known; did you mean 'family'"),
    (MODEL + REST.replace("sd = 0.1", "sd = '2*foo + x'"), r"y: sd = '2\*foo \+ x', column 3: unknown name 'foo'"),
    (MODEL + REST.replace("sd = 0.1", "sd = '2*(x'"), r"\[noise\] y: normal noise: 'sd', column 5"),
    (MODEL + REST.replace("sd = 0.1", "sd = { colunm = 'se' }"), r"expected { column = \"...\" }"),
    (MODEL + REST.replace("sd = 0.1", "sd = -0.1"), "positive number"),
    (MODEL + REST.replace("sd = 0.1", "sd = 'm*kk'"), "unknown name 'kk'; did you mean 'k'"),
    (
        MODEL.replace("a*x", "m*x") + REST.replace("a =", "m =").replace("sd = 0.1", "sd = 'k*m'"),
        "call the output by its name, 'y'",
    ),
    (MODEL + REST.replace("sd = 0.1", "sd = 'm + 1'") + DATA + 'increments = ["y"]\n', "as 'relative'"),
    (MODEL + REST.replace("sd = 0.1", "sd = { column = 'se' }") + DATA, "no column 'se', from which the noise of 'y'"),
    (MODEL + REST.replace("sd = 0.1", "sd = 1, below = 'low'") + DATA, "'below' must be a number"),
    (MODEL + REST + DATA.replace('""', '"<abc"'), "y, entry 2: '<abc' is not a limit such as '<50'"),
    (MODEL + REST.replace("sd = 0.1", "sd = [1, 2]") + DATA, "'sd' of its noise has 2 numbers for 3 rows"),
    (MODEL + REST.replace("[noise]", "[noises]") + DATA, "did you mean 'noise'"),
    (MODEL + REST + DATA.replace("3]", "3, 4]"), "4 times but 3 values"),
    (MODEL + REST + DATA.replace("0.1]", "'q']"), "entry 3: expected a number"),
    (MODEL + REST + DATA.replace("[1,", "[-1,"), "starts at time 0"),
    (MODEL + REST + DATA.replace("[1,", "[nan,"), "every time must be a number"),
    (MODEL + REST + DATA.replace("0.5", "inf"), "infinite"),
    (MODEL + REST + DATA.replace("y =", "z ="), "unknown key 'z'"),
    (MODEL + REST + "[data]\nfile = 'nowhere.csv'\n", "cannot read"),
    (MODEL + REST + "[data]\nfile = 3\n", "name of a CSV file"),
    (MODEL + REST + "[data]\ny = [3]\n", "needs file"),
    (MODEL + REST + "[data]\ntime = 3\ny = [3]\n", "time must be a list of numbers, not 3"),
    (MODEL + REST + DATA + "increments = 'y'\n", "increments must be a list of names, not 'y'"),
    (MODEL + REST + DATA + "increments = ['z']\n", "increments: 'z' is not an output"),
    (MODEL + REST + "[data]\nfile = 'd.csv'\ncolumns = 3\n", "columns must be a table such as"),
    (MODEL + REST + "[data]\nfile = 'd.csv'\ncolumns = { z = 'q' }\n", "columns: 'z' is not an output"),
    (MODEL + "[parameters]\n" + DATA, "'y' has data but no noise; add to .noise.: y = "),
    (MODEL + "[noise]\ny = 3\n", r"\[noise\] y: expected a table such as"),
    (MODEL + "[labels]\ny = 3\n", r"\[labels\] y: expected text, or a table such as"),
    (MODEL + REST + DATA + "[solver]\nrtol = 3\n", r"\[solver\]: .*'rtol'"),
    (MODEL + REST + DATA + "[solver]\nmethod = 'stif'\n", "did you mean 'stiff'"),
    (MODEL + REST + DATA + "[sampling]\ndrawz = 3\n", "did you mean 'draws'"),
    (MODEL + REST + DATA + "[[experiment]]\n", "each has its own data"),
    (MODEL + REST + "[experiment]\nname='x'\n", "double brackets"),
    (MODEL + REST + "[[experiment]]\nconstants = { q = 1 }\n", "number 1: unknown constant 'q'"),
    (MODEL + REST + "[[experiment]]\nname='a'\n[[experiment]]\nname='a'\n", "name of its own|text of its own"),
    (MODEL + "[quantities]\nR = 'kk'\n", "did you mean 'k'"),
    (MODEL + "[constants]\nk = 'abc'\n", "finite number"),
    (MODEL + "[constants]\nx = 3\n", "declared as a constant"),
]


@pytest.mark.parametrize(("text", "words"), ERRORS)
def test_errors_say_where_and_what(text: str, words: str) -> None:
    with pytest.raises(EquifinalError, match=words) as caught:
        loads(text, file="p.toml").require_complete()
    assert "p.toml" in str(caught.value) or "still needs" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("time,y\n1,a\n", "line 2, column 'y': 'a' is not a number"),
        ("time,y\n1,0.1,5\n", "line 2: 3 cells"),
        ("time;y\n1;0,1\n", "with a point"),
        ("time,y\n,3\n", "a time is missing"),
        ("time,y\n1,inf\n", "not a finite number"),
        ("time,Y\n1,2\n", "did you mean 'y'"),
        ("time,y,y\n1,2,3\n", "appears twice"),
        ("day,y\n1,2\n", "did you mean|no column 'time'|not an output"),
        ("time\n1\n", "no output has a column"),
        ('time,y\n1,"2\n', "not valid CSV"),
    ],
)
def test_bad_data_files(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "p.toml").write_text(MODEL + REST + '[data]\nfile = "d.csv"\n')
    (tmp_path / "d.csv").write_text(content)
    with pytest.raises(DataError, match=words):
        load(tmp_path / "p.toml")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        load(tmp_path / "none.toml")
    with pytest.raises(DataError, match="is a folder"):
        load(tmp_path)
    (tmp_path / "binary.toml").write_bytes(bytes(range(128, 256)))
    with pytest.raises(DataError, match="UTF-8"):
        load(tmp_path / "binary.toml")
    with pytest.raises(DataError):
        load("\0")
    with pytest.raises(DataError, match=r"nested too deeply|not valid"):
        loads("a = " + "[" * 5000)


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=5) | st.just("normal"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("kaxy"), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from(
        ["constants", "quantities", "parameters", "noise", "data", "inputs", "experiment", "solver", "sampling"]
    ),
    st.dictionaries(st.sampled_from(["k", "a", "x", "y", "time", "file", "name", "rtol", "seed"]), junk, max_size=3)
    | junk,
)
def test_no_table_leads_anywhere_but_to_a_problem_or_an_error(table: str, content: object) -> None:
    from equifinal.formats import toml as reader

    document = {"model": {"equations": "x' = -k*x\ny = a*x", "outputs": ["y"]}, table: content}
    try:
        assert isinstance(reader._problem(document, Path("."), "p"), Problem)
    except EquifinalError as error:
        assert str(error)


def test_irregular_and_replicated_times_make_one_grid() -> None:
    text = MODEL + REST + "[data]\ntime = [0, 0, 2.5, 1]\ny = [1, 1.1, 0.2, 0.5]\n"
    experiment = loads(text).experiments[0]
    np.testing.assert_array_equal(experiment.grid(), [0, 1, 2.5])
    assert experiment.size == 4


# --- noise by row, by expression, with limits ---


def test_numbers_from_columns_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("time,y,se,loq\n3,0.1,0.3,\n1,<0.5,0.1,0.2\n2,,,\n4,0.05,0.4,0.2\n5,>9,0.5,0.2\n")
    noise = "sd = { column = 'se' }, below = { column = 'loq' }"
    text = MODEL + REST.replace("sd = 0.1", noise) + "[data]\nfile = 'd.csv'\n"
    (entry,) = loads(text, folder=tmp_path).experiments[0].observations
    assert entry.times.tolist() == [1, 3, 4, 5]
    assert entry.values.tolist() == [0.5, 0.1, 0.2, 9]
    assert entry.censored.tolist() == [-1, 0, -1, 1]
    assert entry.noise.arguments == {"sd": (0.1, 0.3, 0.4, 0.5)}
    with pytest.raises(DataError, match="no column 'sem', from which the noise of 'y' takes 'sd'"):
        loads(text.replace("'se'", "'sem'").replace("[data]", "[data]\nignore = ['se']"), folder=tmp_path)


@pytest.mark.parametrize(
    ("cell", "words"),
    [("<abc", "line 2, column 'y': '<abc' is not a limit"), ("<", "'<' is not a limit"), ("<1_0", "not a limit")],
)
def test_cells_that_are_no_limits(tmp_path: Path, cell: str, words: str) -> None:
    (tmp_path / "d.csv").write_text(f"time,y\n1,{cell}\n")
    with pytest.raises(DataError, match=words):
        loads(MODEL + REST + "[data]\nfile = 'd.csv'\n", folder=tmp_path)


def test_columns_of_inline_data() -> None:
    noise = "sd = { column = 'se' }"
    text = MODEL + REST.replace("sd = 0.1", noise) + DATA + "se = [0.1, '', 0.3]\n"
    (entry,) = loads(text).experiments[0].observations
    assert entry.noise.arguments == {"sd": (0.1, 0.3)}
    (silent,) = loads(text, data=False).experiments[0].observations
    assert silent.noise.arguments == {"sd": ()}


def test_what_expressions_say_of_an_experiment() -> None:
    """Parameters enter as themselves; a state that is no output is seen through the noise."""
    with_state = (
        MODEL.replace("outputs", "# outputs").replace("y = a*x", "y = a*x\nz' = x - z\nz(0) = 0") + 'outputs = ["y"]\n'
    )
    rest = REST.replace("[noise]", "b = { prior = 'halfnormal', sd = 1 }\n[noise]")
    (seen,) = loads(with_state + rest.replace("sd = 0.1", "sd = 'b + 0.1*m'") + DATA).experiments
    assert seen.noise_parameters == ("b",)
    assert seen.analysed is seen.model
    assert seen.solved.outputs == ("y", "b + 0.1*y")
    (hidden,) = loads(with_state + rest.replace("sd = 0.1", "sd = 'b*z'") + DATA).experiments
    assert hidden.analysed.outputs == ("y", "b*z")
    assert hidden.analysed.parameters == ("k", "a", "b")
    (state,) = loads(with_state + REST.replace("sd = 0.1", "sd = 'z'") + DATA).experiments
    assert state.noise_parameters == ()
    assert state.analysed.outputs == ("y", "z")
    (start,) = loads(with_state + REST.replace("sd = 0.1", "sd = 'x(0)'") + DATA).experiments
    assert start.analysed.outputs == ("y", "x(0)")


def test_scatter_relative_to_a_formula_is_relative_to_the_output() -> None:
    """Written out, a*x would look as if data scattered with a itself, and a could not be told from a scale of x."""
    one, other = (
        loads(MODEL + REST.replace("sd = 0.1", f"sd = 'b + r*{text}'").replace("[noise]", NOISE_TOO + "[noise]") + DATA)
        for text in ("x*a", "m")
    )
    assert one.experiments[0].observations[0].noise == other.experiments[0].observations[0].noise
    assert set(one.experiments[0].noise_parameters) == {"b", "r"}
