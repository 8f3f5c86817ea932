"""The mutants that are kept. A change that moves one of these texts moves it here too, or finds a better one."""

from tests.mutants.garbled import GARBLED
from tests.mutants.mutant import mutant
from tests.mutants.privacy import PRIVACY
from tests.mutants.promises import PROMISES
from tests.mutants.search import SEARCH

BASE, EXTENSION, CODES = (f"crypto/transfer/{file}.py" for file in ("base", "extension", "codes"))
CHECK, SETUP, HASH, AES = (f"crypto/transfer/{file}.py" for file in ("check", "setup", "block_hash", "aes"))
CORRELATIONS, LOOK_UP, SELECT = (f"crypto/shares/{file}.py" for file in ("correlations", "look_up", "select"))
ZEROS, ZEROS_TESTS = "crypto/lattice/zeros.py", "tests/crypto/lattice/test_zeros.py"
EVALUATOR, HARDENED = "crypto/lattice/evaluator.py", "protocols/speakers/hardened.py"

PUBLIC_KEY, STREAM = "crypto/lattice/public_key.py", "protocols/scores/streamed.py"

STATES, RANGE, RANGE_TESTS = "protocols/scores/states.py", "protocols/scores/range.py", "tests/protocols/test_range.py"
CLIPPING, PLAN = "privacy/gradients/clipping.py", "privacy/gradients/plan.py"
HOOK, PRIVATE_GRADIENTS = "training/private/hook.py", "training/private/gradients.py"

BASE_TESTS = "tests/crypto/test_base_ot.py"
CHECK_TESTS = "tests/crypto/test_transfer_check.py"
GRADIENT_TESTS, PLAN_TESTS = "tests/training/test_gradient_privacy.py", "tests/privacy/test_plan.py"
KEY_TESTS, KEY_LIFE_TESTS = "tests/crypto/lattice/test_public_key.py", "tests/protocols/test_key_life.py"
HARDENED_TESTS = "tests/protocols/test_speaker_hardened.py"
OPENED_TESTS = "tests/crypto/test_opened.py"
STATE_TESTS = "tests/crypto/test_ot_state.py"
SERVER_TESTS, SUM_TESTS = "tests/network/test_server.py", "tests/protocols/test_aggregation.py"
TRANSFER_TESTS = "tests/crypto/test_transfers.py"

