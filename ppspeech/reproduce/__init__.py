"""`ppspeech reproduce NAME`: results measured again on the real corpora, with plots.

Every experiment is a module of this package with `run(quick, folder) -> list[Figure]`: `folder` is where its pictures
go. The first line of its docstring is what `ppspeech reproduce` lists.
"""

NAMES = (
    "fsdd",
    "audiomnist",
    "speakers",
    "yesno",
    "adult-central",
    "breast-cancer",
    "five-classes",
    "dp-keywords",
    "encrypted-fsdd",
    "adult-parties",
    "speech-parties",
    "eigenvectors",
    "minimax-genki",
    "minimax-emodb",
    "minimax-har",
    "minimax-personal",
    "minimax-audiomnist",
)
"""The experiments there are."""
