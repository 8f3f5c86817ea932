"""Mutants of private searches: what is told of what was not found, and ranges that are not proved."""

from tests.mutants.mutant import mutant

SHAPE, SPOTTING, WARPING, RANGE, TOURNAMENT = (
    f"protocols/search/{file}.py" for file in ("shape", "spotting", "warping", "range", "tournament")
)
SPOTTING_TESTS, WARPING_TESTS = "tests/protocols/test_spotting.py", "tests/protocols/test_warping.py"
PATCHES, PATCHES_TESTS = "protocols/search/patches.py", "tests/protocols/test_patches.py"

SEARCH = [
    mutant(
        "search: where a keyword would have been",
        "the client learns the best segment of recordings in which nothing is said",
        SPOTTING_TESTS,
        (
            TOURNAMENT,
            "(repeated & SharedBits(engine, bits_of(loads, width).reshape(-1))).own",
            "((repeated & repeated).own * 0 ^ bits_of(loads, width).reshape(-1))",
        ),
    ),
    mutant(
        "search: a recording ends where its frames do",
        "the client counts the frames of the server's recordings",
        SPOTTING_TESTS,
        (
            SHAPE,
            "            row[: len(heard)] = monomials_of(",
            "            row[:] = 1\n            row[: len(heard)] = monomials_of(",
        ),
    ),
    mutant(
        "search: frames of any length",
        "scores wrap, and segments that are not there are found",
        SPOTTING_TESTS,
        (SHAPE, "        return within_ball(within, self.radius)", "        return within"),
    ),
    mutant(
        "search: garbage of any depth",
        "scores wrap, and segments that are not there are found",
        SPOTTING_TESTS,
        (SHAPE, "np.clip(scored, *shape.garbage)", "np.clip(scored, -1e4, 1e4)"),
    ),
    mutant(
        "search: keywords that score lower than their shape says",
        "scores wrap, and segments that are not there are found",
        SPOTTING_TESTS,
        (SHAPE, "if not shape.scores[0] <= lowest <= highest <= shape.scores[1]:", "if lowest > highest:"),
    ),
    mutant(
        "search: a ring for one frame",
        "scores of longer segments wrap",
        SPOTTING_TESTS,
        (RANGE, "+ frames * (max(0.0, highest) + rounding)", "+ (max(0.0, highest) + rounding)"),
    ),
    mutant(
        "search: a ring for half of the way",
        "the furthest template looks like the nearest",
        WARPING_TESTS,
        (RANGE, "    return length * (2 * radius**2 + rounding)", "    return length * (radius**2 + rounding)"),
    ),
    mutant(
        "search: templates of any length",
        "the furthest template looks like the nearest",
        WARPING_TESTS,
        (
            WARPING,
            "        return np.asarray(given * (self.radius / np.maximum(norm, self.radius)))",
            "        return np.asarray(given * (self.radius / np.maximum(0 * norm, self.radius)))",
        ),
    ),
    mutant(
        "search: patches of any length",
        "fits wrap, and words that are not there are found",
        PATCHES_TESTS,
        (PATCHES, "np.maximum(np.linalg.norm(given, axis=-1, keepdims=True), 1.0)", "1.0"),
    ),
    mutant(
        "search: a ring for one fit",
        "fits wrap, and words that are not there are found",
        PATCHES_TESTS,
        (PATCHES, "return Scale(self.fraction + 3, self.fraction)", "return Scale(self.fraction + 1, self.fraction)"),
        (PATCHES, "if 2 * (1 + self.error) >= 4:", "if self.error >= 4:"),
    ),
    mutant(
        "search: gains beyond their ring",
        "sums wrap, and words that are not there are found",
        PATCHES_TESTS,
        (PATCHES, "room = (1 << (GAINS.bits - 2)) - 1 - len(self.gains)", "room = 1 << (GAINS.bits - 1)"),
    ),
    mutant(
        "search: weights beyond their ring",
        "sums wrap, and words that are not there are found",
        PATCHES_TESTS,
        (PATCHES, "room = (1 << LINEAR_BITS) - len(self.gains)", "room = (1 << (LINEAR_BITS + 2)) - len(self.gains)"),
    ),
    mutant(
        "search: fits too narrow to be weighed",
        "what wrapped in a share is weighed too, and sums are noise",
        PATCHES_TESTS,
        (
            PATCHES,
            "return Scale(self.scale.bits + LINEAR_BITS, self.scale.fraction + LINEAR_BITS)",
            "return Scale(self.scale.bits + LINEAR_BITS - 1, self.scale.fraction + LINEAR_BITS - 1)",
        ),
    ),
    mutant(
        "search: sums as rough as they come",
        "sums wrap, and words that are not there are found",
        PATCHES_TESTS,
        (PATCHES, 'if self.rule == "linear" and 1 + self.error + self.sum_error >= 2:', "if False:"),
    ),
]
