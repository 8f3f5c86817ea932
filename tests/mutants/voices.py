"""Mutants of voices by a public network."""

from tests.mutants.mutant import mutant

CLEAR, SERVED = "tests/bundle/test_voices.py", "tests/service/test_voices.py"
SCORING = "tests/service/test_speaker_scoring.py::test_whoever_is_like_one_of_the_cohort_keeps_nobody_else_from_a_name"

VOICES = [
    mutant(
        "voices: a threshold ignored",
        "anybody is accepted as anybody",
        CLEAR,
        ("bundle/verifier.py", "accepted = scores[best] >= least[best] and not", "accepted = not"),
    ),
    mutant(
        "voices: a cohort's people leave under a promise",
        "voices of people to whom something is promised are in the bundle",
        CLEAR,
        (
            "training/release.py",
            'if cohort is not None and cohort.source != "public":',
            'if cohort is not None and cohort.source == "validation":',
        ),
    ),
    mutant(
        "voices: people who are recorded for a cohort called public",
        "nobody is told whose voices are in the bundle",
        CLEAR,
        (
            "training/voices.py",
            'source="public" if public or str(where) == BUILT_IN else "people"',
            'source="public"',
        ),
    ),
    mutant(
        "voices: names of a cohort's people in the bundle",
        "whoever has the bundle knows who they are",
        CLEAR,
        (
            "training/voices.py",
            "else Path(where).resolve().name",
            "else str(sorted(each.name for each in Path(where).iterdir()))",
        ),
    ),
    mutant(
        "voices: speech unlike the cohort's judged by its thresholds",
        "what is no voice is accepted at a rate that means nothing there",
        CLEAR,
        ("bundle/verifier.py", "and not (threshold is None and unlike)", ""),
    ),
    mutant(
        "voices: a person of the cohort is near to himself",
        "speech unlike everybody else's counts as usual",
        CLEAR,
        ("models/impostors.py", ".masked_fill(whose[:, None] == whose, -2.0)", ""),
    ),
    mutant(
        "voices: each name at the whole rate",
        "among many who are enrolled a stranger gets some name",
        SERVED,
        ("service/server/cohort.py", "self.rate / max(1, names)", "self.rate"),
    ),
    mutant(
        "voices: trials longer than the cohort's",
        "strangers who say more are accepted more often than is stated",
        SERVED,
        ("service/server/speakers.py", "min(chosen, impostors.frames[-1])", "chosen"),
    ),
    mutant(
        "voices: codes that need no voice",
        "what all voices have in common is accepted as somebody's",
        SERVED,
        (
            "service/server/linear_scoring.py",
            "np.maximum(rare, cosines_of(beyond.clip(max=bits), bits))",
            "rare",
        ),
    ),
    mutant(
        "voices: thresholds of cosines as far as they go",
        "whoever is enrolled with one unusual template ends every question for a name",
        f"{SCORING}[linear]",
        ("models/impostors.py", "np.asarray(found).clip(-LARGEST, LARGEST)", "np.asarray(found)"),
    ),
    mutant(
        "voices: thresholds of mixtures as far as they go",
        "whoever is enrolled with one unusual template ends every question for a name",
        f"{SCORING}[gmm]",
        ("service/server/mixture_scoring.py", "own(templates, names).clip(max=UNLIKELY)", "own(templates, names)"),
    ),
    mutant(
        "voices: who is enrolled later is not seen",
        "a gallery of yesterday decides",
        SERVED,
        (
            "service/server/stores.py",
            "if self._loaded is not None and len(self._loaded) == self.count():",
            "if self._loaded is not None:",
        ),
    ),
    mutant(
        "voices: thresholds for another amount of speech",
        "strangers with much speech are accepted at more than the rate",
        SERVED,
        ("models/impostors.py", "found[0] * (1 - part) + found[-1] * part", "found[0]"),
    ),
]
