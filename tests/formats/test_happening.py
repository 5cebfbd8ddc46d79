"""Doses, changes, onsets, steady states and labels in problem files, and what is stored of them."""

from __future__ import annotations

import pytest

from equifinal.errors import DataError, ModelError
from equifinal.formats.json import problem_from_json, problem_to_json
from equifinal.formats.toml import loads
from equifinal.language.expression import to_text
from equifinal.problem.problem import Problem
from equifinal.words.problem import problem_words

MODEL = '''
[model]
equations = """
gut' = -ka*gut
blood' = ka*gut - ke*blood + leak
conc = scale*blood/V
gut(0) = 0
blood(0) = 0
"""
outputs = ["conc"]
inputs = ["leak"]
EXTRA
[constants]
D = 100
scale = 1
[quantities]
CL = "ke*V"
[parameters]
ka = { prior = "lognormal", meanlog = 0, sdlog = 1, label = "kₐ", unit = "1/h" }
ke = { prior = "lognormal", meanlog = 0, sdlog = 1 }
V = { prior = "lognormal", meanlog = 2, sdlog = 1, unit = "L" }
tlag = { prior = "uniform", lower = 0, upper = 2 }
[noise]
conc = { family = "normal", sd = 1 }
[inputs]
leak = { time = [-1, 0], value = [0, 0.1], interpolation = "step" }
'''
PLAIN = MODEL.replace("EXTRA", "")
DOSE = '[[dose]]\nstate = "gut"\namount = "D"\ntime = 0\nlag = "tlag"\n'


def everything() -> Problem:
    text = PLAIN + DOSE + (
        '[[change]]\ntime = 7\nconstants = { D = "D/2" }\n'
        '[[experiment]]\nname = "a"\n[experiment.data]\ntime = [1, 2]\nconc = [3, 4]\n'
        '[[experiment.dose]]\nstate = "blood"\namount = 10\nduration = 2\nevery = 12\ncount = 6\n'
        '[[experiment]]\nname = "b"\nstart = "tlag - 1"\nconstants = { scale = 2 }\n'
        '[experiment.data]\ntime = [-1, 2]\nconc = [3, 4]\n'
        '[[experiment.change]]\ntime = "3*tlag"\nset = { gut = 0 }\nadd = { blood = "D" }\nfirst = true\n'
        '[[experiment]]\nname = "c"\ninitial = "steady state"\n'
        'before = { constants = { scale = 3 }, inputs = { leak = "ka" } }\n'
        '[experiment.data]\ntime = [1, 2]\nconc = [3, 4]\n'
        '[labels]\ntime = { unit = "h" }\nconc = { label = "concentration", unit = "mg/L" }\nCL = "clearance"\n'
    )  # fmt: skip
    return loads(text, name="everything")


def test_tables_say_what_happens() -> None:
    a, b, c = (experiment.model for experiment in everything().experiments)
    assert [to_text(event.time) for event in a.events][:3] == ["7", "tlag", "0"]
    assert len(a.events) == 2 + 12
    assert list(a.levels) == ["D", "infusion_blood"]
    assert to_text(b.onset) == "tlag - 1"
    assert b.constants["scale"] == 2
    assert b.events[1].first
    assert c.before is not None
    assert to_text(c.before.rhs[1]) == "ka*gut - ke*blood + ka"


def test_inputs_before_are_those_just_before_time_zero() -> None:
    problem = loads(MODEL.replace("EXTRA", 'initial = "steady state"') + DOSE)
    assert problem.model.before is not None
    assert to_text(problem.model.before.rhs[1]) == "ka*gut - ke*blood + 0"


def test_what_is_stored_is_the_same_problem() -> None:
    problem = everything()
    again = problem_from_json(problem_to_json(problem))
    assert again.fingerprint() == problem.fingerprint()
    assert again.labels == problem.labels
    for stored, given in zip(again.experiments, problem.experiments, strict=True):
        for field in ("levels", "events", "onset", "parameters", "trajectories", "initial"):
            assert getattr(stored.model, field) == getattr(given.model, field)
        assert (stored.model.before is None) == (given.model.before is None)
    assert again.experiments[2].model.before == problem.experiments[2].model.before
    assert problem_to_json(again) == problem_to_json(problem)


