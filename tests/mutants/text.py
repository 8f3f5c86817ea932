"""Mutants of searches in texts: masks of tables, labels of automata, and what stands for no line."""

from tests.mutants.mutant import mutant

TABLE, GARBLED = "crypto/shares/secret_table.py", "crypto/garbled/automaton.py"
SEARCH, SHAPE, ALPHABET, AUTOMATON = (
    f"protocols/text/{file}.py" for file in ("search", "shape", "alphabet", "automaton")
)
TABLE_TESTS, GARBLED_TESTS = "tests/crypto/test_secret_table.py", "tests/crypto/test_garbled_automaton.py"
GREP_TESTS = "tests/protocols/test_grep.py"

TEXT = [
    mutant(
        "text: one mask for all fields",
        "the keeper learns how states it might have come from differ",
        TABLE_TESTS,
        (
            TABLE,
            "    inner = engine.correlations.take_offered(above, count)\n",
            "    inner = engine.correlations.take_offered(above, count)\n"
            "    ones = sum(1 << (shape.width * n) for n in range(shape.beside))\n"
            "    offered.masks[:] = (offered.masks & np.uint64((1 << shape.width) - 1)) * np.uint64(ones)\n",
        ),
    ),
    mutant(
        "text: masks of fields in the clear",
        "the keeper opens every entry of its low digit",
        TABLE_TESTS,
        (
            TABLE,
            "    inner = engine.correlations.take_offered(above, count)\n",
            "    inner = engine.correlations.take_offered(above, count)\n    inner.masks[:] = 0\n",
        ),
    ),
    mutant(
        "text: states in rows of their own",
        "the reader of a garbled automaton sees which state it is in",
        GARBLED_TESTS,
        (
            GARBLED,
            "    rows = uniform_residues((lines, steps + 1), states.bit_length() - 1).astype(np.int64)\n",
            "    rows = np.zeros((lines, steps + 1), np.int64)\n",
        ),
    ),
    mutant(
        "text: acceptance without a mask",
        "the reader of a garbled automaton sees where it accepts",
        GARBLED_TESTS,
        (
            GARBLED,
            "    masks = uniform_residues((lines, steps + 1), 1).astype(np.uint8)\n",
            "    masks = np.zeros((lines, steps + 1), np.uint8)\n",
        ),
    ),
    mutant(
        "text: cells of one key",
        "the reader opens a row of cells with the label alone, whatever its symbol is",
        GARBLED_TESTS,
        (
            GARBLED,
            "            blocks = held[:, :, None, :] ^ keys[part, step].transpose(0, 2, 1)[:, None]\n",
            "            keys[part, step] = 0\n"
            "            blocks = held[:, :, None, :] ^ keys[part, step].transpose(0, 2, 1)[:, None]\n",
        ),
        (
            GARBLED,
            "            opened = cells[place] ^ _hashes(hasher, held ^ keys[part, step], place + number)\n",
            "            opened = cells[place] ^ _hashes(hasher, held, place + number)\n",
        ),
    ),
    mutant(
        "text: one hash key for all runs",
        "cells of two runs of one number lie under one hash",
        GARBLED_TESTS,
        (GARBLED, "    hash_key = uniform_bytes(KEY_BYTES)\n", "    hash_key = bytes(KEY_BYTES)\n"),
    ),
    mutant(
        "text: rows without a line are empty lines",
        "the seeker counts how many lines there are not",
        GREP_TESTS,
        (ALPHABET, "        rows[len(lines) :, 1:] = self.numbers[OTHER]\n", ""),
    ),
    mutant(
        "text: an automaton as large as it is",
        "the keeper learns how many states a pattern has",
        GREP_TESTS,
        (
            SEARCH,
            "        return max(LEAST_STATES, 1 << (self.automaton.states - 1).bit_length())",
            "        return 1 << (self.automaton.states - 1).bit_length()",
        ),
    ),
    mutant(
        "text: classes as many as there are",
        "the keeper learns how long a word is",
        GREP_TESTS,
        (
            SEARCH,
            "            return -(-len(self.classes) // GROUP) * GROUP\n",
            "            return len(self.classes)\n",
        ),
    ),
    mutant(
        "text: lines are told where a count was asked for",
        "the seeker learns which lines match",
        GREP_TESTS,
        (
            SEARCH,
            '    if shape.tells != "count":\n',
            '    if shape.tells not in ("count", "found") or shape.tells == "count":\n',
        ),
    ),
]
