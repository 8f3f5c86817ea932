"""The background where none is given: the built-in voices, saying anything."""

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from zipfile import BadZipFile

import numpy as np

from ppspeech.audio.embeddings import EmbeddingConfig, SpeechWindows
from ppspeech.audio.voices import VOICES, Espeak, Room
from ppspeech.progress import track
from ppspeech.storage import atomic_write, cache_folder
from ppspeech.training.own_words.background import RATE, Background, Stream

WORDS = """
about above across after again against almost alone along already also always among animal answer anything apple
around autumn away baby balance banana basket beautiful because become bedroom before began behind believe below
beside better between beyond bicycle blue board body book bottom bottle bread bridge bring brother brought build
business butter calendar camera captain careful carry castle center certain chair change chicken children church
circle city clear climb close clothes coffee cold color common complete copper corner cotton country course cousin
cover dance danger daughter december decide deep depend desert different dinner direction distance doctor dollar
dozen dream during early earth east effort either electric elephant empty engine enough evening every example expect
family famous farmer father february feather figure finger finish fire flower follow foreign forest forget forward
fourteen friend frozen funny garden gentle giant glass golden government grandmother great green ground guitar
happen happy harbor hammer heard heart heavy history holiday honey horse hospital hotel hundred hungry husband
imagine important inside island january journey jungle kettle kitchen knowledge ladder language laughter lawyer
learn leather lemon letter library listen little machine market matter meadow measure medicine memory message middle
million minute mirror modern moment monday money monkey month morning mother mountain mouth movement music narrow
nature neighbor nephew newspaper nothing number ocean october office often orange ordinary other outside oxygen
painter paper parent particular pattern people pepper perhaps picture piece planet pleasant pocket poem popular
potato prepare present pressure pretty probably problem promise proper public purple question quickly quiet rabbit
railway rather ready really reason record remember repeat report restaurant return river rough sailor salad saturday
school science season second secret sentence several shadow shoulder silence silver simple single sister sixteen
smooth soldier something sometimes southern special spider spring square station stomach stranger street strong
student sudden sugar suggest summer sunday supper surface surprise table teacher telephone temper themselves theater
thought thousand through thunder ticket tiger together tomato tomorrow travel treasure trouble under understand
uniform until usual valley vegetable village violin visit voice volcano wagon water weather wednesday weight western
whether whisper white window winter within without wonder wooden yellow yesterday young
"""
"""What the built-in voices say where no other background is given."""
FORMAT = 1  # to be raised when the same texts give other embeddings
LENGTHS = (1, 20, 2, 20, 3, 20)  # words of what is said, in turn
SPOKEN: Mapping[str, int] = MappingProxyType({"training": 120, "calibrating": 120})
"""How much the built-in voices say: about ten minutes each. More of it teaches more: of FSDD's digits, with five clips
each, a fifth fewer are missed with ten minutes than with five, and a third fewer with forty-five."""


def built_in_background(words: Sequence[str] = (), spoken: Mapping[str, int] | None = None) -> Background:
    """The built-in voices, half of which train and half of which calibrate, saying nothing of these words.

    They are heard once and kept on disk. Their rooms are quiet and nobody interrupts them: a threshold for a room with
    a television needs recordings of one. `spoken` says how many recordings of each part there are.
    """
    counts = SPOKEN if spoken is None else spoken
    said = {part for word in words for part in word.lower().split()}
    parts = {
        part: tuple(
            stream
            for text, stream in zip(_texts(part, count), _kept(part, count), strict=True)
            if said.isdisjoint(text.split())
        )
        for part, count in counts.items()
    }
    return Background(parts["training"], parts["calibrating"], "the built-in voices")


def _texts(part: str, count: int) -> list[str]:
    """What is said, always the same."""
    generator = np.random.default_rng(len(part))
    return [" ".join(generator.choice(WORDS.split(), LENGTHS[place % len(LENGTHS)])) for place in range(count)]


def _kept(part: str, count: int) -> list[Stream]:
    """A part of the background, from the disk or spoken now."""
    what = repr((FORMAT, EmbeddingConfig("speech").weights, part, _texts(part, count))).encode()
    path = cache_folder() / "backgrounds" / f"{hashlib.sha256(what).hexdigest()[:32]}.npz"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            return [_stream(kept, place) for place in range(count)]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # absent, or damaged from outside
        found = _spoken(part, count)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, durable=False) as temporary, temporary.open("wb") as written:
        np.savez(written, allow_pickle=False, **_plain(found))
    return found


def _spoken(part: str, count: int) -> list[Stream]:
    network, voices = SpeechWindows(EmbeddingConfig("speech")), VOICES[part == "calibrating" :: 2]
    found = []
    with Espeak() as espeak:
        for place, text in enumerate(track(_texts(part, count), "Hearing the built-in voices")):
            generator = np.random.default_rng([place, len(part)])
            speech = voices[place % len(voices)].say(text, espeak, generator)
            found.append(Stream.of(Room.draw(generator).record(speech, RATE, generator), network, RATE))
    return found


def _plain(streams: Sequence[Stream]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for place, each in enumerate(streams):
        found[f"{place}"] = each.embeddings.astype(np.float32)
        found[f"{place}-told"] = np.array([repr(each.seconds), each.digest])
        if each.whole is not None:
            found[f"{place}-whole"] = each.whole.astype(np.float32)
    return found


def _stream(kept: Any, place: int) -> Stream:
    seconds, digest = kept[f"{place}-told"].tolist()
    whole = kept[f"{place}-whole"].astype(np.float64) if f"{place}-whole" in kept else None
    return Stream(kept[f"{place}"].astype(np.float64), whole, float(seconds), digest)