def test_functions_and_conditions_are_stored() -> None:
    text = "x' = on*cos(2*t)^2 + max(x, k^a) - log10(x)\non = (t < 4)\nx(0) = exp(-a)\n"
    text += "z = piecewise(1, t <= a and t > 1, 2)"
    problem = loads(f'[model]\nequations = """{text}"""\noutputs = ["x", "z"]\n')
    again = problem_from_json(problem_to_json(problem))
    assert again.model == problem.model
    assert again.fingerprint() == problem.fingerprint()


FINGERPRINTS = [
    PLAIN + DOSE,
    PLAIN + DOSE.replace("time = 0", "time = 1"),
    PLAIN + DOSE.replace('"D"', '"2*D"'),
    PLAIN + DOSE + "first = true\n",
    PLAIN + DOSE + "duration = 1\n",
    PLAIN + DOSE + "duration = 2\n",
    MODEL.replace("EXTRA", "start = 1") + DOSE,
    MODEL.replace("EXTRA", "start = 2") + DOSE,
    MODEL.replace("EXTRA", 'initial = "steady state"') + DOSE,
    MODEL.replace("EXTRA", 'initial = "steady state"\nbefore = { inputs = { leak = 1 } }') + DOSE,
    MODEL.replace("EXTRA", 'initial = "steady state"\nbefore = { constants = { scale = 2 } }').replace(
        "+ leak", "+ scale*leak"
    )
    + DOSE,
    PLAIN + DOSE + "[[change]]\ntime = 1\nconstants = { scale = 2 }\n",
    PLAIN + DOSE + "[[change]]\ntime = 1\nconstants = { scale = 3 }\n",
]


def test_a_fingerprint_is_of_everything_that_happens() -> None:
    assert len({loads(text).fingerprint() for text in FINGERPRINTS}) == len(FINGERPRINTS)


def test_labels_do_not_change_it() -> None:
    assert loads(PLAIN + DOSE + '[labels]\nCL = "x"\n').fingerprint() == loads(PLAIN + DOSE).fingerprint()


def test_titles() -> None:
    problem = everything()
    assert problem.title("ka") == "kₐ (1/h)"
    assert problem.title("V") == "V (L)"
    assert problem.title("t") == "time (h)"
    assert problem.title("CL") == "clearance"
    assert problem.title("conc", unit=False) == "concentration"
    assert problem.title("ke") == "ke"


def test_check_says_what_happens() -> None:
    words = problem_words(everything())
    assert "at t = 0, 12, ..., 60 (6 times): infusion_blood rises by 5" in words
    assert "at t = 7: D becomes D/2" in words
    assert "at t = tlag: D is added to gut" in words
    assert "starts at t = tlag - 1" in words
    assert "starts from rest, with scale = 3, leak = ka" in words or "starts from rest, with leak = ka" in words
    assert "at t = 3*tlag: gut becomes 0, D is added to blood, before an observation at that time" in words


