"""A server one of whose labels is no text, or nothing: what its client does next must not tell that it was said."""

from dataclasses import replace

from ppspeech.arrays import Reals
from ppspeech.errors import PpspeechError
from ppspeech.evidence.attacks import Gain, NotHereError, Target, attack
from ppspeech.evidence.attacks.hostile_server import pretending
from ppspeech.evidence.attacks.target import RATE
from ppspeech.protocols import Meeting
from ppspeech.protocols.scores import WordArrays
from ppspeech.protocols.words import KeywordJob, answer, encode_models
from ppspeech.service import Request, connect_through

MARKS = (2**56 - 1, 0)  # what stands in place of a label: bytes that are no UTF-8, and none


def with_mark(models: WordArrays, marked: int, mark: int) -> WordArrays:
    """The same models, one of whose labels is spelled in residues of the server's choice."""
    bad, numbers = replace(models), models.label_numbers.copy()
    numbers[marked] = mark
    bad.__dict__["label_numbers"] = numbers  # where the property would keep them
    return bad


@attack("marked_label", "whether one of the words was said, by a label that is no text")
def marked_label(target: Target) -> Gain:
    """Half of the clips are of the marked word; the server guesses from what it sees of each session, beside one of
    which it knows the word.
    """
    victim = target.usual
    models = target.models_of(victim)
    encoded = encode_models(models)
    marked, sounds = _sounds(target, models, 1 if target.quick else 2)
    views: list[object] = []
    guessed, tries = 0, 0
    for mark in MARKS:
        bad = with_mark(models, marked, mark)

        def help_client(met: Meeting, request: Request, bad: WordArrays = bad) -> None:
            answer(met, KeywordJob(models.shape, request.utterances), bad, encoded)

        views.clear()
        with pretending(victim, help_client, lambda *view: views.append(view)) as door:
            said = [False, *(is_marked for _ in sounds[True] for is_marked in (True, False))]
            for number, is_marked in enumerate(said):
                sound = sounds[is_marked][(number - 1) // 2 if number else 0]
                try:
                    with connect_through(door) as client:
                        client.recognize_all([sound, sound], RATE, "frames")  # the second comes in any case
                except PpspeechError:
                    pass  # the client's own affair: what counts is what the server saw
        guesses = [view != views[0] for view in views[1:]]
        guessed += sum(guess == is_marked for guess, is_marked in zip(guesses, said[1:], strict=True))
        tries += len(guesses)
    told = abs(2 * guessed / tries - 1)
    return Gain(told, "of the clips", tries, told > 0.5, f"{guessed} of {tries} guesses were right, half by chance")


def _sounds(target: Target, models: WordArrays, each: int) -> tuple[int, dict[bool, list[Reals]]]:
    """A label, and clips of which it is the word, or is not: the built-in voices saying the model's own words."""
    bundle = target.bundle
    assert bundle is not None
    heard: dict[str, list[Reals]] = {}
    longest = int(max(1, models.shape.frames - 2) * bundle.mfcc.hop_s * RATE)
    for voice in range(24):
        text = models.labels[voice % len(models.labels)]
        sound = target.spoken(text if text.isalpha() else "one", voice)[:longest]
        try:
            word = bundle.recognize(sound, RATE).value
        except PpspeechError:
            continue
        heard.setdefault(str(word), []).append(sound)
        enough = [word for word, sounds in heard.items() if len(sounds) >= each]
        others = [sound for word, sounds in heard.items() for sound in sounds if enough and word != enough[0]]
        if enough and len(others) >= each:
            return models.labels.index(enough[0]), {True: heard[enough[0]][:each], False: others[:each]}
    raise NotHereError("the model hears the same word in all of the built-in voices")
