"""Motion (UCI HAR): six activities kept, 15 people hidden, by linear minimax filters (Hamm 2015, figure 4).

The people are the first 15 (the other 15 are for personal filters). In every trial half of each person's recordings of
each activity are drawn for the test: neighboring windows overlap, so no recording is divided. The paper divides by
window, where overlapping windows make subjects look easier to identify.

Needs the table har; --quick takes about 25 s.
"""

from pathlib import Path

from ppspeech.data import hold_out
from ppspeech.data.tables import load_har
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.minimax import Experiment, figures, run_trials
from ppspeech.evidence.experiments.minimax_clips import QUICK, clip_figures, code_filters, run_clips
from ppspeech.figures import Figure
from ppspeech.filters import Learning

PEOPLE = 15
CHOSEN = (
    "rho, start, iterations and ridges: about 30 settings compared on draws 0 and 100 of the same people's recordings"
)


@EXPERIMENTS.register("minimax-har")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Learn, attack and plot `minimax_har.png`; quick is two trials at d = 20 instead of ten at four sizes."""
    experiment = motion((20,) if quick else (10, 20, 50, 100))
    found = run_trials(experiment, 2 if quick else 10)
    classes = int(experiment.task.max()) + 1
    others = code_filters(classes, (1,) if quick else (1, 2, 4))
    if not quick:
        others["linear"] = lambda x, private, task, seed: experiment.learning.fit(x, private, task, 20, seed).filter
    clips = run_clips(experiment, others, (10,) if quick else (10, 11, 12), QUICK if quick else None)
    return [*figures(experiment, found, folder, CHOSEN), *clip_figures(experiment, clips, "window")]


def motion(dimensions: tuple[int, ...]) -> Experiment:
    """The experiment at some dimensions, 20 among them."""
    table = load_har()
    assert table.groups is not None
    table = table.select(table.groups <= PEOPLE)
    assert table.groups is not None
    people, recordings = table.groups - 1, table.extra["recording"]
    cells = people * len(table.label_names) + table.labels
    return Experiment(
        name="har",
        title="UCI HAR: activity against subject",
        inputs=table.features,
        private=people,
        task=table.labels,
        split=lambda trial: hold_out(cells, recordings, 0.5, trial),
        dimensions=dimensions,
        main=20,
        learning=Learning(rho=1.0, iterations=5),
        unseen=lambda trial: hold_out(cells, recordings, 0.3, 1_000 + trial),
    )
