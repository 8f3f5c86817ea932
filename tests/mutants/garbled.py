"""Mutants of garbled circuits: what shows labels, Δ or inputs, or lets a party lie unnoticed."""

from tests.mutants.mutant import mutant

SETUP, GATES, PARTIES = "crypto/transfer/setup.py", "crypto/garbled/half_gates.py", "crypto/garbled/parties.py"
TESTS = "tests/crypto/test_garbled_privacy.py"

REPLIES, REPLY_TESTS = "crypto/lattice/evaluator.py", "tests/crypto/lattice/test_matrix_product.py"
CIRCUIT, TRELLIS = "protocols/trellis/circuit.py", "protocols/trellis/garbled.py"
TRELLIS_TESTS = "tests/protocols/test_trellis_garbled.py"

GARBLED = [
    mutant(
        "a reply's mask used twice",
        "the difference of two results is open",
        REPLY_TESTS,
        (REPLIES, "mask, self._mask = self._mask, None", "mask = self._mask"),
    ),
    mutant(
        "garbled trellis: labels of the server's share known",
        "the client turns its bits",
        TRELLIS_TESTS,
        (TRELLIS, "uniform_residues((_inputs(circuit), 2))", "np.ones((_inputs(circuit), 2), np.uint64)"),
    ),
    mutant(
        "garbled trellis: a last frame for every bit",
        "the client reads several paths at once",
        TRELLIS_TESTS,
        (CIRCUIT, "build.xor(found, ones), ones], axis=1)", "found, ones], axis=1)"),
    ),
    mutant(
        "garbled trellis: words told are not counted",
        "an answer tells more of the models than was agreed on",
        TRELLIS_TESTS,
        (CIRCUIT, "after.append(build.xor(one, borrow))", "after.append(one)"),
    ),
    mutant(
        "garbled trellis: nonsense stops the session",
        "a server learns for which inputs its damage mattered",
        TRELLIS_TESTS,
        (
            TRELLIS,
            "        return PathRead(self._circuit, self._evaluator.read(self._walk()))\n",
            "        read = PathRead(self._circuit, self._evaluator.read(self._walk()))\n"
            "        _ = read.records()\n        return read\n",
        ),
    ),
    mutant(
        "garbled: gates not counted",
        "two circuits share tweaks",
        TESTS,
        (SETUP, "first, self.gates = self.gates, self.gates + count", "first, self.gates = self.gates, count"),
    ),
    mutant(
        "garbled: circuits of a session share tweaks",
        "tables of equal gates differ by delta",
        TESTS,
        (PARTIES, "return at, self._first + at", "return at, self._first"),
    ),
    mutant(
        "garbled: gate counters not compared",
        "parties that stopped elsewhere use tweaks again",
        TESTS,
        (SETUP, "self.labels.done, self.gates)", "self.labels.done, 0)"),
    ),
    mutant(
        "garbled: label counters not compared",
        "parties that stopped elsewhere use each other's rows",
        TESTS,
        (SETUP, "self.labels.done, self.gates)", "0, self.gates)"),
    ),
    mutant(
        "garbled: one tweak for all gates of a group",
        "tables of equal gates differ by delta",
        TESTS,
        (GATES, "steps = [n if n % 2 == 0 else 0 for n", "steps = [0 for n"),
    ),
    mutant(
        "garbled: one tweak for both halves of a gate",
        "a wire met with itself shows its label",
        TESTS,
        (GATES, "[1, 0] * BLOCKS)", "[0, 0] * BLOCKS)"),
    ),
    mutant(
        "garbled: one tweak for all groups of an instruction",
        "tables of equal gates differ by delta",
        TESTS,
        (GATES, "tweak = np.uint64(2 * (first + done + j))", "tweak = np.uint64(2 * (first + done))"),
    ),
    mutant(
        "garbled: one key for all circuits",
        "an evaluator chooses its inputs knowing the hash",
        TESTS,
        (PARTIES, "key = uniform_bytes(KEY_BYTES)", "key = bytes(range(KEY_BYTES))"),
    ),
    mutant(
        "garbled: inputs chosen after the key",
        "an evaluator chooses its inputs knowing the hash",
        "tests/crypto/test_garbled.py",
        (PARTIES, "    if gates is not None:\n", "    if gates is not None and gates._done < 0:\n"),
    ),
    mutant(
        "garbled: late inputs without labels of their own",
        "the evaluator is sent delta",
        TESTS,
        (PARTIES, "(count), uniform_residues((count, 2)))", "(count), np.zeros((count, 2), np.uint64))"),
    ),
    mutant(
        "garbled: late inputs chosen twice",
        "the evaluator holds both labels",
        TESTS,
        (PARTIES, "rows, self._rows = self._rows, None", "rows = self._rows"),
    ),
    mutant(
        "garbled: late choices in the clear",
        "the garbler reads the evaluator's inputs",
        TESTS,
        (PARTIES, "choices = uniform_residues(count, 1).astype(np.uint8)", "choices = np.zeros(count, np.uint8)"),
    ),
    mutant(
        "garbled: meanings not hashed",
        "the evaluator reads half of delta",
        TESTS,
        (PARTIES, "gates.hasher.hash_blocks(each, first)[:, 0]", "each[:, 0]"),
        (PARTIES, "chosen ^ gates.hasher.hash_blocks(outputs, first)[:, 0]", "chosen ^ outputs[:, 0]"),
    ),
    mutant(
        "garbled: labels without a meaning taken for bits",
        "damaged tables go unnoticed",
        TESTS,
        (PARTIES, "bool((words <= 1).all())", "bool((words <= 2**64 - 1).all())"),
    ),
    mutant(
        "garbled: delta of 8 unknown bits",
        "the evaluator tries them all",
        TESTS,
        (SETUP, "        label_bits[0] = True\n", "        label_bits[0] = True\n        label_bits[8:] = False\n"),
    ),
    mutant(
        "garbled: delta is the secret of other transfers",
        "what hides tables hides labels, and both can be played against each other",
        TESTS,
        (SETUP, "        label_bits = _uniform_bits(PAIR_COLUMNS)\n", "        label_bits = pair_bits.copy()\n"),
    ),
]  # fmt: skip
