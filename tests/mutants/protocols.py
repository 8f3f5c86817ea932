"""Mutants of protocols, and the range of their scores."""

from tests.mutants.mutant import mutant

HARDENED = "protocols/speakers/hardened.py"
CROWD = "protocols/speakers/crowd.py"
CROWD_SHARDS = "protocols/speakers/crowd_shards.py"
CROWD_TESTS = "tests/protocols/test_speaker_crowd.py"
ROWS = "protocols/speakers/decision_rows.py"
STREAM = "protocols/scores/streamed.py"
STATES = "protocols/scores/states.py"
RANGE = "protocols/scores/range.py"
RANGE_TESTS = "tests/protocols/test_range.py"
KEY_LIFE_TESTS = "tests/protocols/test_key_life.py"
HARDENED_TESTS = "tests/protocols/test_speaker_hardened.py"
SUM_TESTS = "tests/protocols/test_aggregation.py"
SENTENCE_SHAPE = "protocols/sentences/shape.py"
SENTENCE_TESTS = "tests/protocols/test_sentence.py"
TRELLIS_RANGE = "protocols/trellis/range.py"

PROTOCOLS = [
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
        (ROWS, "hash_blocks(np.ascontiguousarray(openers), first)", "hash_blocks(0 * openers, first)"),
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
        "m18 speakers in a fixed order",
        "the answer's place tells who it is",
        "tests/protocols/test_speaker_identification.py tests/protocols/test_speaker_mixture_identification.py",
        (
            "protocols/speakers/identify.py",
            "np.argsort(uniform_residues(job.plan.models))[:speakers]",
            "np.arange(job.plan.models)[:speakers]",
        ),
    ),
    mutant(
        "a voice among a crowd without its mask",
        "the server reads the voice",
        CROWD_TESTS,
        (
            CROWD,
            "pack_numbers(RANGE.reduce(voice - mask), RANGE.bits)",
            "pack_numbers(RANGE.reduce(voice), RANGE.bits)",
        ),
        (
            CROWD,
            "mask = uniform_residues(plan.features, RANGE.bits)",
            "mask = np.zeros(plan.features, np.uint64)",
        ),
    ),
    mutant(
        "two voices under one mask",
        "the server reads how they differ",
        CROWD_TESTS,
        (CROWD, "taken, self._taken = self._taken, None", "taken = self._taken"),
    ),
    mutant(
        "a crowd's gallery that changed under a mask",
        "whoever is enrolled meanwhile gets a score that is anything, and may be named for a stranger",
        CROWD_TESTS,
        (CROWD_SHARDS, "total * np.uint32(filled[slot])", "total"),
    ),
    mutant(
        "a shard that lost people answers all the same",
        "scores of those whom the mask has met are anything",
        CROWD_TESTS,
        (CROWD_SHARDS, " or (taken > self.filled()).any()", ""),
    ),
    mutant(
        "a shard without some of a crowd is asked all the same",
        "who is enrolled is nobody",
        CROWD_TESTS,
        (CROWD, " or (crowd.filled > filled[: plan.slots]).any()", ""),
    ),
    mutant(
        "empty slots of a crowd that are passed over",
        "how long a client waits tells it how many are enrolled",
        f"{CROWD_TESTS}::test_how_long_a_product_takes_does_not_tell_how_many_are_enrolled",
        (CROWD_SHARDS, "for feature in range(len(vector)):", "for feature in range(len(vector) * filled[slot]):"),
    ),
    mutant(
        "empty slots of a crowd that are in no memory",
        "how long a client waits tells it how many are enrolled",
        f"{CROWD_TESTS}::test_slots_of_nobody_are_in_memory_as_others_are",
        (
            CROWD_SHARDS,
            "np.full((blocks * size, product.inner), 0, np.int16)",
            "np.zeros((blocks * size, product.inner), np.int16)",
        ),
    ),
    mutant(
        "empty blocks of a crowd that are one",
        "how long offline work takes tells a client how many are enrolled",
        f"{CROWD_TESTS}::test_blocks_of_nobody_are_each_in_memory",
        (CROWD_SHARDS, "np.zeros(size, np.uint8)) for _ in range(blocks)]", "np.zeros(size, np.uint8))] * blocks"),
    ),
    mutant(
        "a slot of a crowd is given away",
        "another person is named",
        CROWD_TESTS,
        (CROWD_SHARDS, "        if (self._weights[at[taken]] != weights[taken]).any():", "        if len(at) < 0:"),
    ),
    mutant(
        "a crowd's mask that is not uniform",
        "the server narrows a voice down",
        CROWD_TESTS,
        (CROWD, "uniform_residues(plan.features, RANGE.bits)", "uniform_residues(plan.features, RANGE.bits - 1)"),
    ),
    mutant(
        "the place of a rejected voice is opened",
        "whoever is told learns who came closest to a stranger",
        CROWD_TESTS,
        (
            CROWD,
            "        _, place = multiply_loaded(engine, accepted.own,",
            "        multiply_loaded(engine, accepted.own,",
        ),
    ),
    mutant(
        "who wins a sieve's last comparison is opened",
        "the client learns how scores compare",
        CROWD_TESTS,
        (
            CROWD,
            "        width = plan.places.bit_length()\n",
            "        width = plan.places.bit_length()\n        accepted.open_to(Side.SECOND)\n",
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
        "m32 features not clipped",
        "a loud voice leaves the ring: a wrong answer, silently",
        "tests/protocols/test_monomials.py tests/protocols/test_keyword.py",
        (
            "protocols/scores/states.py",
            "monomials_of(self.clipped(given), self.terms)",
            "monomials_of(given, self.terms)",
        ),
    ),
    mutant(
        "coins of a client's key are fixed",
        "a client prepares a key before it hears the server",
        KEY_LIFE_TESTS,
        ("protocols/meeting.py", "KeyHolder(chosen, setup.id)", 'KeyHolder(chosen, b"coins")'),
        ("protocols/meeting.py", "Evaluator(received, setup.id, chosen)", 'Evaluator(received, b"coins", chosen)'),
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
    # Sentences.
    mutant(
        "frames of a sentence beyond the radius",
        "a loud sound brings scores out of range, and words wrong in silence",
        SENTENCE_TESTS,
        (SENTENCE_SHAPE, "np.clip(within_ball(frames, self.radius), -self.limit, self.limit)", "frames"),
    ),
    mutant(
        "models of sentences of any range",
        "scores wrap around, and words are wrong in silence",
        SENTENCE_TESTS,
        (SENTENCE_SHAPE, "if not apart < shape.scale.bound:", "if apart < 0:"),
    ),
    mutant(
        "a trellis whose emissions cost nothing",
        "its range is taken to be smaller than it is",
        "tests/protocols/test_trellis.py",
        (TRELLIS_RANGE, "self.spread_now(low - self._cost)", "self.spread_now(low)"),
    ),
    mutant(
        "looking ahead adds the emission of one frame alone",
        "scores of states that are stayed in are too high, and words wrong",
        "tests/protocols/test_trellis.py",
        ("protocols/trellis/schedule.py", "emits=ahead * emits)", "emits=int(emits))"),
    ),
    mutant(
        "only what is in one frame counts in a trellis' range",
        "scores of later frames wrap around",
        "tests/protocols/test_trellis.py",
        (TRELLIS_RANGE, "    return min(max(spreads), connected) + ways.slack", "    return spreads[0] + ways.slack"),
    ),
    mutant(
        "a stream's answers may tell any number of bits",
        "one long utterance tells more of the server's key than it can lose",
        SENTENCE_TESTS,
        (STREAM, "        if self.answer_bits > most:", "        if self.answer_bits < 0:"),
    ),
    mutant(
        "records of tokens in the clear",
        "the client reads words that it did not ask for",
        SENTENCE_TESTS,
        (
            "protocols/sentences/transcribe.py",
            "    offered = Shared(engine, known if engine.is_first else np.zeros_like(known), ring)",
            "    if engine.is_first:\n        engine.channel.send(1, known.tobytes())\n"
            "    else:\n        engine.channel.receive(1, known.nbytes)\n"
            "    offered = Shared(engine, known if engine.is_first else np.zeros_like(known), ring)",
        ),
    ),
]
