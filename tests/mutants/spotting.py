"""Mutants of searches as they are served: what a server may learn, what a client may ask for and must be shown."""

from tests.mutants.mutant import mutant

CLIENT, SERVER, TERMS = (f"service/{room}/spotting.py" for room in ("client", "server", "tasks"))
ARCHIVE, SEEK = "service/archive.py", "service/seek.py"
OVER_TLS = "tests/service/test_spotting.py"

SPOTTING = [
    mutant(
        "spot: what was found ends the session",
        "a server that spoils a segment learns whether there was one",
        OVER_TLS,
        (
            CLIENT,
            "                found = ask(met, own, engine)\n",
            "                found = ask(met, own, engine)\n                check_found(shape, found)\n",
        ),
    ),
    mutant(
        "spot: as many recordings as there are",
        "the server learns how many recordings a client has, not up to a power of two",
        OVER_TLS,
        (CLIENT, "next(size for size in terms.together if size >= len(heard))", "len(heard)"),
        (TERMS, "tuple(2**power for power in range(MOST_TOGETHER.bit_length()))", "tuple(range(1, 65))"),
    ),
    mutant(
        "spot: free queries",
        "an archive is asked until it is known",
        OVER_TLS,
        (
            SERVER,
            "Handler(spell, orders=WAYS, steps=Sizes(terms, spelled=True))",
            "Handler(spell, orders=WAYS, is_query=False, steps=Sizes(terms, spelled=True))",
        ),
    ),
    mutant(
        "spot: recordings for the price of one",
        "keywords are asked about until they are known",
        OVER_TLS,
        ("service/server/session.py", "spent = request.utterances if", "spent = 1 if"),
    ),
    mutant(
        "spot: a size that nobody wrote",
        "a request means something that nobody wrote",
        OVER_TLS,
        (TERMS, "    if packed(digits) != code:", "    if not digits:"),
        (TERMS, "not all(1 <= size <= MOST_UNITS for size in sizes)", "not sizes"),
    ),
    mutant(
        "spot: names of files",
        "a client learns what the server's files are called, where that was not chosen",
        OVER_TLS,
        (ARCHIVE, "self.contents.names if self.contents.told else ()", "self.contents.names"),
    ),
    mutant(
        "spot: examples of their own length",
        "the server learns how long an example is",
        OVER_TLS,
        (
            SEEK,
            "    return Sought(Ask.SPOT_EXAMPLE, (1,) * len(words), way, examples)",
            "    short = len(keyword[-1]) < 7_000  # type: ignore\n"
            "    if not short:\n"
            '        shape = terms.example_shape(len(words), "average")\n'
            "        examples = _by_example(terms, shape, words, rate, 0.0)\n"
            '    return Sought(Ask.SPOT_EXAMPLE, (1,) * len(words), "frames" if short else "average", examples)',
        ),
    ),
    mutant(
        "spot: an archive that others read",
        "whoever has an account on the machine has the voices",
        OVER_TLS,
        (ARCHIVE, "atomic_write(path, private=True)", "atomic_write(path)"),
    ),
    mutant(
        "spot: an archive of any numbers",
        "scores of a forged archive are no numbers",
        OVER_TLS,
        (ARCHIVE, "given.shape != shape or not np.isfinite(given).all()", "given.shape != shape"),
    ),
    mutant(
        "spot: searches of any size",
        "a server has a client exchange as much as it likes",
        OVER_TLS,
        (CLIENT, "    if size > MOST_BYTES:\n", "    if size < 0:\n"),
    ),
]
