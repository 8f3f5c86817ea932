"""Mutants of beliefs: masks of lines and of sums, priors that say too much, rings that are too small."""

from tests.mutants.mutant import mutant

LINES = "crypto/shares/lines.py"
SHAPE, SERVERS, PEERS = (f"protocols/beliefs/{file}.py" for file in ("shape", "servers", "peers"))
LINES_TESTS, BELIEFS_TESTS = "tests/crypto/test_lines.py", "tests/protocols/test_beliefs.py"

BELIEFS = [
    mutant(
        "beliefs: heights without a mask",
        "a server sees what a message says",
        LINES_TESTS,
        (
            LINES,
            "    masks = offered.masks.astype(np.uint64, copy=False)\n",
            "    masks = offered.masks.astype(np.uint64, copy=False)\n    masks &= ~lines.line.mask\n",
        ),
    ),
    mutant(
        "beliefs: slopes without a mask",
        "a server sees on which line a message lies",
        LINES_TESTS,
        (
            LINES,
            "    masks = offered.masks.astype(np.uint64, copy=False)\n",
            "    masks = offered.masks.astype(np.uint64, copy=False)\n    masks &= lines.line.mask\n",
        ),
    ),
    mutant(
        "beliefs: products without a mask",
        "a server sees the mask of a slope, times what is left of its own share",
        LINES_TESTS,
        (
            LINES,
            "    products = crossed.masks.astype(np.uint64, copy=False)\n",
            "    products = 0 * crossed.masks.astype(np.uint64, copy=False)\n",
        ),
    ),
    mutant(
        "beliefs: a prior to one server",
        "a server sees everyone's prior",
        BELIEFS_TESTS,
        (
            SERVERS,
            "zip(channels, ring.share(values), strict=True)",
            "zip(channels, (values, 0 * values), strict=True)",
        ),
    ),
    mutant(
        "beliefs: priors of any size",
        "a person makes its neighbors' beliefs wrap around",
        BELIEFS_TESTS,
        (SHAPE, "        return Ring(self.fraction + 1 + self.prior.bit_length() - 1)", "        return self.ring"),
    ),
    mutant(
        "beliefs: a ring for what comes from one neighbor",
        "beliefs of those who know many wrap around",
        BELIEFS_TESTS,
        (SHAPE, "self.prior + float(total.max()) + strongest, ", "self.prior + strongest, "),
    ),
    mutant(
        "beliefs: sums of shares without a mask",
        "a peer sees what the others say to its neighbor, all together",
        BELIEFS_TESTS,
        (PEERS, 'int.from_bytes(uniform_bytes(MASK_BYTES), "big")', "0"),
    ),
    mutant(
        "beliefs: short masks of sums",
        "a peer sees how much was carried out of a sum of shares",
        BELIEFS_TESTS,
        (PEERS, "MASK_BYTES = 16\n", "MASK_BYTES = 3\n"),
    ),
]
