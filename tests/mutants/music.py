"""Mutants of music: what a server sees of a clip, and what a client is told of songs that it does not hear."""

from tests.mutants.mutant import mutant

MAP, SHAPE, MATCHING, LANDMARKS, SONGS = (
    "crypto/oblivious_map.py",
    "protocols/music/shape.py",
    "protocols/music/matching.py",
    "protocols/music/landmarks.py",
    "service/songs.py",
)
MAP_TESTS, TESTS = "tests/crypto/test_oblivious_map.py", "tests/protocols/test_music.py"
SERVICE_TESTS = "tests/service/test_music.py"

MUSIC = [
    mutant(
        "music: points that are not blinded",
        "the server reads which landmarks a client looks for",
        MAP_TESTS,
        (MAP, "    blinds = [random_scalar() for _ in range(count)]", "    blinds = [bytes([1]) + bytes(31)] * count"),
    ),
    mutant(
        "music: one blind for all points",
        "the server sees which of a client's landmarks are the same",
        MAP_TESTS,
        (MAP, "    blinds = [random_scalar() for _ in range(count)]", "    blinds = [random_scalar()] * count"),
    ),
    mutant(
        "music: as many points as there are keys",
        "the server counts a clip's landmarks",
        MAP_TESTS,
        (
            MAP,
            "base_times(random_scalar()) for _ in range(count - len(keys))",
            "base_times(random_scalar()) for _ in ()",
        ),
    ),
    mutant(
        "music: values under no pad",
        "a map tells whose landmarks are whose",
        MAP_TESTS,
        (
            MAP,
            'return tag, hashlib.sha256(b"ppspeech oblivious map, pad" + said).digest()[:width]',
            "return tag, bytes(width)",
        ),
    ),
    mutant(
        "music: a map in the order of its songs",
        "which landmarks belong together can be read from a map",
        MAP_TESTS,
        (MAP, "drawn = np.argsort(uniform_residues(size))", "drawn = np.arange(size)"),
    ),
    mutant(
        "music: names in a map as they are",
        "a client reads all songs' names",
        TESTS,
        (LANDMARKS, "[each ^ _name_pad(own, name_bytes) for each, own in", "[each ^ 0 * len(own) for each, own in"),
        (LANDMARKS, "self.names[song] ^ _name_pad(key, self.names.shape[1])", "self.names[song]"),
    ),
    mutant(
        "music: the nearest song, however far",
        "the client learns a song where none is to be named",
        TESTS,
        (MATCHING, "kept = joined(bits_where(found, place, shape.width))", "kept = place"),
        (MATCHING, "best_of, bits_where, joined, tell_name", "best_of, tell_name"),
    ),
    mutant(
        "music: a ring for one score",
        "the furthest song looks like the nearest",
        TESTS,
        (SHAPE, "if 2 * (self.pattern + self._error(bits)) <", "if self.pattern + self._error(bits) <"),
    ),
    mutant(
        "music: frames of any size",
        "scores wrap, and songs that are not heard are named",
        TESTS,
        (SHAPE, "if whole.size and np.abs(whole).max() > numbers.largest:", "if False:"),
    ),
    mutant(
        "music: songs' lengths are told",
        "a client learns how many frames all songs have together",
        SERVICE_TESTS,
        (SONGS, "padded = -(-max(frames, PATTERN) // FRAMES_STEP) * FRAMES_STEP", "padded = max(frames, PATTERN)"),
    ),
    mutant(
        "music: an index that others can read",
        "the key of its map and its owner's music are everybody's",
        SERVICE_TESTS,
        (SONGS, "with atomic_write(path, private=True) as temporary:", "with atomic_write(path) as temporary:"),
    ),
    mutant(
        "music: an index is not compared with its digest",
        "a damaged index names wrong songs",
        SERVICE_TESTS,
        (SONGS, "if _digest(tensors) != facts.digest:", "if not facts.digest:"),
    ),
]
