"""A page seen by a real browser: what it logs, what it asks of the network, what is on it, and whether it fits."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed (Debian: apt install chromium)")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--hide-scrollbars",
    "--enable-logging=stderr",
]

FRAME = '<iframe width="{width}" height="800" style="border:0" srcdoc="{page}"></iframe>'
# frames of each width hold the page itself; a script outside of it measures them
HARNESS = """<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><body>{frames}<script>
function measured(frame) {{
  const page = frame.contentDocument, root = page.documentElement;
  for (const folded of page.querySelectorAll("details")) folded.open = true;
  const wide = [...page.querySelectorAll("body *")]
    .filter(e => !e.closest("svg, math, .scroll, pre") || e.matches("svg"))
    .filter(e => e.getBoundingClientRect().right > root.clientWidth + 1).map(e => e.outerHTML.slice(0, 80));
  return {{ width: root.clientWidth, needs: root.scrollWidth, wide,
    ids: [...page.querySelectorAll("section[id]")].map(e => e.id),
    titles: [...page.querySelectorAll("h2")].map(e => e.textContent),
    repeated: [...page.querySelectorAll("[id]")].map(e => e.id).filter((id, i, all) => all.indexOf(id) !== i),
    figures: [...page.querySelectorAll("svg")].filter(e => e.checkVisibility()).map(e => {{
      const box = e.getBoundingClientRect();
      return [e.getAttribute("aria-label"), box.width, box.height]; }}),
    background: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
    scripts: page.scripts.length, text: page.body.innerText }};
}}
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map(measured);
  document.body.innerHTML = "<pre id='found'></pre>";
  document.getElementById("found").textContent = JSON.stringify(found);
}});
</script>"""


@dataclass(frozen=True)
class Seen:
    """One page at one width."""

    width: int
    needs: int
    wide: list[str]
    ids: list[str]
    titles: list[str]
    repeated: list[str]
    figures: list[tuple[str, float, float]]
    background: str
    scripts: int
    text: str


@dataclass(frozen=True)
class Visit:
    """What a visit left behind."""

    seen: list[Seen]
    console: list[str]
    requests: list[str]


def visit(html: str, widths: Sequence[int], folder: Path, *, dark: bool = False) -> Visit:
    assert BROWSER is not None
    frames = "".join(
        f'<iframe width="{w}" height="800" style="border:0" srcdoc="{escape(html)}"></iframe>' for w in widths
    )
    page, log = folder / "harness.html", folder / "net.json"
    page.write_text(HARNESS.format(frames=frames), encoding="utf-8")
    shade = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    options = [f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--virtual-time-budget=10000", shade]
    done = subprocess.run(
        [BROWSER, *FLAGS, *options, "--window-size=1700,900", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=1800,  # a browser that hangs, not one that is slow
    )
    found = re.search(r"<pre id=\"found\">(.*?)</pre>", done.stdout, flags=re.DOTALL)
    assert found, f"the page was not measured: {done.stderr[-800:]}"
    text = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Visit([Seen(**s) for s in json.loads(text)], console, sorted(_requests(log)))


def _requests(log: Path) -> set[str]:
    """Addresses on the network that were asked for; the browser's own are on its maker's hosts."""
    text = log.read_text(encoding="utf-8", errors="replace")
    urls = set(re.findall(r"\"url\":\"((?:https?|wss?|ftp):[^\"]+)\"", text))
    own = re.compile(r"https?://([\w.-]+\.)?(google|googleapis|gstatic|googleusercontent|gvt1|chromium)\.(com|org)\b")
    return {url for url in urls if not own.match(url)}
