"""Mutants of networks on shares: what is told beside labels, shares that are values, ranges that are not proved."""

from tests.mutants.mutant import mutant

NETWORK, RANGE, SHAPE, TRAINING = (
    f"protocols/networks/{file}.py" for file in ("network", "range", "shape", "training")
)
BITS, BEST = "crypto/shares/bits.py", "crypto/shares/best.py"
SERVED, SENTENCE_SHAPE = "service/server/networks.py", "protocols/sentences/shape.py"
GREEDY_TESTS, GRAPH_TESTS = "tests/service/test_network_sentences.py", "tests/protocols/test_sentence_network.py"
TESTS, TRAINING_TESTS = "tests/protocols/test_networks.py", "tests/protocols/test_network_training.py"

NETWORKS = [
    mutant(
        "networks: labels that repeat are told again",
        "the client learns how long every label lasts",
        TESTS,
        (
            NETWORK,
            '        if shape.output == "labels":\n            place = ',
            "        if not shape.layers:\n            place = ",
        ),
    ),
    mutant(
        "networks: the server's share is nothing",
        "the client sees every pre-activation, from which all weights follow",
        TESTS,
        (
            "crypto/lattice/evaluator.py",
            "mask = uniform_residues((job.groups",
            "mask = 0 * uniform_residues((job.groups",
        ),
    ),
    mutant(
        "networks: frames of any length",
        "values wrap, and labels are wrong",
        TESTS,
        (SHAPE, "= given * (self.radius / np.maximum(norm, self.radius))", "= given + 0 * norm"),
    ),
    mutant(
        "networks: ranges without the length of windows",
        "values of windows of several frames leave their range",
        TESTS,
        (RANGE, "window = float(np.sqrt(layer.width)) * length", "window = 0.3 * length"),
    ),
    mutant(
        "networks: any weights in any shape",
        "values wrap, and labels are wrong",
        TESTS,
        (RANGE, "            if bits > layer.range_bits:", "            if bits > 99:"),
    ),
    mutant(
        "networks: shares that wrap are widened as they are",
        "what the client encrypts next is off by multiples of the ring",
        "tests/crypto/test_share_operations.py",
        (BITS, "np.stack((top, np.ones_like(top)), axis=1)", "np.stack((top, top), axis=1)"),
    ),
    mutant(
        "networks: texts at the client's own part of a place",
        "a client reads the text of any place it likes",
        TESTS,
        (BEST, "padded[np.arange(size) ^ own[:, None]]", "padded[np.arange(size) ^ 0 * own[:, None]]"),
    ),
    mutant(
        "network sentences: any number of steps",
        "a client is told to go on with what there is no network for",
        GREEDY_TESTS,
        (SERVED, "steps=self.offer.terms.steps)}", "steps=range(1, 65_536))}"),
    ),
    mutant(
        "network sentences: nothing before the first frame",
        "words are others than in the clear",
        GREEDY_TESTS,
        (
            "service/tasks/network_sentences.py",
            "((span - stride) // 2,",
            "(0 * (span - stride) // 2,",
        ),
    ),
    mutant(
        "sentence network: how far scores are apart is not proved",
        "scores leave the range of their shares, and words are wrong",
        GRAPH_TESTS,
        (SENTENCE_SHAPE, "depths: Reals = high.max() - low + 2", "depths: Reals = 0 * low + 2"),
    ),
    mutant(
        "sentence network: any network in any shape",
        "scores leave the range of their shares, and words are wrong",
        GRAPH_TESTS,
        (SENTENCE_SHAPE, "else self.network.shape) != shape.network:", "else shape.network) is False:"),
    ),
    mutant(
        "sentence network: scores of any bits",
        "a server proposes shares that do not hold what the trellis compares",
        GRAPH_TESTS,
        (SENTENCE_SHAPE, "if network.layers[-1].range_bits != whole or network", "if network"),
    ),
    mutant(
        "sentence network: the bits that are dropped are opened",
        "the client sees scores beside its words",
        GRAPH_TESTS,
        (
            "protocols/sentences/transcribe.py",
            "    ring = shape.network.signs(len(shape.network.layers) - 1)\n",
            "    ring = shape.network.signs(len(shape.network.layers) - 1)\n"
            "    open_to(engine, Side.SECOND, outputs[:1], ring)\n",
        ),
    ),
    mutant(
        "networks: rows of any length are trained on",
        "values leave the ring, and the network is another one",
        TRAINING_TESTS,
        (TRAINING, "given * (self.radius / np.maximum(norm, self.radius))", "given + 0 * norm"),
    ),
    mutant(
        "networks: weights of any size are trained",
        "values leave the ring, which was chosen for capped ones",
        TRAINING_TESTS,
        (TRAINING, "        new.append(_capped(weights - moved, terms.cap))", "        new.append(weights - moved)"),
    ),
]
