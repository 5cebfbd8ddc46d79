"""What Sphinx cannot know by itself: where public names live, and what the commands say of themselves."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_id

import equifinal
from equifinal.cli.app import app as command_line


class Commands(SphinxDirective):
    """A section with the help of each command, as a terminal shows it."""

    def run(self) -> list[nodes.Node]:
        from typer.testing import CliRunner

        names = [info.name or info.callback.__name__ for info in command_line.registered_commands if info.callback]
        sections: list[nodes.Node] = []
        for name in names:
            shown = CliRunner().invoke(
                command_line, [name, "--help"], prog_name="equifinal", terminal_width=76, max_content_width=76
            )
            if shown.exit_code:
                raise self.error(f"equifinal {name} --help: {shown.output}")
            section = nodes.section(ids=[make_id(self.env, self.state.document, "", name)], names=[name])
            section += nodes.title(name, name)
            section += nodes.literal_block(shown.output, shown.output.strip("\n"), language="text")
            sections.append(section)
        return sections


def by_public_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.Element) -> Any:
    """A link to ``equifinal.problem.problem.Problem``, or to ``Problem``, leads to ``equifinal.Problem``."""
    public = node.get("reftarget", "").rpartition(".")[2]
    if node.get("refdomain") != "py" or public not in equifinal.__all__:
        return None
    domain = env.domains.python_domain
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", f"equifinal.{public}", node, text)


def parsable(app: Sphinx, what: str, name: str, given: Any, options: Any, signature: str, returns: str) -> Any:
    """A default that a dataclass makes anew is shown as three dots, so that types beside it are recognised."""
    return (signature.replace("<factory>", "..."), returns) if signature else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    app.add_lexer("csv", TextLexer)
    app.connect("autodoc-process-signature", parsable)
    app.connect("missing-reference", by_public_name)
    return {"parallel_read_safe": True}
