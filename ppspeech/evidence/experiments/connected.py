"""Connected words in the clear: errors with and without a floor under scores, and the range that is certain.

Digits of 15 people never heard (AudioMNIST), of known people (FSDD), both joined to sentences, and sentences as spoken
(yesno), all at 30 ms a frame. A floor F means that what a frame scores counts as the highest score less F nats where it
is below: what an encrypted service must have, unless every frame that can be sent is certain to score more.

Needs the corpora audiomnist, fsdd and yesno; takes about a minute.
"""

from pathlib import Path

from ppspeech.evidence.connected import CONNECTED, Connected, lowest_in_ball, score_weights
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.protocols.scores import column_bounds

DEPTHS = (64, 128, 256, 400, 512, 1024)
NONE = 1 << 14  # nats: below what any frame scores
BEYOND = 1.1  # of the largest norm of a training frame: the ball that a client would clip frames to


@EXPERIMENTS.register("connected")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001 (nothing to draw)
    """Word error rates on test sentences; the depth is chosen on sentences of training speakers.

    `quick`: FSDD alone.
    """
    figures = []
    for name in ("fsdd",) if quick else CONNECTED:
        made = CONNECTED[name]()
        figures += [*_errors(name, made), *_ranges(name, made)]
    return figures


def _errors(name: str, made: Connected) -> list[Figure]:
    without = made.transcriber(depth=NONE)
    plain, chosen = made.error_rate(without), made.error_rate(without, made.chosen_on)
    count = f"{sum(len(text) for _, text in made.sentences)} words in {len(made.sentences)} sentences"
    found, least = [Figure(f"connected.{name}.wer", plain, note=f"no floor; {count}")], NONE
    lossless = True
    for depth in reversed(DEPTHS):
        floored = made.transcriber(depth=depth)
        rate, known = made.error_rate(floored), made.error_rate(floored, made.chosen_on)
        lossless = lossless and known <= chosen and floored.floor.depth == depth
        least = depth if lossless else least
        doubled = "" if floored.floor.depth == depth else f"; {floored.floor.depth} nats, for every state's room"
        note = f"of training speakers {known:.4f}, {chosen:.4f} without{doubled}"
        found.append(Figure(f"connected.{name}.wer_floor_{depth}", rate, note=note))
    note = "the least floor that adds no error for training speakers"
    return [*found, Figure(f"connected.{name}.depth", least, "nats", note=note)]


def _ranges(name: str, made: Connected) -> list[Figure]:
    """From the highest score of any state to the least of any, for all frames in a box, and in a ball."""
    weights, transcriber = score_weights(made), made.transcriber()
    least, highest = column_bounds(weights, "full", transcriber.limit)
    radius = BEYOND * made.longest
    box, ball = float(highest.max() - least.min()), float(highest.max() - lowest_in_ball(weights, radius).min())
    return [
        Figure(f"connected.{name}.range_box", box, "nats", note=f"every feature within {transcriber.limit:g}"),
        Figure(f"connected.{name}.range_ball", ball, "nats", note=f"norm of a frame within {radius:.1f}"),
    ]
