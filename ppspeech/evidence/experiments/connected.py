"""Connected words in the clear: errors, and the range of what a frame can score, for certain.

Digits of 15 people never heard (AudioMNIST), of known people (FSDD), both joined to sentences, and sentences as spoken
(yesno), all at 30 ms a frame. Shares have a range: either every frame that a client may send is certain to score within
it, because frames are clipped to a ball, or there is a floor under scores, F nats below the highest. Neither may cost
words: both are tried, on sentences of training speakers, to choose by, and on the test.

Needs the corpora audiomnist, fsdd and yesno.
"""

from pathlib import Path

from ppspeech.evidence.connected import CONNECTED, Connected, rate_of, score_weights
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.protocols.scores import ball_bounds, column_bounds

DEPTHS = (64, 128, 256, 400, 512, 1024)
RADII = (9.0, 10.0, 12.0)
FAR = 1e9  # a radius that clips nothing


@EXPERIMENTS.register("connected")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001 (nothing to draw)
    """Word error rates of test sentences, those of training speakers in the notes.

    `quick`: FSDD alone.
    """
    figures = []
    for name in ("fsdd",) if quick else CONNECTED:
        made = CONNECTED[name]()
        figures += [*_errors(name, made), *_ranges(name, made)]
    return figures


def _errors(name: str, made: Connected) -> list[Figure]:
    count = f"{sum(len(text) for _, text in made.sentences)} words in {len(made.sentences)} sentences"
    top = float(column_bounds(score_weights(made), "full", made.transcriber.limit)[1].max())
    tried: dict[str, tuple[float, float | None]] = {"": (made.transcriber.radius, None), "_unclipped": (FAR, None)}
    tried |= {f"_radius_{radius:g}": (radius, None) for radius in RADII}
    tried |= {f"_floor_{depth}": (FAR, top - depth) for depth in DEPTHS}
    found = []
    for way, (radius, floor) in tried.items():
        known = made.errors(made.chosen_on, radius=radius, floor=floor).rate
        errors = made.errors(made.sentences, radius=radius, floor=floor)
        note = f"{errors.errors} errors, {count}; of training speakers {known:.4f}"
        found.append(rate_of(f"connected.{name}.wer{way}", errors, note=note))
    return found


def _ranges(name: str, made: Connected) -> list[Figure]:
    """From the highest score of any state to the least of any, for all frames in a box, and in balls."""
    weights, limit = score_weights(made), made.transcriber.limit
    least, highest = column_bounds(weights, "full", limit)
    note = f"every feature within {limit:g}"
    found = [Figure(f"connected.{name}.range_box", float(highest.max() - least.min()), "nats", note=note)]
    seen = f"the longest training frame is {made.longest:.1f}"
    for radius in (*RADII, made.transcriber.radius):
        apart = float(highest.max() - ball_bounds(weights, "full", radius)[0].min())
        found.append(Figure(f"connected.{name}.range_ball_{radius:.3g}", apart, "nats", note=seen))
    return found
