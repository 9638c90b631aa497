"""Settings of the documentation site. `make docs` stages the pages below build/docs and calls Sphinx with this file."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

import pailot

project = "Pailot"
author = "The authors of Pailot"
release = version = pailot.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]

myst_heading_anchors = 4  # links to headings are spelt as GitHub spells them
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["misc.highlighting_failure"]  # console blocks hold messages with quotes, which no lexer of shells can read
default_role = "code"  # docstrings quote code with single backticks
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types stand in the signatures of the source; names below TYPE_CHECKING cannot be resolved

html_theme = "furo"
html_title = f"Pailot {release}"
html_static_path = ["_static"]
html_css_files = ["pailot.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
copybutton_prompt_text = "$ "  # commands are copied without their prompt and without what they print
copybutton_line_continuation_character = "\\"


def _no_types_in_attributes(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep napoleon from taking what stands before a colon in the docstring of an attribute for its type.

    It leaves alone what is quoted twice.
    """
    if what in ("attribute", "data", "property"):
        lines[:] = [re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", line) for line in lines]


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _no_types_in_attributes, priority=400)
