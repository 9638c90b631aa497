"""Builds the documentation site from docs/ into build/docs/html: strictly, for use without a network.

The pages are staged first: links to files outside docs/ are followed there, titles of code blocks become captions, and the
parts of the reference whose truth is code are made (help texts, settings, REST API, Python API). Then Sphinx builds with
warnings as errors, and the result is searched for anything that a browser would load from another host.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pailot.settings import SETTINGS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BUILD = ROOT / "build" / "docs"
STAGED = BUILD / "source"
SITE = BUILD / "html"
EXAMPLE_SETTINGS = ROOT / "deploy" / "pailot.toml"
PROJECT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "STYLE.md")
LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#]*)(?P<anchor>#[^)\s]*)?(?=\))")
FENCED = re.compile(r"^(?P<fence>```+)(?P<language>\w*) title=(?P<title>\S+)$", re.MULTILINE)
LEXERS = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".cfg": "ini", ".json": "json", ".sh": "bash"}
PUBLIC_MODULES = (
    "pailot",
    "pailot.processor",
    "pailot.luigi",
    "pailot.testing",
    "pailot.engines.contract",
    "pailot.engines.traits",
    "pailot.engines.toolkit",
    "pailot.engines.fake",
    "pailot.planning.plugins.plugin_api",
)
"""The modules that users of Pailot import: the reference of names is made from their docstrings."""
GENERATED = {
    "reference/generated/commands.md": "Help texts of all commands",
    "reference/generated/settings.md": "All settings in short",
    "reference/generated/rest.md": "All requests, from the OpenAPI document",
    "reference/generated/python.md": "Python names, from their docstrings",
}


def build() -> int:
    """Stage, build and check. Returns the exit status."""
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.rmtree(SITE, ignore_errors=True)
    stage(STAGED)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(BUILD / "doctrees")]
    if subprocess.run([*command, str(STAGED), str(SITE)], check=False).returncode:
        return 1
    loaded = [f"{page.relative_to(SITE)}: {url}" for page in sorted(SITE.rglob("*.html")) for url in loaded_from_elsewhere(page)]
    for line in loaded:
        print(f"loaded from another host: {line}", file=sys.stderr)
    pages = len(list(SITE.rglob("*.html")))
    print(f"{pages} pages in {(SITE / 'index.html').relative_to(ROOT)}")
    return 1 if loaded else 0


def stage(folder: Path) -> None:
    """Write everything that Sphinx reads to a folder."""
    pages = {page: page.relative_to(DOCS) for page in DOCS.rglob("*") if page.is_file()}
    pages |= {ROOT / name: Path("project") / name for name in PROJECT_PAGES}
    for source, place in pages.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = with_captions(with_links(source, pages, folder))
            if place.as_posix() == "index.md":
                text += "\n" + "\n".join(toctrees(text))
            target.write_text(text, encoding="utf-8")
        else:
            shutil.copyfile(source, target)
    for name, text in generated_pages():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def with_links(source: Path, pages: Mapping[Path, Path], folder: Path) -> str:
    """A page whose links lead to staged files. What is outside docs/ and no page is copied to `files/`."""
    here = pages[source].parent

    def followed(match: re.Match[str]) -> str:
        path, anchor = match["path"], match["anchor"] or ""
        if not path or ":" in path:
            return match[0]
        target = (source.parent / path).resolve()
        if target.is_dir() or not target.exists():
            return match[0] if not target.exists() else os.path.relpath("index.md", here)
        if target not in pages:
            copied = Path("files") / target.relative_to(ROOT)
            (folder / copied).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, folder / copied)
            return os.path.relpath(copied, here)
        return os.path.relpath(pages[target], here) + anchor

    parts = re.split(r"(^```+.*?^```+$)", source.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(followed, part) for part in parts)


def with_captions(text: str) -> str:
    """A page whose titled blocks show their titles."""

    def captioned(match: re.Match[str]) -> str:
        language = LEXERS.get(Path(match["title"]).suffix, match["language"] or "text")
        return f"{match['fence']}{{code-block}} {language}\n:caption: {match['title']}\n"

    return FENCED.sub(captioned, text)


def toctrees(index: str) -> Iterator[str]:
    """The navigation: one tree for each section of the index, with the pages that are listed there."""
    _, *sections = re.split(r"^## ", index, flags=re.MULTILINE)
    for section in sections:
        head, _, body = section.partition("\n")
        names = [name.removesuffix(".md") for name in re.findall(r"^- \[[^]]*\]\(([^)#:]+\.md)\)", body, re.MULTILINE)]
        if not names:
            continue
        yield from ("```{toctree}", ":hidden:", f":caption: {head.strip()}", "", *names)
        if head.strip() == "Reference":
            yield from (f"{title} <{name.removesuffix('.md')}>" for name, title in GENERATED.items())
        yield from ("```", "")
    yield from ("```{toctree}", ":hidden:", ":caption: Project", "")
    yield from (f"project/{name.removesuffix('.md')}" for name in PROJECT_PAGES)
    yield from ("```", "")


# What code knows


def generated_pages() -> Iterator[tuple[str, str]]:
    """Every page that is made from code: its name and its text."""
    writers = (commands, settings, requests, python_names)
    for (name, title), lines in zip(GENERATED.items(), writers, strict=True):
        yield name, f"# {title}\n\n" + "\n".join(lines()) + "\n"


def commands() -> Iterator[str]:
    """What `pailot COMMAND --help` prints, for each command."""
    from pailot.cli.main import COMMANDS, parser_for

    yield "Made from the parsers of the commands. [Command line](../command-line.md) explains them.\n"
    for command in COMMANDS:
        waiting = [parser_for(command)[0]]
        yield f"## {command}\n"
        while waiting:
            parser = waiting.pop(0)
            yield f"```text\n{parser.format_help().rstrip()}\n```\n"
            for action in parser._actions:
                if isinstance(action.choices, dict):
                    waiting += action.choices.values()


def settings() -> Iterator[str]:
    """The table of settings."""
    yield "Made from the list in the code. [Settings](../settings.md) explains them, and how their values are found.\n"
    yield "| setting | kind | default | meaning |\n|---|---|---|---|"
    for each in sorted(SETTINGS, key=lambda setting: setting.name):
        default = "" if each.default in (None, "", (), {}) else f"`{cell(shown(each.default))}`"
        yield f"| `{each.name}` | {each.kind} | {default} | {cell(each.doc)} |"
    yield f"\n## A pailot.toml with every setting\n\n```toml\n{example_settings()}```\n"


def example_settings() -> str:
    """Return a `pailot.toml` with every setting at its default, each commented out."""
    lines = ["# Every setting of Pailot, with its default. `python -m tools.site settings` writes this file.", ""]
    for each in SETTINGS:
        value = each.default if each.default is not None else ""
        spelt = json.dumps(list(value) if isinstance(value, tuple) else value) if value != {} else "{}"
        lines += [f"# {each.doc}", f"# {each.name} = {spelt}", ""]
    return "\n".join(lines)


def shown(value: Any) -> str:
    """A default as a user would write it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def cell(text: str) -> str:
    """A text that can stand in a cell of a table."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def requests() -> Iterator[str]:
    """Every request that a server understands."""
    from pailot.server.openapi import document
    from pailot.server.route_table import ROUTES

    told = document(ROUTES)
    yield "Made from the table that the server itself uses; a server returns the same as JSON at `/openapi.json`."
    yield "[REST API](../rest-api.md) explains tokens, limits and the differences from OpenPAI.\n"
    by_tag: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in told["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append((method.upper(), path, operation))
    for tag, operations in sorted(by_tag.items()):
        yield f"\n## {tag}\n"
        for method, path, operation in operations:
            yield from request(method, path, operation)


def request(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    """One request: what it does, its parameters, its body, what comes back."""
    yield f"### {method} {path}\n"
    yield f"{operation['summary'].rstrip('.')}. {operation.get('description', '')}\n"
    rows = [
        f"| `{each['name']}` | {each['in']} | {cell(str(each['schema'].get('type', each['schema'].get('enum', ''))))} "
        f"| {cell(each.get('description', ''))} |"
        for each in operation.get("parameters", ())
    ]
    if rows:
        yield "\n".join(("| parameter | in | type | meaning |", "|---|---|---|---|", *rows)) + "\n"
    if "requestBody" in operation:
        kinds = operation["requestBody"]["content"]
        named = next(iter(kinds.values()))["schema"].get("$ref", "").rpartition("/")[2]
        yield "Body: " + ", ".join(f"`{kind}`" for kind in kinds) + (f", a *{named}*" if named else "") + ".\n"
    statuses = [f"`{status}` {answer['description']}" for status, answer in operation["responses"].items() if status != "default"]
    yield "Returns " + "; ".join(statuses) + ".\n"


def python_names() -> Iterator[str]:
    """Directives that let Sphinx read the docstrings of everything public."""
    import importlib

    yield "[Python API](../python-api.md) has these names in short.\n"
    for module in PUBLIC_MODULES:
        yield f"## {module}\n"
        names = importlib.import_module(module).__all__
        yield "```{eval-rst}"
        for name in sorted(names):
            value = getattr(importlib.import_module(module), name)
            if isinstance(value, type):
                yield f".. autoclass:: {module}.{name}\n   :members:\n"
            elif callable(value):
                yield f".. autofunction:: {module}.{name}\n"
            elif name != "__version__":
                yield f".. autodata:: {module}.{name}\n   :no-value:\n"
        yield "```\n"


# The result


def loaded_from_elsewhere(page: Path) -> list[str]:
    """Addresses of other hosts that a browser would load with a page. Links that a reader may follow are none."""
    text = page.read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|img|iframe|source|link)\b[^>]*>", text)
    return [url for tag in tags for url in re.findall(r"""(?:src|href)=["']((?:https?:)?//[^"']+)""", tag)]


if __name__ == "__main__":
    if sys.argv[1:] == ["settings"]:
        EXAMPLE_SETTINGS.write_text(example_settings(), encoding="utf-8")
        sys.exit(0)
    os.environ.setdefault("COLUMNS", "100")
    sys.exit(build())
