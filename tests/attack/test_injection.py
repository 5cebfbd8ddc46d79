"""Markup in every text that a user may choose: it is shown, in pages, figures and exports, and never obeyed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from equifinal.formats.toml import loads
from equifinal.report.page import write_report
from equifinal.studies.exporting import exported
from equifinal.studies.sample import sample
from tests.support.chromium import needs_chromium, visit

# what runs in a page sets its title or logs; what is obeyed by LaTeX reads or writes files
PAYLOADS = (
    "<script>console.error('ran')</script>",
    "\"><img src=x onerror=console.error('ran')>",
    "'><svg onload=console.error('ran')>",
    "]]></style><script>console.error('ran')</script>",
    "--><iframe srcdoc='<script>parent.console.error(1)</script>'>",
    "</title></svg><a href=javascript:alert(1)>x",
    "{{ 7*191 }}{% raw %}<math><mtext><style><img onerror=ran()>",
    r"$\frac{$ \input{/etc/passwd} \write18{ran} }% _^&#~",
)
PROBLEM = '''
[model]
equations = """
x' = -k*x
y = s*x
z = x/s
x(0) = a
"""
outputs = ["y", "z"]
[quantities]
half = "0.693/k"
[parameters]
k = {{ prior = "uniform", lower = 0.1, upper = 2, label = {p0}, unit = {p1} }}
s = {{ prior = "lognormal", meanlog = 0, sdlog = 1, label = {p2}, unit = {p3} }}
a = {{ prior = "normal", mean = 2, sd = 1, lower = 0, label = {p4}, unit = {p5} }}
[labels]
t = {{ label = {p6}, unit = {p7} }}
y = {{ label = {p7}, unit = {p0} }}
z = {{ label = {p5}, unit = {p6} }}
x = {{ label = {p1}, unit = {p2} }}
half = {{ label = {p3}, unit = {p4} }}
[noise]
y = {{ family = "normal", sd = 0.2 }}
z = {{ family = "normal", sd = 0.2 }}
[[experiment]]
name = {p0}
data = {{ time = [0, 1, 4], y = [1.9, 1.1, 0.1], z = [1.8, 1.0, 0.2] }}
[[experiment]]
name = {p7}
data = {{ time = [0.5, 2], y = [1.6, 0.8], z = [1.5, 0.9] }}
'''


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    texts = {f"p{i}": _quoted(text[:80]) for i, text in enumerate(PAYLOADS)}
    problem = loads(PROBLEM.format(**texts), name=PAYLOADS[0] + PAYLOADS[1])
    data = sample(problem, sampler="random-walk", chains=2, warmup=100, draws=100, progress=False)
    data.attrs |= {"source": PAYLOADS[1], "folder": PAYLOADS[3]}  # names of files, for the commands to run next
    path = write_report(data, tmp_path_factory.mktemp("page") / "report.html")
    values = {"k": 1.0, "s": 1.0, "a": 2.0}
    for to in ("latex", "stan", "pymc"):
        for name, text in exported(problem, values, to).items():
            (path.parent / name).write_text(text)
    return str(path)


def test_markup_is_shown_and_not_obeyed(page: str) -> None:
    text = Path(page).read_text()
    assert not re.search(r"<(script|iframe|img|object|embed|base|meta http)\b", text.replace('<img src="data:', ""))
    assert not re.search(r"<[^>]*\son\w+\s*=", text)
    assert "javascript:" not in re.sub(r">[^<]*<", "><", text)
    assert "1337" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.slow
@needs_chromium
def test_nothing_of_it_runs_in_a_browser(page: str, tmp_path: Path) -> None:
    found = visit(Path(page).read_text(), (1000,), tmp_path)
    assert found.console == []
    assert found.requests == []
    assert found.seen[0].scripts == 0
    assert "<script>console.error('ran')</script>" in found.seen[0].text


def test_exports_hold_it_as_text(page: str) -> None:
    folder = Path(page).parent
    tex = (folder / "problem.tex").read_text()
    assert not re.search(r"(?<!\\textbackslash)(?<!\{)\\(input|write18)\b", tex)
    for path in folder.glob("*.py"):
        compile(path.read_text(), str(path), "exec")
    assert not re.search(r"^(?!\s*//).*console", (folder / "problem.stan").read_text(), re.MULTILINE)
