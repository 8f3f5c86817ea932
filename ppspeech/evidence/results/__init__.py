"""Measured figures, kept: a store of what commands printed, the page that shows them, and where documents quote them.

A file a command, `docs/results/NAME.jsonl`: a line of provenance, then the command's figures as `--json` prints them.
`ppspeech bench NAME --store` and `ppspeech reproduce NAME --store` write them, `ppspeech report` the rest.
"""

from ppspeech.evidence.results.page import written_page
from ppspeech.evidence.results.provenance import Provenance, measured
from ppspeech.evidence.results.quoted import problems_of, rewritten, unmarked
from ppspeech.evidence.results.shown import Shown, read_shown
from ppspeech.evidence.results.store import Result, Store, add_file, read_store, write_result

__all__ = [
    "Provenance",
    "Result",
    "Shown",
    "Store",
    "add_file",
    "measured",
    "problems_of",
    "read_shown",
    "read_store",
    "rewritten",
    "unmarked",
    "write_result",
    "written_page",
]