MUTANTS = [
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
        (BASE, "_place(number, side) + point + other).digest()", "_place(number, side) + point).digest()"),
    ),
    mutant(
        "m07 points not validated",
        "a point of small order gives away the choice or the key",
        BASE_TESTS,
        (BASE, "if not sodium.crypto_core_ed25519_is_valid_point(point):", "if len(point) != POINT_BYTES:"),
    ),
    mutant(
        "both halves of an answer from one secret",
        "the sender reads every choice",
        BASE_TESTS,
        (BASE, "for scalar in (_scalar(), secret))", "for scalar in (secret, secret))"),
    ),
    mutant(
        "base transfers' scalars always the same",
        "whoever saw one conversation has the keys of all",
        BASE_TESTS,
        (BASE, "scalar_reduce(uniform_bytes(64))", "scalar_reduce(bytes(range(64)))"),
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
            "crypto/shares/sums.py",
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
    # Speakers.
    mutant(
        "m12 secrets of one bit bind a row",
        "a client moves its score: 2 bits of security",
        HARDENED_TESTS,
        (HARDENED, "uniform_residues(WORDS - 1)])", "uniform_residues(WORDS - 1, 1)])"),
    ),
    mutant(
        "m21 labels that are always the same",
        "a client says yes",
        HARDENED_TESTS,
        (
            HARDENED,
            "np.frombuffer(uniform_bytes(LABEL), np.uint8) for _ in range(2)",
            "np.full(LABEL, each, np.uint8) for each in range(2)",
        ),
    ),
    mutant(
        "m33 records' keys independent of the claim",
        "all models' records open",
        HARDENED_TESTS,
        (HARDENED, "np.repeat(keys, blocks, axis=0)", "np.repeat(0 * keys, blocks, axis=0)"),
    ),
    mutant(
        "rows that open without their sums",
        "a client that moves its score is accepted as anybody",
        HARDENED_TESTS,
        (HARDENED, "hash_blocks(np.ascontiguousarray(openers), first)", "hash_blocks(0 * openers, first)"),
    ),
    mutant(
        "codes in records without a mask",
        "a client reads the template of any place",
        HARDENED_TESTS,
        (HARDENED, "mask = uniform_residues(terms.bits, 1).astype(np.int64)", "mask = np.zeros(terms.bits, np.int64)"),
    ),
    mutant(
        "thresholds in records without a mask",
        "a client reads the secrets that bind rows, and is accepted as anybody",
        HARDENED_TESTS,
        (HARDENED, "masks = uniform_residues(WORDS)\n", "masks = np.zeros(WORDS, np.uint64)\n"),
    ),
    mutant(
        "claims and codes without a mask",
        "the server reads who is claimed, and the voice's code",
        HARDENED_TESTS,
        (
            HARDENED,
            "choices = uniform_residues(terms.claim_bits + terms.bits, 1).astype(np.bool_)",
            "choices = np.zeros(terms.claim_bits + terms.bits, np.bool_)",
        ),
    ),
    mutant(
        "empty places that any code agrees with",
        "a client is accepted at a place that nobody has",
        HARDENED_TESTS,
        (HARDENED, "least = np.full(terms.models, terms.bits)", "least = np.ones(terms.models, np.int64)"),
    ),
    mutant(
        "decisions for the server on shares that can be shifted",
        "a client logs in as anybody",
        "tests/service/test_speaker_scoring.py",
        (
            "service/server/speakers.py",
            'self.scoring or ("hardened" if self.decision == "server" else "linear")',
            'self.scoring or "linear"',
        ),
    ),
    mutant(
        "thresholds below what is common to all",
        "a client without a voice is accepted as nearly anybody",
        "tests/service/test_speaker_scoring.py",
        (
            "service/server/linear_scoring.py",
            "max(rare, *cosines_of(beyond.clip(max=bits), bits))",
            "rare",
        ),
    ),
    mutant(
        "places in the order of enrollment",
        "who enrolls learns how many are enrolled",
        "tests/service/test_speakers.py",
        ("service/server/stores.py", "secrets.choice(free)", "free[0]"),
    ),
    mutant(
        "a kept utterance asked about when it begins",
        "the server learns how long was spoken",
        "tests/service/test_service.py",
        (
            "service/client/words.py",
            "            listening = BufferedListening(",
            "            self._client.session(meet_as_client)._ping()\n            listening = BufferedListening(",
        ),
    ),
    mutant(
        "m18 speakers in a fixed order",
        "the answer's place tells who it is",
        "tests/protocols/test_speaker_identification.py tests/protocols/test_speaker_mixture_identification.py",
        (
            "protocols/speakers/identify.py",
            "np.argsort(uniform_residues(job.plan.models))[:speakers]",
            "np.arange(job.plan.models)[:speakers]",
        ),
    ),
    # Many parties.
    mutant(
        "m15 session keys' signatures not checked",
        "the curator puts itself between all parties",
        SUM_TESTS,
        ("protocols/sums/masks.py", "self._signatures.check(place, keys, signed[place])", "pass"),
    ),
    mutant(
        "session keys signed one by one",
        "a key that was once lost is handed out again in a later session",
        SUM_TESTS,
        (
            "protocols/sums/masks.py",
            "verify(signed, self._statement(keys), self._group.member(name).pin)",
            "verify(signed, self._statement(keys[place : place + 1]), self._group.member(name).pin)",
        ),
        (
            "protocols/sums/masks.py",
            "return self._identity.sign(self._statement(keys))",
            "return self._identity.sign(self._statement(keys[self.place : self.place + 1]))",
        ),
    ),
    mutant(
        "a sum is booked when it comes back",
        "a curator that denies sums averages the noise away, unbooked",
        SUM_TESTS,
        (
            "protocols/sums/joint.py",
            "        self._releases += 1\n        return _to_values(self._add_up(steps), self.shares.grid.step, value)",
            "        total = self._add_up(steps)\n        self._releases += 1\n"
            "        return _to_values(total, self.shares.grid.step, value)",
        ),
    ),
    mutant(
        "a session goes on after a sum that did not come",
        "a curator that denies sums gets any number in one session",
        SUM_TESTS,
        ("protocols/sums/aggregation.py", "        self._over = True  # until", "        self._over = False  # until"),
    ),
    mutant(
        "any number of sessions with one file",
        "a curator that denies sums averages the noise away, one session after another",
        SUM_TESTS,
        ("protocols/sums/ledger.py", "        if sessions >= MOST_SESSIONS:", "        if sessions < 0:"),
    ),
    mutant(
        "the aggregator chooses the common filter",
        "it sees of the first samples what it likes",
        "tests/protocols/test_personal_filters.py",
        (
            "protocols/filters/personal_filters.py",
            "        if hashlib.sha256(common).hexdigest() != terms.common:",
            "        if not common:",
        ),
    ),
    mutant(
        "m11 noise for all parties instead of the honest",
        "colluders leave less noise than is stated",
        "tests/privacy/test_distributed_noise.py",
        (
            "privacy/mechanisms/distributed.py",
            "return (self.sigma / self.grid.step) ** 2 / (2 * self.honest)",
            "return (self.sigma / self.grid.step) ** 2 / (2 * self.parties)",
        ),
    ),
    # Exact noise, and private gradients.
    mutant(
        "a unit's numbers above the bound",
        "one unit moves a sum further than its noise is for",
        PLAN_TESTS,
        (CLIPPING, "AIM = STEPS * (1 - 2.0**-24)", "AIM = STEPS * (1 + 2.0**-24)"),
    ),
    mutant(
        "numbers that are no numbers added up",
        "one recording marks every model that it was in",
        PLAN_TESTS,
        (CLIPPING, "    if not bool(is_finite.all()):", "    if is_finite.dim() == 0:"),
    ),
    mutant(
        "half the noise on sums of statistics",
        "twice the epsilon that is stated",
        "tests/training/test_private_statistics.py",
        (
            "privacy/mechanisms/unit_sum.py",
            "total + whole_noise(self.scale, total)",
            "total + whole_noise(self.scale, total) // 2",
        ),
    ),
    mutant(
        "half the noise on gradients",
        "twice the epsilon that is stated",
        PLAN_TESTS,
        (PLAN, "flat + whole_noise(self.scale, flat)", "flat + whole_noise(self.scale, flat) // 2"),
    ),
    mutant(
        "one noise for all steps",
        "the difference of two steps has none",
        PLAN_TESTS,
        (
            PLAN,
            "            flat = flat + whole_noise(self.scale, flat)\n",
            "            kept = vars(GradientPlan).get('kept')\n"
            "            GradientPlan.kept = whole_noise(self.scale, flat) if kept is None else kept\n"
            "            flat = flat + GradientPlan.kept\n",
        ),
    ),
    mutant(
        "feature noise in floating point",
        "the last bits of a released vector rule wrong candidates out",
        "tests/filters/test_noisy.py",
        (
            "filters/noisy.py",
            "            noisy = ball.release(ball.whole(flat)).value\n",
            "            noisy = flat + ball.sigma * torch.randn_like(flat)\n",
        ),
    ),
    mutant(
        "fractions taken for whole numbers",
        "rounding moves them further than the sensitivity says",
        "tests/privacy/test_mechanisms.py",
        (
            "privacy/samplers/grid.py",
            "        if self.integer_valued and not",
            "        if self.dimension == 0 and not",
        ),
    ),
    mutant(
        "the tail of the discrete Gaussian cut off",
        "an output that only one of two neighbors can have",
        "tests/privacy/test_discrete.py",
        (
            "privacy/samplers/discrete.py",
            "            k[tail] = stairs.reach + sample_geometric(stairs.slope, tail.size)\n",
            "            k[tail] = stairs.reach\n",
        ),
    ),
    mutant(
        "gradients divided by how many there are",
        "the scale of the noise tells the number of people",
        GRADIENT_TESTS,
        (
            PRIVATE_GRADIENTS,
            "parameter.grad = noisy / self.expected_units",
            "parameter.grad = noisy / len(set(self._loader.dataset.speakers.tolist()))",
        ),
    ),
    mutant(
        "a batch released again and again",
        "samples that are not fresh, booked as if they were",
        GRADIENT_TESTS,
        (PRIVATE_GRADIENTS, "        if here == self._batch:", "        if here is self._batch:"),
    ),
    mutant(
        "plain steps before private ones",
        "what they learned gets a guarantee",
        GRADIENT_TESTS,
        (HOOK, "        if trainer.global_step != known:", "        if trainer.global_step < known:"),
    ),
    mutant(
        "plain training before private training",
        "what it learned gets a guarantee",
        GRADIENT_TESTS,
        (PRIVATE_GRADIENTS, '`module.zero_grad()`": not left,', '`module.zero_grad()`": True,'),
    ),
    mutant(
        "another hook's account forgotten",
        "a model pays for its second training only",
        GRADIENT_TESTS,
        (
            HOOK,
            "        if FITTED.get(pl_module, self._mark) is not self._mark:",
            "        if FITTED.get(pl_module) is self:",
        ),
    ),
    mutant(
        "one dropout mask for all",
        "examples see each other's",
        GRADIENT_TESTS,
        ("training/private/per_sample.py", 'randomness="different"', 'randomness="same"'),
    ),
    mutant(
        "m30 a group's caller not verified",
        "anyone with a certificate is let in as anybody",
        "tests/network/test_group.py",
        ("network/group/identity.py", "    check_pin(der, pin)  #", "    #"),
    ),
    mutant(
        "m31 what a caller signed is not verified",
        "a recorded certificate is enough",
        "tests/network/test_group.py",
        ("network/group/identity.py", "        key.verify(signature, message, ECDSA)", "        pass"),
    ),
    # Network and service.
    mutant(
        "m16 the pin not checked",
        "anyone may be the server",
        "tests/network/test_tls.py",
        (
            "network/tls/certificates.py",
            "if der is None or not hmac.compare_digest(hashlib.sha256(der).hexdigest(), pin):",
            "if der is None:",
        ),
    ),
    mutant(
        "m25 key files that others read",
        "whoever has an account has the key",
        "tests/network/test_tls.py",
        (
            "network/tls/certificates.py",
            "os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)",
            "os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)",
        ),
    ),
    mutant(
        "m26 older versions of TLS",
        "downgrades",
        "tests/network/test_tls.py",
        (
            "network/tls/context.py",
            "ssl.PROTOCOL_TLS_CLIENT)\n        context.minimum_version = ssl.TLSVersion.TLSv1_3",
            "ssl.PROTOCOL_TLS_CLIENT)\n        context.minimum_version = ssl.TLSVersion.TLSv1_2",
        ),
    ),
    mutant(
        "m27 frames of another session taken",
        "replays",
        "tests/network/test_frames.py tests/network/test_channels.py",
        ("network/channel/frames.py", "if got_session != session and not (", "if got_session is None and not ("),
    ),
    mutant(
        "m17 the budget not spent",
        "any number of queries",
        "tests/service/test_budget.py",
        ("service/server/stores.py", "                used += queries\n", "                used += 0\n"),
    ),
    mutant(
        "m29 the budget spent after the answer",
        "a client looks at part of an answer and hangs up, for nothing",
        "tests/service/test_budget.py",
        (
            "service/server/session.py",
            "will_answer, left = budget.spend(model, visitor.client, spent)",
            "will_answer, left = (left := budget.left(model, visitor.client)) is None or left > 0, left",
        ),
        (
            "service/server/session.py",
            "        handler.answer(record, request)\n",
            "        handler.answer(record, request)\n        budget.spend(model, visitor.client, spent)\n",
        ),
    ),
    mutant(
        "every IPv6 address is a client",
        "one subscriber has 2^64 budgets",
        "tests/service/test_budget.py",
        ("service/server/book.py", 'f"address:{neighborhood(peer.address)}"', 'f"address:{peer.address}"'),
    ),
    mutant(
        "every newcomer has a row of its own",
        "whoever has many addresses fills the disk, and has as many budgets",
        "tests/service/test_budget.py",
        ("service/server/stores.py", "ask(_CLIENTS, model)[0][0] >= MOST_CLIENTS", "ask(_CLIENTS, model)[0][0] < 0"),
    ),
    mutant(
        "tables that others read",
        "whoever has an account has everyone's templates",
        "tests/test_storage.py",
        ("storage.py", "os.O_CREAT | os.O_RDWR, 0o600)", "os.O_CREAT | os.O_RDWR, 0o644)"),
    ),
    mutant(
        "one address may have all sessions",
        "it holds the server shut for everybody else",
        SERVER_TESTS,
        ("network/server/server.py", "if held[each.who] < capacity.for_one]", "if held[each.who] >= 0]"),
    ),
    mutant(
        "one address may have all handshakes",
        "it holds the server shut for everybody else",
        SERVER_TESTS,
        (
            "network/server/server.py",
            "if stalling[each.who] < capacity.stalling_for_one]",
            "if stalling[each.who] >= 0]",
        ),
    ),
    mutant(
        "any time between HELLO and the first message",
        "who says HELLO and no more holds a place for an hour",
        SERVER_TESTS,
        (
            "network/server/worker.py",
            "channel.expect_within(capacity.opening_seconds, lambda",
            "channel.expect_within(3600.0, lambda",
        ),
    ),
    mutant(
        "who stalls never gives way",
        "a few addresses hold all handshakes",
        SERVER_TESTS,
        ("network/server/server.py", "        if self._ready:\n            self._hurry(now)\n", ""),
    ),
    mutant(
        "who begins again and again has a process each time",
        "garbage, which costs nothing, keeps the server busy with processes",
        SERVER_TESTS,
        (
            "network/server/server.py",
            "if self._tries.left(each.who, now) >= 1]",
            "if self._tries.left(each.who, now) > -1e9]",
        ),
    ),
    mutant(
        "a full waiting room refuses the last to come",
        "a crowd from one address keeps everybody out",
        SERVER_TESTS,
        ("network/server/server.py", "        most = max(waiting.values())", "        most = min(waiting.values())"),
    ),
    mutant(
        "our certificate shown before the pin is checked",
        "an impostor learns who called",
        "tests/network/test_tls.py",
        (
            "network/tls/context.py",
            "own = None if self.pin is not None and pinned is None else self.certificate",
            "own = self.certificate",
        ),
    ),
    mutant(
        "whoever comes first is the other party",
        "a stranger takes part in our protocol",
        "tests/network/test_tls.py",
        (
            "network/tls/listener.py",
            "        if not hmac.compare_digest(channel.receive(TICKET, len(ticket)), ticket):",
            "        if not channel.receive(TICKET, len(ticket)):",
        ),
    ),
    mutant(
        "callers are greeted one after another",
        "a stranger who stalls keeps a group from meeting",
        "tests/network/test_group.py",
        (
            "network/tls/listener.py",
            "threading.Thread(target=self._receive, args=(self._number, connection), daemon=True).start()",
            "self._receive(self._number, connection)",
        ),
    ),
    mutant(
        "control characters reach the terminal",
        "a peer's words write over what was said",
        "tests/test_screen.py",
        ("screen.py", "yield segment if segment.control else", "yield segment if segment else"),
    ),
    mutant(
        "certificates that sign others",
        "whoever is let in lets in others, and has as many budgets as it likes",
        "tests/network/test_tls.py",
        ("network/tls/certificates.py", "x509.BasicConstraints(ca=False,", "x509.BasicConstraints(ca=True,"),
    ),
    mutant(
        "m28 sealed galleries replaced by others",
        "whoever comes replaces other people's templates",
        "tests/service/test_keeper.py tests/service/test_budget.py",
        (
            "service/server/stores.py",
            "(found is not None and found[0] != owner)",
            "(found is not None and found[0] is None)",
        ),
    ),
    mutant(
        "m32 features not clipped",
        "a loud voice leaves the ring: a wrong answer, silently",
        "tests/protocols/test_monomials.py tests/protocols/test_keyword.py",
        (
            "protocols/scores/states.py",
            "monomials_of(np.clip(given, -self.limit, self.limit), self.terms)",
            "monomials_of(given, self.terms)",
        ),
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
        "coins of a client's key are fixed",
        "a client prepares a key before it hears the server",
        KEY_LIFE_TESTS,
        ("protocols/meeting.py", "KeyHolder(chosen, setup.id)", 'KeyHolder(chosen, b"coins")'),
        ("protocols/meeting.py", "Evaluator(received, setup.id, chosen)", 'Evaluator(received, b"coins", chosen)'),
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
        ("crypto/shares/best.py", "np.arange(1, candidates + 1), axis=1)", "np.arange(candidates), axis=1)"),
        ("crypto/shares/best.py", "padded[1 : candidates + 1] = texts", "padded[:candidates] = texts"),
    ),
    mutant(
        "a label that is no text ends the session",
        "the server learns that it was said",
        "tests/crypto/test_best.py",
        ("crypto/shares/text.py", 'letters.decode(errors="replace")', "letters.decode()"),
    ),
    mutant(
        "no word is refused before all is said",
        "the server learns that no word was found",
        "tests/service/test_opened.py",
        (
            "service/client/words.py",
            "return clock.answers(recognize(met, job, frames, engine), record, chosen)",
            "told = recognize(met, job, frames, engine)\n                check_told(shape, told)\n"
            "                return clock.answers(told, record, chosen)",
        ),
    ),
    mutant(
        "a keeper's key answers for ever",
        "probes read it, and the templates under it",
        KEY_LIFE_TESTS,
        ("protocols/speakers/gallery.py", "            self._left.value -= 1\n", ""),
    ),
    mutant(
        "a server streams under one key for ever",
        "utterances read it, and the models under it",
        KEY_LIFE_TESTS,
        (STREAM, "return answers % self.answers_a_key == 0", "return answers == 0"),
    ),
    mutant(
        "a prober takes any gallery of the keeper's key",
        "a store moves templates, and one is accepted as another",
        "tests/protocols/test_speaker_gallery.py",
        (
            "protocols/speakers/gallery.py",
            "    if channel.receive(Kind.GALLERY_DIGEST, len(gallery.digest)) != gallery.digest:",
            "    if not channel.receive(Kind.GALLERY_DIGEST, len(gallery.digest)):",
        ),
    ),
    # The range of scores.
    mutant(
        "scores without a floor",
        "sounds far from all training bring scores out of their range: a wrong answer, silently",
        RANGE_TESTS,
        (
            STATES,
            "at_least(given, least, product.fraction + VAGUE, fewer, self.scale.ring).residues",
            "self.scale.ring.reduce(given.residues >> np.uint64(fewer))",
        ),
    ),
    mutant(
        "a floor one nat too low",
        "scores of many frames lie lower than was proved",
        RANGE_TESTS,
        (
            STATES,
            "        least = -self.depth << product.fraction",
            "        least = -(self.depth + 1) << product.fraction",
        ),
    ),
    mutant(
        "a floor deeper than the shares hold",
        "two paths differ by more than their shares can tell",
        RANGE_TESTS,
        (RANGE, "    return math.floor(room / shape.frames)", "    return math.floor(2 * room / shape.frames)"),
    ),
    mutant(
        "models that score lower than their shape says",
        "scores wrap before the floor is applied",
        RANGE_TESTS,
        (STATES, "        if not highest <= top <= lowest + room:", "        if not highest <= top:"),
    ),
    mutant(
        "what no path has reached counts as much as a path",
        "a state that was never reached wins where words end",
        RANGE_TESTS,
        (
            RANGE,
            "    return -(shape.frames * shape.depth + path_slack(shape) + APART)",
            "    return -path_slack(shape)",
        ),
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
    *GARBLED,
    *PROMISES,
    *PRIVACY,
    *SEARCH,
]
