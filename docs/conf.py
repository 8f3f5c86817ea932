"""How the site is built: `make docs`. Nothing is fetched, here or by a reader's browser."""

import sys
from pathlib import Path

import ppspeech

sys.path.insert(0, str(Path(__file__).parent))

project = "ppspeech"
author = "The ppspeech developers"
copyright = author
version = release = ppspeech.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "made",  # what pages say of doors, commands and protocols, written from the package itself
]

exclude_patterns = ["results/*.jsonl"]

# Docstrings and Markdown: a single backtick is code.
default_role = "literal"
myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 3
# Formulas are Unicode text and code blocks: no wheel brings MathJax, and nothing comes from another host.
myst_dmath_double_inline = False
smartquotes = False  # `--option` in a sentence is no dash

# Notebooks keep what they printed; tests run them.
nb_execution_mode = "off"

napoleon_use_ivar = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 160
add_module_names = False
toc_object_entries = False  # each page of a door begins with a table of what it offers

html_theme = "pydata_sphinx_theme"
html_title = "ppspeech"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
# Of examples in Python only what is typed is copied; of commands, everything.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos"
