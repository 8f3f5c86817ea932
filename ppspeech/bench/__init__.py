"""`ppspeech bench NAME`: measured figures, side by side with peers in one run.

Every benchmark is a module of this package with `run(quick) -> list[Figure]`; its docstring's first line is what
`ppspeech bench` lists.
"""

NAMES = (
    "eigen",
    "features",
    "filters",
    "gmm",
    "hmm",
    "keyword",
    "large-margin",
    "lattice",
    "paillier",
    "parties",
    "privacy",
    "privacy-sgd",
    "shares",
    "speakers",
)
"""The benchmarks there are."""