EXPERIMENT = "[[experiment]]\n"
WRONG = [
    (DOSE.replace("gut", "guts"), r"\[\[dose\]\] number 1: 'guts' is not a state; did you mean 'gut'"),
    (DOSE + DOSE.replace("amount", "amout"), r"\[\[dose\]\] number 2: .*'amout'; did you mean 'amount'"),
    (DOSE.replace("time = 0", "time = [2, 1]"), "number 1: time, entry 2: 1 comes after 2"),
    (DOSE.replace("time = 0", "time = -2"), "time -2 is negative"),
    (DOSE.replace('"tlag"', '"tlg"'), "number 1: unknown name 'tlg'; did you mean 'tlag'"),
    (DOSE.replace('"tlag"', '"a while"'), "lag, column 3"),
    (DOSE.replace("time = 0\n", ""), "needs time"),
    (DOSE.replace('state = "gut"\n', ""), "needs state"),
    (DOSE.replace("time = 0", "every = 12"), "every needs count"),
    (DOSE + "duration = 2\nrate = 3\n", "leave one out"),
    (DOSE.replace("[[dose]]", "[dose]"), r"written as \[\[dose\]\]"),
    ("[[change]]\nconstants = { D = 1 }\n", r"\[\[change\]\] number 1: needs time"),
    ("[[change]]\ntime = 1\nconstants = { DD = 1 }\n", "'DD' is not a constant that can change; did you mean 'D'"),
    ("[[change]]\ntime = 1\nset = { gut = 'nothing' }\n", "unknown name 'nothing'"),
    ("[[change]]\ntime = 1\nsets = { gut = 0 }\n", "unknown key 'sets'; did you mean 'set'"),
    (DOSE + "[labels]\nconcc = 'x'\n", "nothing named 'concc' to label; did you mean 'conc'"),
    ("[labels]\nconc = { unit = 3 }\n", r"\[labels\] conc: unit must be text"),
    ("[labels]\nconc = { units = 'h' }\n", "unknown key 'units'; did you mean 'unit'"),
    ("[labels]\nka = 'x'\n", "labelled under .parameters. already"),
    (EXPERIMENT + "[[experiment.dose]]\nstate = 'gut'\ntime = 0\n",
     r"\[\[experiment\]\] number 1: \[\[experiment.dose\]\] number 1: needs an amount"),
    (EXPERIMENT + "initial = 'at rest'\n", 'initial must be "steady state", not'),
    (EXPERIMENT + "before = { constants = { D = 1 } }\n", 'add initial = "steady state"'),
    (EXPERIMENT + "initial = 'steady state'\nbefore = { constant = { D = 1 } }\n", "before: it has .* 'constant'"),
    (EXPERIMENT + "initial = 'steady state'\nbefore = { constants = { DD = 1 } }\n", "'DD' is not a constant"),
    (EXPERIMENT + "initial = 'steady state'\nbefore = { inputs = { leek = 1 } }\n", "'leek' is not an input"),
    (EXPERIMENT + "start = 'tt0'\n", "number 1: start: unknown name 'tt0'"),
    (EXPERIMENT + "start = 'blood'\n", "onset depends on 'blood'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_mistakes_are_told_with_their_place(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        loads(PLAIN + text, file="p.toml")
    assert str(caught.value).startswith("p.toml: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[[change]]\ntime = 3\nset = { gut = 'gut/(ka - ka)' }\n",
            "event at time 3, which sets 'gut', divides by zero",
        ),
        (
            "[[change]]\ntime = 3\nset = { gut = 'gut + log(1 - 3)' }\n",
            r"'gut', contains log\(1 - 3\), which is not a number",
        ),
        ("[[change]]\ntime = 'sqrt(ka)/(D - D)'\nset = { gut = 0 }\n", "the time of an event, .*, divides by zero"),
    ],
)
def test_what_is_not_a_number_at_an_event(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        loads(PLAIN + text, file="p.toml")
    assert str(caught.value).startswith("p.toml: ")


def test_a_steady_state_has_no_initial_values() -> None:
    text = MODEL.replace("EXTRA", 'initial = "steady state"')
    with pytest.raises(DataError, match="every experiment starts at a steady state"):
        loads(text + "[[experiment]]\ninitial = { gut = 3 }\n")
    with pytest.raises(DataError, match=r"\[model\] initial must be"):
        loads(MODEL.replace("EXTRA", "initial = { gut = 3 }"))


def test_times_before_zero_need_an_onset() -> None:
    data = "[data]\ntime = [-1, 1]\nconc = [1, 2]\n"
    with pytest.raises(DataError, match="observed at time -1; the model starts at time 0"):
        loads(PLAIN + data)
    assert loads(MODEL.replace("EXTRA", 'start = "tlag"') + data).experiments[0].times()[0] == -1
