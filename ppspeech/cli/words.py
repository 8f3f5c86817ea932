"""`ppspeech words`: words of one's own, learned from a few clips."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.training.own_words import LearnedWords, WordClips


def learn(
    folder: Annotated[
        Path | None, typer.Argument(help="One folder a word, with clips of it, or with a folder of them a speaker.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The bundle.")] = Path("words"),
    word: Annotated[
        list[str] | None, typer.Option(help="With --voices: a word that they say; several times for several.")
    ] = None,
    voices: Annotated[
        int, typer.Option(help="So many built-in voices say the words too, each twice.", min=0, max=56)
    ] = 0,
    background: Annotated[
        Path | None,
        typer.Option(
            help="Other speech, public, with a folder for each person; the built-in voices unless given. Some hours of "
            "the rooms where it will listen are best."
        ),
    ] = None,
    head: Annotated[str, typer.Option(help="`logistic`, or `margin`, large-margin Gaussians.")] = "logistic",
    over: Annotated[
        Literal["utterance", "window"],
        typer.Option(help="`utterance`: what is said is cut out already; `window`: it listens on, every 80 ms."),
    ] = "utterance",
    alarms: Annotated[float, typer.Option(help="How often an hour other speech may be taken for a word.")] = 1.0,
    epsilon: Annotated[
        float | None, typer.Option(help="Learn with differential privacy, for those in the clips.")
    ] = None,
    delta: Annotated[float, typer.Option(help="With --epsilon.")] = 1e-5,
    unit: Annotated[
        Literal["utterance", "speaker"], typer.Option(help="With --epsilon: protect one clip, or one speaker with all.")
    ] = "utterance",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Learn words from a few clips of each, on a public speech embedding (extra `embeddings`), and write a bundle.

    What is none of the words is rejected: by how much a word must be surer than "other speech" is set on recordings
    that taught nothing, for so many false alarms an hour; where they are too few to show that rate, this says so. A
    head remembers the clips it was learned from, unless --epsilon is given.

    Examples: `ppspeech words learn my_words --out bundle`, `ppspeech words learn --word "lights on" --word "lights off"
    --voices 12 --out bundle`, `ppspeech words learn my_words --background talks --over window --alarms 2 --out bundle`
    """
    from ppspeech.training import WordPrivacy, built_in_background, learn_words
    from ppspeech.training.own_words import WordClips, background_at

    if folder is None and not (voices and word):
        raise PpspeechError("give a folder with one folder of clips a word, or --voices N and --word, or both")
    if word and not voices:
        raise PpspeechError("--word goes with --voices N, how many built-in voices say it")
    privacy = None if epsilon is None else WordPrivacy(epsilon, delta, unit)
    known = WordClips()
    if folder is not None:
        known.add_folder(folder)
    if voices:
        known.add_voices(sorted({*known.clips, *(word or ())}), voices)
    others = built_in_background(list(known.clips)) if background is None else background_at(background)
    learned = learn_words(
        known.clips,
        others,
        head=head,  # type: ignore[arg-type]  # refused there
        over=over,
        alarms_an_hour=alarms,
        privacy=privacy,
        speakers=known.people,
    )
    learned.release(out)
    _show(learned, known, out, as_json)


def _show(learned: "LearnedWords", known: "WordClips", out: Path, as_json: bool) -> None:
    calibration, record = learned.calibration, learned.record
    assert calibration is not None
    guarantee = None if record is None else record.guarantee()
    if as_json:
        told = {
            "bundle": str(out),
            "words": {word: len(clips) for word, clips in known.clips.items()},
            "reject": calibration.reject,
            "alarms_an_hour": calibration.alarms_an_hour,
            "background_hours": calibration.hours,
            "alarms": calibration.alarms,
            "shown_an_hour": calibration.shown,
            "extrapolated": calibration.extrapolated,
            "guarantee": None if guarantee is None else str(guarantee),
        }
        typer.echo(json.dumps(told))
        return
    console = Console()
    counts = ", ".join(f"{word} ({len(clips)})" for word, clips in known.clips.items())
    console.print(f"{out}: {len(known.clips)} words, with clips of each: {counts}")
    console.print(f"  {calibration}")
    none = "nothing is promised to those who speak in the clips: --epsilon 4 would"
    console.print(f"  {none if guarantee is None else guarantee}")
    console.print(f"  ppspeech recognize {out} clip.wav")


WORDS_COMMANDS: dict[str, Callable[..., None]] = {"learn": learn}
