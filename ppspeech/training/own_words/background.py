"""Speech that is none of the words: half of it teaches a head what to leave alone, the other half how sure to be.

It is public: nothing is promised to anybody who speaks in it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.audio import Samples, Sound, samples_at
from ppspeech.audio.embeddings import (
    EmbeddingConfig,
    Pooling,
    SpeechWindows,
    averaged,
    quiet_room,
    utterance,
    windowed,
)
from ppspeech.audio.voices import VOICES, Espeak, Room, Voice
from ppspeech.errors import AudioError, ModelError
from ppspeech.progress import track
from ppspeech.storage import atomic_write, cache_folder

RATE = 16_000
STRETCH = 8
"""Embeddings of a stretch of speech that could be taken for an utterance: 1.3 s, as most words with what is around."""
APART = 8
"""Of the windows that come every 80 ms, one of so many trains: neighbors say the same."""
MOST_WHOLE_S = 3.0  # a recording so short may be an utterance as it is


@dataclass(frozen=True, eq=False)
class Stream:
    """One recording: embeddings every 80 ms `(count, 96)`, from a quiet room into another; and those of the recording as
    one utterance, where it is as short as one. `digest` is of its sound.
    """

    embeddings: Reals
    whole: Reals | None
    seconds: float
    digest: str

    @classmethod
    def of(cls, sound: Sound, network: SpeechWindows, rate: int | None = None) -> "Stream":
        """Listen to a recording. Raises AudioError for one that cannot be used."""
        samples = samples_at(sound, rate, RATE)
        if not np.isfinite(samples).all() or not samples.any():
            raise AudioError(f"{sound if isinstance(sound, str) else 'a recording'} is silent, or not finite")
        before, after = quiet_room(samples, 2 * RATE), quiet_room(samples, RATE // 2)
        whole = network(utterance(samples)) if len(samples) <= MOST_WHOLE_S * RATE else None
        going_on = network.going_on(np.concatenate([before, samples, after]))
        return cls(going_on, whole, len(samples) / RATE, digest_of(samples))

    def vectors(self, pooling: Pooling) -> Reals:
        """The vector of every window, or of every stretch that could be an utterance, `(count, features)`."""
        window = pooling if pooling.over == "window" else Pooling("window", pooling.parts, STRETCH)
        found = windowed(window, self.embeddings)
        if pooling.over == "window" or self.whole is None:
            return found
        return np.concatenate([found, averaged(pooling, self.whole)[None]])


@dataclass(frozen=True, eq=False)
class Background:
    """Streams that train, and others that calibrate; `says` what they are of, for the statement."""

    training: tuple[Stream, ...]
    calibrating: tuple[Stream, ...]
    says: str

    @classmethod
    def of(
        cls, training: Sequence[Sound], calibrating: Sequence[Sound], says: str, rate: int | None = None
    ) -> "Background":
        """Listen to recordings, which are embedded once; whoever can puts different people into the two."""
        network = SpeechWindows(EmbeddingConfig("speech"))
        heard = [
            tuple(Stream.of(sound, network, rate) for sound in track(sounds, "Hearing the background"))
            for sounds in (training, calibrating)
        ]
        return cls(*heard, says)

    def __post_init__(self) -> None:
        if not self.training or not self.calibrating:
            raise ModelError("a background needs recordings that train and others that calibrate: two at the least")
        both = {each.digest for each in self.training} & {each.digest for each in self.calibrating}
        if both:
            raise ModelError(
                f"{len(both)} recordings of the background train and calibrate: what was trained on alarms too rarely"
            )

    @property
    def hours(self) -> float:
        """Of what calibrates."""
        return sum(each.seconds for each in self.calibrating) / 3600

    @property
    def digests(self) -> frozenset[str]:
        """Of all recordings."""
        return frozenset(each.digest for each in (*self.training, *self.calibrating))

    def trained_on(self, pooling: Pooling, most: int) -> Reals:
        """At most so many vectors, evenly spread over what trains, `(count, features)`."""
        rows = np.concatenate([each.vectors(pooling)[::-APART] for each in self.training])
        return rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int)]


def digest_of(samples: Samples) -> str:
    """Names a sound at 16 kHz."""
    return hashlib.sha256(np.ascontiguousarray(samples, np.float32).tobytes()).hexdigest()


VOCABULARY = tuple(
    ["about", "above", "across", "after", "again", "against", "almost", "alone", "along", "already", "also", "always", "among", "animal", "answer", "anything", "apple", "around", "autumn", "away", "baby", "balance", "banana", "basket", "beautiful", "because", "become", "bedroom", "before", "began", "behind", "believe", "below", "beside", "better", "between", "beyond", "bicycle", "blue", "board", "body", "book", "bottom", "bottle", "bread", "bridge", "bring", "brother", "brought", "build", "business", "butter", "calendar", "camera", "captain", "careful", "carry", "castle", "center", "certain", "chair", "change", "chicken", "children", "church", "circle", "city", "clear", "climb", "close", "clothes", "coffee", "cold", "color", "common", "complete", "copper", "corner", "cotton", "country", "course", "cousin", "cover", "dance", "danger", "daughter", "december", "decide", "deep", "depend", "desert", "different", "dinner", "direction", "distance", "doctor", "dollar", "dozen", "dream", "during", "early", "earth", "east", "effort", "either", "electric", "elephant", "empty", "engine", "enough", "evening", "every", "example", "expect", "family", "famous", "farmer", "father", "february", "feather", "figure", "finger", "finish", "fire", "flower", "follow", "foreign", "forest", "forget", "forward", "fourteen", "friend", "frozen", "funny", "garden", "gentle", "giant", "glass", "golden", "government", "grandmother", "great", "green", "ground", "guitar", "happen", "happy", "harbor", "hammer", "heard", "heart", "heavy", "history", "holiday", "honey", "horse", "hospital", "hotel", "hundred", "hungry", "husband", "imagine", "important", "inside", "island", "january", "journey", "jungle", "kettle", "kitchen", "knowledge", "ladder", "language", "laughter", "lawyer", "learn", "leather", "lemon", "letter", "library", "listen", "little", "machine", "market", "matter", "meadow", "measure", "medicine", "memory", "message", "middle", "million", "minute", "mirror", "modern", "moment", "monday", "money", "monkey", "month", "morning", "mother", "mountain", "mouth", "movement", "music", "narrow", "nature", "neighbor", "nephew", "newspaper", "nothing", "number", "ocean", "october", "office", "often", "orange", "ordinary", "other", "outside", "oxygen", "painter", "paper", "parent", "particular", "pattern", "people", "pepper", "perhaps", "picture", "piece", "planet", "pleasant", "pocket", "poem", "popular", "potato", "prepare", "present", "pressure", "pretty", "probably", "problem", "promise", "proper", "public", "purple", "question", "quickly", "quiet", "rabbit", "railway", "rather", "ready", "really", "reason", "record", "remember", "repeat", "report", "restaurant", "return", "river", "rough", "sailor", "salad", "saturday", "school", "science", "season", "second", "secret", "sentence", "several", "shadow", "shoulder", "silence", "silver", "simple", "single", "sister", "sixteen", "smooth", "soldier", "something", "sometimes", "southern", "special", "spider", "spring", "square", "station", "stomach", "stranger", "street", "strong", "student", "sudden", "sugar", "suggest", "summer", "sunday", "supper", "surface", "surprise", "table", "teacher", "telephone", "temper", "themselves", "theater", "thought", "thousand", "through", "thunder", "ticket", "tiger", "together", "tomato", "tomorrow", "travel", "treasure", "trouble", "under", "understand", "uniform", "until", "usual", "valley", "vegetable", "village", "violin", "visit", "voice", "volcano", "wagon", "water", "weather", "wednesday", "weight", "western", "whether", "whisper", "white", "window", "winter", "within", "without", "wonder", "wooden", "yellow", "yesterday", "young"]
)
"""What the built-in voices say where no other background is given."""
LENGTHS = (1, 20, 2, 20, 3, 20)  # words of what is said, in turn
SPOKEN = {"training": 60, "calibrating": 120}
"""How much the built-in voices say: about five minutes and ten."""


def built_in_background(words: Sequence[str] = (), spoken: dict[str, int] | None = None) -> Background:
    """The built-in voices, half of which train and half of which calibrate, speaking anything but these words.

    They are heard once and kept on disk. Their rooms are quiet and nobody interrupts them: a threshold for a room with
    a television needs recordings of one. `spoken` says how many recordings of each part there are.
    """
    said = {part for word in words for part in word.lower().split()}
    vocabulary = tuple(word for word in VOCABULARY if word not in said)
    counts = SPOKEN if spoken is None else spoken
    voices = {"training": VOICES[::2], "calibrating": VOICES[1::2]}
    name = hashlib.sha256(
        repr((1, EmbeddingConfig("speech").weights, vocabulary, LENGTHS, counts)).encode()
    ).hexdigest()
    path = cache_folder() / "backgrounds" / f"{name[:32]}.npz"
    if not path.is_file():
        heard = {part: _spoken(vocabulary, voices[part], count, part) for part, count in counts.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, durable=False) as temporary, temporary.open("wb") as file:
            np.savez(file, allow_pickle=False, **_plain(heard))
    with np.load(path, allow_pickle=False) as kept:
        parts = {part: tuple(_stream(kept, part, place) for place in range(counts[part])) for part in counts}
    return Background(parts["training"], parts["calibrating"], "the built-in voices")


def _spoken(vocabulary: Sequence[str], voices: Sequence[Voice], count: int, part: str) -> list[Stream]:
    network, found = SpeechWindows(EmbeddingConfig("speech")), []
    with Espeak() as espeak:
        for place in track(range(count), f"Built-in voices, {part}"):
            generator = np.random.default_rng([place, len(voices), part == "training"])
            text = " ".join(generator.choice(vocabulary, LENGTHS[place % len(LENGTHS)]))
            speech = voices[place % len(voices)].say(text, espeak, generator)
            recording = Room.draw(generator).record(speech, RATE, generator)
            found.append(Stream.of(recording, network, RATE))
    return found


def _plain(heard: dict[str, list[Stream]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part, streams in heard.items():
        for place, each in enumerate(streams):
            found[f"{part}-{place}"] = each.embeddings.astype(np.float32)
            found[f"{part}-{place}-told"] = np.array([f"{each.seconds!r}", each.digest])
            if each.whole is not None:
                found[f"{part}-{place}-whole"] = each.whole.astype(np.float32)
    return found


def _stream(kept: Any, part: str, place: int) -> Stream:
    name = f"{part}-{place}"
    seconds, digest = kept[f"{name}-told"].tolist()
    whole = kept[f"{name}-whole"].astype(np.float64) if f"{name}-whole" in kept else None
    return Stream(kept[name].astype(np.float64), whole, float(seconds), digest)
