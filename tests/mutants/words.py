"""Mutants of words in a circuit and of the ball that frames lie in."""

from tests.mutants.mutant import mutant

PARTIES, GARBLED, STATES = "crypto/garbled/parties.py", "protocols/words/garbled.py", "protocols/scores/states.py"
SHOWN = '((each.named(job.shape.label_bytes) or b"").rstrip(b"\\0").decode(errors="replace") or None)'
TESTS, RANGE_TESTS = "tests/protocols/test_keyword_garbled.py", "tests/protocols/test_range.py"

WORDS = [
    mutant(
        "garbled words: one pad for all texts",
        "the client reads every word of the server's",
        TESTS,
        (PARTIES, '+ first.to_bytes(8, "big") + labels.tobytes())', '+ first.to_bytes(8, "big"))'),
    ),
    mutant(
        "garbled words: a text where no path ended",
        "a client that names no last frame is told a word",
        TESTS,
        (PARTIES, "+ labels.tobytes())", "+ labels[1:].tobytes())"),
    ),
    mutant(
        "garbled words: numbers that nobody has show",
        "where they stand tells how rows were moved, and so which number won",
        TESTS,
        (PARTIES, "rows = [uniform_bytes(size + CHECK_BYTES) for", "rows = [bytes(size + CHECK_BYTES) for"),
    ),
    mutant(
        "garbled words: nonsense stops the session",
        "a server learns for which voices its damage mattered",
        TESTS,
        (
            GARBLED,
            '    return [show_text(each.named(job.shape.label_bytes) or b"") for each in prepared]\n',
            '    words = [show_text(each.named(job.shape.label_bytes) or b"") for each in prepared]\n'
            "    check_told(job.shape, words)\n    return words\n",
        ),
    ),
    mutant(
        "garbled words: a label as it came",
        "a server writes what it likes to the client's terminal",
        f"{TESTS}::test_a_label_that_is_no_text_is_shown_as_such",
        (GARBLED, 'show_text(each.named(job.shape.label_bytes) or b"")', SHOWN),
    ),
    mutant(
        "garbled words: scores that leave their range",
        "a loud voice is answered by chance",
        TESTS,
        (GARBLED, "    if shape.reach is not None:\n", "    if shape.reach == 0:\n"),
    ),
    mutant(
        "words: frames beyond the ball",
        "a loud frame brings a score out of its range",
        RANGE_TESTS,
        (STATES, "near = frames if self.radius is None else within_ball(frames, self.radius)", "near = frames"),
    ),
    mutant(
        "words: a ball that bounds nothing",
        "models are served whose scores leave their range",
        RANGE_TESTS,
        (
            "protocols/scores/range.py",
            "    return np.maximum(least, low), np.minimum(greatest, high)\n",
            "    return least / 2, np.minimum(greatest, high)\n",
        ),
    ),
]  # fmt: skip
