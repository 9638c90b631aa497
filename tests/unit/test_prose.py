"""Prose in the source and in the pages keeps to STYLE.md as far as a machine can judge."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pailot"
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY"))])
AVOIDED = re.compile(r"\b(whoever|whomever|whom|nobody|somebody|answers|answered|[Ss]o (?:many|much|often|long) )")
"""Words that make a sentence hard to read for readers of other languages. STYLE.md names better ones."""


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield every docstring, attribute docstring and comment of a module with its line."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for number, line in enumerate(node.value.value.splitlines()):
                yield node.lineno + number, line
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def avoided(path: Path) -> list[str]:
    """Return the places of a module that use an avoided word."""
    text = path.read_text(encoding="utf-8")
    if not AVOIDED.search(text):
        return []
    return [f"{path.relative_to(SOURCE)}:{line}: {words.strip()}" for line, words in prose(text) if AVOIDED.search(words)]


def test_docstrings_and_comments_avoid_words_that_are_hard_to_read() -> None:
    assert not [place for module in sorted(SOURCE.rglob("*.py")) for place in avoided(module)]


def avoided_on_page(text: str) -> list[str]:
    """Return the lines of a page that use an avoided word. What is quoted as code, and blocks of it, are no prose."""
    prose = re.sub(r"^(```+).*?^\1$", lambda block: "\n" * block[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL)
    lines = (re.sub(r"`[^`]*`", "", line) for line in prose.lower().split("\n"))
    return [f"{number}: {line.strip()}" for number, line in enumerate(lines, 1) if AVOIDED.search(line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_avoid_words_that_are_hard_to_read(page: Path) -> None:
    assert not avoided_on_page(page.read_text(encoding="utf-8"))


def test_an_avoided_word_of_a_page_is_found_but_not_in_code() -> None:
    text = "Nobody knows.\n\n```console\n$ echo nobody\n```\nThe server `answers` it.\nSo many of them.\n"
    assert avoided_on_page(text) == ["1: nobody knows.", "7: so many of them."]


@pytest.mark.parametrize("words", ["# nobody knows", '"""Answers it; whoever asks."""', 'X = 1\n"""So many of them."""'])
def test_an_avoided_word_is_found(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "module.py"
    module.write_text(words + "\n", encoding="utf-8")
    monkeypatch.setattr("tests.unit.test_prose.SOURCE", tmp_path)
    assert avoided(module)
