"""What tells digits apart, learned once from the built-in voices: nobody's data, and public."""

from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from ppspeech.arrays import Reals
from ppspeech.audio.embeddings import WordVectors
from ppspeech.bundle import Bundle
from ppspeech.data import SyntheticCorpus
from ppspeech.errors import BundleError, PpspeechError
from ppspeech.progress import track
from ppspeech.service.login.ear import NUMBERS, SPEECH, VOICE, LoginSpace
from ppspeech.service.login.thresholds import amount_of
from ppspeech.service.store import PostgresStore
from ppspeech.storage import atomic_write

VOICES, TAKES = 40, 2
SHRINKAGE = 0.6  # of covariances towards spheres; chosen on FSDD, whose people are not the built-in voices
KEPT = "digits.safetensors"


def learn_digits(voices: int = VOICES, takes: int = TAKES) -> tuple[Reals, Reals]:
    """The mean of public digits `(192,)`, and linear discriminants of them, whitened, `(192, 9)`."""
    spoken = SyntheticCorpus(speakers=voices, takes=takes)
    corpus = spoken.build()
    vectors = WordVectors(SPEECH)
    heard = np.stack([vectors.of(each.path) for each in track(corpus.utterances, "listening to built-in voices")])
    labels = [spoken.words.index(each.word or "") for each in corpus]
    found = LinearDiscriminantAnalysis(solver="eigen", shrinkage=SHRINKAGE).fit(heard, labels)
    return heard.mean(axis=0), found.scalings_[:, :NUMBERS]


def kept_digits(folder: Path, store: PostgresStore | None = None) -> tuple[Reals, Reals]:
    """What `learn_digits` gives, from a file in `folder`, made there if it is not: it takes half a minute. Servers that
    share a database use what the first of them has learned: a template is of one space, to the last bit.

    Raises PpspeechError for a file that holds something else.
    """
    path = folder / KEPT
    found = [] if store is None else store.table("kept").rows("SELECT data FROM kept WHERE name = ?", KEPT)
    if store is not None and found:
        _keep(path, store.seal.open(found[0][0], KEPT))
    elif not path.exists():
        mean, projection = learn_digits()
        _keep(path, save({"mean": mean.astype(np.float32), "projection": projection.astype(np.float32)}))
    if store is not None and not found:
        row = KEPT, store.seal.seal(path.read_bytes(), KEPT)
        store.table("kept").alone(lambda ask: ask("INSERT INTO kept VALUES (?, ?) ON CONFLICT DO NOTHING", *row))
        return kept_digits(folder, store)  # another server may have been first
    try:
        held = load_file(path)
        return held["mean"].astype(np.float64), held["projection"].astype(np.float64)
    except (SafetensorError, KeyError, OSError) as damaged:
        raise PpspeechError(f"{path} holds no digits: {damaged}; remove it, and it is made anew") from None


def _keep(path: Path, data: bytes) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(data)


def space_of(bundle: Bundle, digits: tuple[Reals, Reals]) -> tuple[LoginSpace, Reals, tuple[int, ...]]:
    """Where people who log in are compared, the cohort of a bundle in it `(trials, 256)`, and whose each trial is.

    Raises BundleError for a bundle that does not hear voices through the public network, or has no cohort.
    """
    if bundle.config.embedding != VOICE or "verify" not in bundle.config.kind.uses:
        raise BundleError(
            f"people log in by a public network of voices, this bundle is a {bundle.config.type}: make one with "
            "`ppspeech voices learn`"
        )
    known = bundle.verifier.impostors
    if known is None:
        raise BundleError(
            "the bundle has no cohort, and which voice is rare among strangers is not known: make one with "
            "`ppspeech voices learn COHORT`, of people recorded like those who will log in"
        )
    heard = known.directions[amount_of(known)].double().numpy()
    space = LoginSpace.load(LoginSpace(heard.mean(axis=0), *digits).dump())  # to the last bit what clients are told
    return space, space.voices(heard), known.owners
