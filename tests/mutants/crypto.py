"""Mutants of transfers, shares and lattices."""

from tests.mutants.mutant import mutant

BASE, POINTS = "crypto/transfer/base.py", "crypto/points.py"
EXTENSION = "crypto/transfer/extension.py"
CODES = "crypto/transfer/codes.py"
CHECK = "crypto/transfer/check.py"
SETUP = "crypto/transfer/setup.py"
HASH = "crypto/transfer/block_hash.py"
AES = "crypto/transfer/aes.py"
CORRELATIONS = "crypto/shares/correlations.py"
LOOK_UP = "crypto/shares/look_up.py"
SELECT = "crypto/shares/select.py"
ZEROS = "crypto/lattice/zeros.py"
ZEROS_TESTS = "tests/crypto/lattice/test_zeros.py"
EVALUATOR = "crypto/lattice/evaluator.py"
PUBLIC_KEY = "crypto/lattice/public_key.py"
BASE_TESTS = "tests/crypto/test_base_ot.py"
CHECK_TESTS = "tests/crypto/test_transfer_check.py"
KEY_TESTS = "tests/crypto/lattice/test_public_key.py"
OPENED_TESTS = "tests/crypto/test_opened.py"
STATE_TESTS = "tests/crypto/test_ot_state.py"
TRANSFER_TESTS = "tests/crypto/test_transfers.py"

