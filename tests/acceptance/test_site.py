"""The documentation site builds without a warning, is complete, and needs no network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import pailot
from pailot.cli.main import COMMANDS
from pailot.settings import SETTINGS
from tools import site

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built() -> Path:
    """The site as `make docs` builds it."""
    assert site.build() == 0
    return site.SITE


def text_of(page: Path) -> str:
    return re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))


def test_every_page_is_built_and_in_the_navigation(built: Path) -> None:
    index = (built / "index.html").read_text(encoding="utf-8")
    for page in site.DOCS.rglob("*.md"):
        name = page.relative_to(site.DOCS).with_suffix(".html").as_posix()
        assert (built / name).exists()
        assert name == "index.html" or f'href="{name}"' in index, f"{name} is not in the navigation"


def test_it_can_be_searched_without_a_server(built: Path) -> None:
    index = (built / "searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").rstrip(")\n;"))
    assert "how-to/run-on-slurm" in found["docnames"]


def test_it_has_a_dark_mode(built: Path) -> None:
    assert "theme-toggle" in (built / "index.html").read_text(encoding="utf-8")


def test_what_code_knows_is_there(built: Path) -> None:
    generated = built / "reference" / "generated"
    commands, settings, names = (text_of(generated / f"{name}.html") for name in ("commands", "settings", "python"))
    assert all(f"usage: pailot {command}" in commands for command in COMMANDS)
    assert all(setting.name in settings for setting in SETTINGS)
    assert all(name in names for name in pailot.__all__ if name != "__version__")
    assert "POST /api/v2/jobs" in text_of(generated / "rest.html")


def test_a_picture_of_another_host_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<a href="https://example.com"></a><img src="https://example.com/x.png"><link href="x.css">')
    assert site.loaded_from_elsewhere(page) == ["https://example.com/x.png"]
