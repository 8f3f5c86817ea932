"""Mutants of networks on shares: what is told beside labels, shares that are values, ranges that are not proved."""

from tests.mutants.mutant import mutant

NETWORK, RANGE, SHAPE, TRAINING = (
    f"protocols/networks/{file}.py" for file in ("network", "range", "shape", "training")
)
BITS, BEST = "crypto/shares/bits.py", "crypto/shares/best.py"
TESTS, TRAINING_TESTS = "tests/protocols/test_networks.py", "tests/protocols/test_network_training.py"

NETWORKS = [
    mutant(
        "networks: labels that repeat are told again",
        "the client learns how long every label lasts",
        TESTS,
        (NETWORK, "        if shape.output == \"labels\":\n            place = ", "        if not shape.layers:\n            place = "),
    ),
    mutant(
        "networks: the server's share is nothing",
        "the client sees every pre-activation, from which all weights follow",
        TESTS,
        ("crypto/lattice/evaluator.py", "mask = uniform_residues((job.groups * job.outputs, len(job.kept)), KEPT_BITS)", "mask = 0 * uniform_residues((job.groups * job.outputs, len(job.kept)), KEPT_BITS)"),
    ),
    mutant(
        "networks: frames of any length",
        "values wrap, and labels are wrong",
        TESTS,
        (SHAPE, "given * (self.radius / np.maximum(norm, self.radius))\n        return padded.clip(-self.radius, self.radius)", "given.clip(-self.radius, self.radius)\n        return padded"),
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
        (BEST, "turned = padded[np.arange(size) ^ own[:, None]].transpose(0, 2, 1)", "turned = np.broadcast_to(padded, (rows, size, residues)).transpose(0, 2, 1)"),
    ),
    mutant(
        "networks: rows of any length are trained on",
        "values leave the ring, and the network is another one",
        TRAINING_TESTS,
        (TRAINING, "        return np.asarray(given * (self.radius / np.maximum(norm, self.radius)))", "        return given + 0 * norm"),
    ),
    mutant(
        "networks: weights of any size are trained",
        "values leave the ring, which was chosen for capped ones",
        TRAINING_TESTS,
        (TRAINING, "        new.append(_capped(weights - moved, terms.cap))", "        new.append(weights - moved)"),
    ),
    mutant(
        "networks: the features of the other as they are",
        "shares of trained weights follow from the features",
        TRAINING_TESTS,
        ("crypto/shares/products.py", "total: Residues = look_up(engine, asked, tables, ring)", "total: Residues = 0 * look_up(engine, asked, tables, ring)"),
    ),
]  # fmt: skip