CRYPTO = [
    # Base transfers.
    mutant(
        "m22 keys not bound to number and side",
        "one answer for several transfers gives related keys",
        BASE_TESTS,
        (BASE, 'b"ppspeech base ot, key" + _place(number, side) + point', 'b"ppspeech base ot, key" + point'),
    ),
    mutant(
        "m22 keys not bound to what was said",
        "keys of two conversations can be made equal",
        BASE_TESTS,
        (BASE, "_place(number, side) + point + answer + product", "_place(number, side) + product"),
    ),
    mutant(
        "halves not bound to each other",
        "the receiver computes both keys",
        BASE_TESTS,
        (BASE, "_place(number, side) + point + other)", "_place(number, side) + point)"),
    ),
    mutant(
        "m07 points not validated",
        "a point of small order gives away the choice or the key",
        BASE_TESTS,
        (POINTS, "if not sodium.crypto_core_ed25519_is_valid_point(point):", "if len(point) != POINT_BYTES:"),
    ),
    mutant(
        "both halves of an answer from one secret",
        "the sender reads every choice",
        BASE_TESTS,
        (BASE, "for scalar in (random_scalar(), secret))", "for scalar in (secret, secret))"),
    ),
    mutant(
        "base transfers' scalars always the same",
        "whoever saw one conversation has the keys of all",
        BASE_TESTS,
        (POINTS, "scalar_reduce(uniform_bytes(64))", "scalar_reduce(bytes(range(64)))"),
    ),
    # Extended transfers.
    mutant(
        "columns not checked",
        "a flipped bit a row reads the sender's secret, and with it all tables",
        CHECK_TESTS,
        (
            EXTENSION,
            "        if not hmac.compare_digest(digest(expected), shown[parts.size :]):",
            "        if len(shown) < 1:",
        ),
    ),
    mutant(
        "half of the columns checked",
        "half of the sender's secret is read",
        CHECK_TESTS,
        (CHECK, 'b"ppspeech columns" + hashes.tobytes()', 'b"ppspeech columns" + hashes[:64].tobytes()'),
    ),
    mutant(
        "a challenge known in advance",
        "columns are made to collide under it",
        CHECK_TESTS,
        (EXTENSION, "        return self._said.digest()", "        return bytes(32)"),
    ),
    mutant(
        "a challenge of the setup alone",
        "columns are made to collide under it",
        CHECK_TESTS,
        (EXTENSION, "            self._said.update(columns)\n", ""),
        (EXTENSION, "            self._said.update(message[: own.size])\n", ""),
    ),
    mutant(
        "hashes of choices not blinded",
        "the sender reads 128 bits of the receiver's choices a batch",
        CHECK_TESTS,
        (
            EXTENSION,
            "np.frombuffer(uniform_bytes(8 * own.shape[1] - part), np.uint8)",
            "np.zeros(8 * own.shape[1] - part, np.uint8)",
        ),
    ),
    mutant(
        "m05 tweaks of 1-of-2 transfers start over",
        "the proof of the hash is void",
        OPENED_TESTS,
        (
            EXTENSION,
            "self.hasher.hash_blocks(each, first)[:, 0] for each in (rows, rows ^ self.delta)",
            "self.hasher.hash_blocks(each, 0)[:, 0] for each in (rows, rows ^ self.delta)",
        ),
        (
            EXTENSION,
            "self.hasher.hash_blocks(self.rows(channel, choices.view(np.uint8)), first)[:, 0]",
            "self.hasher.hash_blocks(self.rows(channel, choices.view(np.uint8)), 0 * first)[:, 0]",
        ),
    ),
    mutant(
        "m06 tweaks of 1-of-n transfers start over",
        "the proof of the hash is void",
        OPENED_TESTS,
        (CODES, "offsets[: 1 << batch.bits], first + at, pads", "offsets[: 1 << batch.bits], at, pads"),
        (CODES, "np.zeros((1, 4), np.uint64), first + at, pads", "np.zeros((1, 4), np.uint64), at, pads"),
    ),
    mutant(
        "transfers not counted",
        "tweaks are used again",
        f"{OPENED_TESTS} {STATE_TESTS}",
        (EXTENSION, "self.done += count", "self.done += 0"),
        (EXTENSION, "self.done += len(choices)", "self.done += 0"),
    ),
    mutant(
        "one permutation for both directions",
        "one party's pads are the other's",
        OPENED_TESTS,
        (SETUP, '(b"0", b"1", b"n", b"label")', '(b"0", b"0", b"0", b"label")'),
    ),
    mutant(
        "tweak before the permutation",
        "H(x + d, x' + d, i + d) = H(x, x', i)",
        TRANSFER_TESTS,
        (
            HASH,
            "            block[j, w, 0] = rows[j, 0] ^ offsets[w, 0]",
            "            block[j, w, 0] = rows[j, 0] ^ offsets[w, 0] ^ np.uint64(j)",
        ),
    ),
    mutant(
        "no tweak in wide hashes",
        "equal rows have equal pads",
        TRANSFER_TESTS,
        (HASH, "low, high = rows[j, 2] ^ (first + np.uint64(j)), rows[j, 3]", "low, high = rows[j, 2], rows[j, 3]"),
        (HASH, "^ block[j, w, 0] ^ tweak) & mask", "^ block[j, w, 0]) & mask"),
    ),
    mutant(
        "no tweak in wide hashes by instructions",
        "equal rows have equal pads",
        TRANSFER_TESTS,
        (AES, "writer.hashed(u, [i] * count), mask", "writer.hashed(u, [y] * count), mask"),
    ),
    mutant(
        "one tweak for a group of rows",
        "equal rows have equal pads",
        TRANSFER_TESTS,
        (AES, "steps = [n // 2 if n % 2 == 0 else 0 for n", "steps = [0 for n"),
    ),
    mutant(
        "m23 a secret of 8 unknown bits",
        "the receiver tries all secrets and opens all entries",
        TRANSFER_TESTS,
        (
            SETUP,
            "_uniform_bits(PAIR_COLUMNS), _uniform_bits(CODE_COLUMNS)",
            "_uniform_bits(PAIR_COLUMNS), _uniform_bits(CODE_COLUMNS) & (np.arange(CODE_COLUMNS) < 8)",
        ),
    ),
    mutant(
        "m14 indices of tables in the clear",
        "the first party reads every compared digit",
        "tests/crypto/test_share_privacy.py",
        (CODES, "np.frombuffer(uniform_bytes(sum(counts)), np.uint8)", "np.zeros(sum(counts), np.uint8)"),
    ),
    mutant(
        "m10 a setup is used again after an abort",
        "pads are used twice; guesses of the secret add up",
        f"{STATE_TESTS} {CHECK_TESTS}",
        (SETUP, '            self._state = "spent"', '            self._state = "ready"'),
    ),
    mutant(
        "a setup is used in a forked process",
        "two sessions with the same pads",
        STATE_TESTS,
        (SETUP, "        if self._process != os.getpid():", "        if self._process < 0:"),
    ),
    mutant(
        "positions in a setup not compared",
        "parties use each other's pads twice",
        STATE_TESTS,
        (
            SETUP,
            "if channel.receive(Kind.RESUME, _RESUME.size) != mine:",
            "if not channel.receive(Kind.RESUME, _RESUME.size):",
        ),
    ),
    # Shares.
    mutant(
        "m08 tables without masks",
        "the second party reads every comparison",
        OPENED_TESTS,
        (
            CORRELATIONS,
            "masks = uniform_residues(batch.count, batch.width).astype(pads.dtype)",
            "masks = np.zeros(batch.count, pads.dtype)",
        ),
    ),
    mutant(
        "masks of tables one bit short",
        "the second party reads the highest bit of what it looks up",
        OPENED_TESTS,
        (
            CORRELATIONS,
            "masks = uniform_residues(batch.count, batch.width).astype",
            "masks = (uniform_residues(batch.count, batch.width) >> np.uint64(1)).astype",
        ),
    ),
    mutant(
        "m09 compared bits in the clear",
        "both parties read every comparison",
        OPENED_TESTS,
        (CORRELATIONS, "bits = uniform_residues(count, 1).astype(np.bool_)", "bits = np.zeros(count, np.bool_)"),
    ),
    mutant(
        "products taken twice",
        "the difference of two residues under one mask",
        STATE_TESTS,
        (CORRELATIONS, "        self._products_left = left - count", "        self._products_left = left"),
    ),
    mutant(
        "tables taken twice",
        "two entries of one table are opened",
        STATE_TESTS,
        (CORRELATIONS, "        self._left[shape] = left - count", "        self._left[shape] = left"),
    ),
    mutant(
        "correlations outlive their session",
        "they are used after another session has moved on",
        STATE_TESTS,
        (SETUP, '        if self._state != "in use":', '        if self._state == "nowhere":'),
    ),
    mutant(
        "an offered table not turned by what was asked",
        "pads stay where they are: a repeated question opens a second entry",
        "tests/crypto/test_exhaustive.py",
        (
            LOOK_UP,
            "held |= np.uint64(table[w ^ x] ^ mask ^ pads[j, w ^ flip]) << np.uint64(bits)",
            "held |= np.uint64(table[w ^ x] ^ mask ^ pads[j, flip]) << np.uint64(bits)",
        ),
    ),
    mutant(
        "one pad for all entries",
        "the second party reads the differences of all entries",
        "tests/crypto/test_exhaustive.py",
        (
            LOOK_UP,
            "held |= np.uint64(table[x + w] ^ mask ^ pads[j, w ^ flip]) << np.uint64(bits)",
            "held |= np.uint64(table[x + w] ^ mask ^ pads[j, flip]) << np.uint64(bits)",
        ),
    ),
    mutant(
        "a product's residue hidden by one bit less",
        "the peer reads the lowest bit of a share",
        "tests/crypto/test_exhaustive.py",
        (SELECT, "sent = (turned - step[j]) & mask", "sent = (turned - (step[j] << np.uint64(1))) & mask"),
    ),
    mutant(
        "loads without a mask",
        "the peer reads what a token carries",
        "tests/crypto/test_exhaustive.py",
        (
            SELECT,
            "hidden = loads[j] ^ ((zero[j] + step[j]) >> above) ^ (zero[j] >> above)",
            "hidden = loads[j]",
        ),
        (
            SELECT,
            "product, load = got[j] - zero[j], (got[j] ^ zero[j]) >> above",
            "product, load = got[j] - zero[j], got[j] ^ got[j]",
        ),
    ),
    mutant(
        "loads under bits of the residue's mask",
        "the peer reads sums of both",
        "tests/crypto/test_exhaustive.py",
        (
            SELECT,
            "hidden = loads[j] ^ ((zero[j] + step[j]) >> above) ^ (zero[j] >> above)",
            "hidden = loads[j] ^ step[j]",
        ),
    ),
    mutant(
        "m19 sums shared without masks",
        "one receiver gets everyone's residues",
        "tests/crypto/test_share_among.py",
        (
            "crypto/shares/shared.py",
            "parts = uniform_residues((len(named), len(residues)), ring.bits)",
            "parts = np.zeros((len(named), len(residues)), np.uint64)",
        ),
    ),
    mutant(
        "bulk randomness from a constant key",
        "every mask is known to everyone",
        "tests/crypto/test_randomness.py",
        ("crypto/randomness.py", "algorithms.AES(os.urandom(32))", "algorithms.AES(bytes(32))"),
    ),
    # Lattice products.
    mutant(
        "m01 no encryption of zero",
        "the key holder solves for the weights",
        "tests/crypto/lattice/test_security.py",
        (EVALUATOR, "(products + np.stack(self.zeros.take(len(products))))", "(products + np.uint64(0))"),
    ),
    mutant(
        "m03 one encryption of zero for a whole reply",
        "differences of columns are bare",
        "tests/crypto/lattice/test_reply_differences.py",
        (EVALUATOR, "np.stack(self.zeros.take(len(products)))", "np.stack(self.zeros.take(1) * len(products))"),
    ),
    mutant(
        "an encryption of zero without a secret of its own",
        "the second part of a reply is bare but for small errors",
        ZEROS_TESTS,
        (
            ZEROS,
            "u = transform.forward_(draw_ternary((count, ring.degree), ring))",
            "u = np.zeros((count, ring.degree), np.uint64)",
        ),
    ),
    mutant(
        "one secret for many encryptions of zero",
        "differences of columns are bare",
        ZEROS_TESTS,
        (
            ZEROS,
            "draw_ternary((count, ring.degree), ring)",
            "draw_ternary((1, ring.degree), ring).repeat(count, axis=0)",
        ),
    ),
    mutant(
        "encryptions of zero without errors",
        "linear equations: whoever sees two solves for the rest",
        ZEROS_TESTS,
        (ZEROS, "    _add_errors(residues.reshape(-1), drawn, np.uint64(parameters.prime))\n", ""),
    ),
    mutant(
        "ternary secrets with a bias",
        "the standard's tables of security are not for them",
        ZEROS_TESTS,
        (ZEROS, "_FAIR = 255", "_FAIR = 256"),
    ),
    mutant(
        "m02 no mask",
        "the key holder reads every score",
        "tests/crypto/lattice/test_security.py",
        (EVALUATOR, "len(job.kept)), KEPT_BITS)", "len(job.kept)), KEPT_BITS) & np.uint64(0)"),
    ),
    mutant(
        "m13 a mask one bit short",
        "the key holder reads the sign of every score",
        "tests/crypto/lattice/test_security.py",
        (
            EVALUATOR,
            "len(job.kept)), KEPT_BITS)",
            "len(job.kept)), KEPT_BITS - 1)",
        ),
    ),
    mutant(
        "m04 a store inherited over a fork",
        "two replies with one encryption of zero",
        "tests/crypto/lattice/test_security.py tests/crypto/test_single_use.py",
        ("crypto/single_use.py", "        if self._owner != os.getpid():", "        if self._owner < 0:"),
    ),
    mutant(
        "errors of a ciphertext meet one column alone",
        "results are further off than is stated, and scores can leave their range",
        "tests/crypto/lattice/test_matrix_product.py",
        ("crypto/lattice/job.py", "noise=upload * packed * (", "noise=upload * ("),
    ),
    # Keys and ciphertexts against those who cheat.
    mutant(
        "a key's second half does not depend on the coins",
        "one half for all keys: whoever chose it reads weights, and work on it serves against all",
        KEY_TESTS,
        (PUBLIC_KEY, "hashlib.blake2b(ring + coins)", "hashlib.blake2b(ring)"),
    ),
    mutant(
        "a key without an error",
        "the evaluator solves for the secret",
        KEY_TESTS,
        (PUBLIC_KEY, "transform.forward_(add_errors_(transform.inverse_(product), parameters))", "product"),
    ),
    mutant(
        "a residue of a key may be the prime or more",
        "a key that SEAL does not expect",
        KEY_TESTS,
        (PUBLIC_KEY, "    if (first >= np.uint64(parameters.prime)).any():", "    if len(first) > parameters.degree:"),
    ),
    mutant(
        "seeds of a query may repeat",
        "fewer unknowns in the lattice that hides weights",
        KEY_TESTS,
        ("crypto/lattice/wire.py", "    if len(set(seeds)) < polynomials:", "    if len(set(seeds)) < 1:"),
    ),
    mutant(
        "nobody's place is the first word's",
        "where no word beats all others the first is told: a wrong answer, silently",
        "tests/crypto/test_best.py",
        ("crypto/shares/best.py", "np.arange(1, shape[0] + 1), axis=1)", "np.arange(shape[0]), axis=1)"),
        ("crypto/shares/best.py", "padded[1 : candidates + 1] = texts", "padded[:candidates] = texts"),
    ),
    mutant(
        "a label that is no text ends the session",
        "the server learns that it was said",
        "tests/crypto/test_best.py",
        ("crypto/shares/text.py", 'decode(errors="replace")', "decode()"),
    ),
    mutant(
        "the floor's comparison drops a carry",
        "some scores below the floor are kept as they are, far out of range",
        "tests/crypto/test_exhaustive.py",
        (
            "crypto/shares/compare.py",
            "        table = _walk_table(size, at > 0)",
            "        carried &= np.uint8(at == 0)\n        table = _walk_table(size, at > 0)",
        ),
    ),
]
