"""Speech emotion (EmoDB): the emotion kept, ten speakers hidden, by linear minimax filters (Hamm 2015, figure 3).

EmoDB stands in for the Enterface corpus of the paper. A sentence is 52 numbers: mean, maximum, minimum and deviation of
13 cepstra over time. In every trial a fifth of each speaker's sentences is drawn for the test, as in the paper; the
same ten texts are in both parts, no recording is. The headline is all seven emotions; happy or not stands beside it.

Needs the corpus emodb; --quick takes about 10 s.
"""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Frames, MfccConfig, utterance_statistics
from ppspeech.data import Corpus, FeatureStore, hold_out, load_corpus, numbered
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.minimax import Experiment, figures, run_trials
from ppspeech.evidence.experiments.minimax_clips import QUICK, clip_figures, code_filters, run_clips
from ppspeech.evidence.experiments.minimax_frames import Speech, frame_figures, learn_on_frames
from ppspeech.figures import Figure
from ppspeech.filters import Learning

TEST_SHARE = 0.2
CHOSEN = "start, rho, iterations, ridges: about 20 settings compared on draws 0 and 100 to 105 of the same sentences"
LEARNING = Learning(rho=2.0, iterations=5)
FRAMES = 6_000


@EXPERIMENTS.register("minimax-emodb")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Learn filters, attack them and save the plots as `minimax_emodb.png` and `minimax_emodb_happy.png` in `folder`.
    Quick is two trials at d = 10, all emotions, no frames; else ten at d = 5, 10, 20 and 40, both tasks, and frames.
    """
    experiment = emotions((10,) if quick else (5, 10, 20, 40))
    made = figures(experiment, run_trials(experiment, 2 if quick else 10), folder, CHOSEN)
    others = code_filters(7, (1,) if quick else (1, 2, 4))
    if not quick:
        others["linear"] = lambda x, private, task, seed: LEARNING.fit(x, private, task, 10, seed).filter
    clips = run_clips(experiment, others, (10,) if quick else (10, 11, 12, 13, 14), QUICK if quick else None)
    made += clip_figures(experiment, clips, "sentence")
    if quick:
        return made
    happy = happiness(experiment)
    made += figures(happy, run_trials(happy, 10), folder, CHOSEN)
    speech = by_frames()
    learned = learn_on_frames(speech, 13, LEARNING, FRAMES, seed=0)
    return [*made, *frame_figures("minimax.emodb", speech, {"": learned}, "d = 13 of 39, one draw")]


def emotions(dimensions: tuple[int, ...]) -> Experiment:
    """All seven emotions against the speaker, at some dimensions, 10 among them."""
    corpus = load_corpus("emodb")
    speakers = labels(corpus, "speaker")
    sentences = torch.arange(len(corpus))
    return Experiment(
        name="emodb",
        title="EmoDB: emotion against speaker",
        inputs=utterance_statistics(frames(corpus, MfccConfig.hamm2015())),
        private=speakers,
        task=labels(corpus, "emotion"),
        split=lambda trial: hold_out(speakers, sentences, TEST_SHARE, trial),
        dimensions=dimensions,
        main=10,
        learning=LEARNING,
        unseen=lambda trial: hold_out(speakers, sentences, TEST_SHARE, 1_000 + trial),
    )


def happiness(experiment: Experiment) -> Experiment:
    """Happy or not, the task of the paper, on the same sentences."""
    happy = load_corpus("emodb").labels("emotion").index("happiness")
    title = "EmoDB: happy or not against speaker"
    return replace(experiment, name="emodb_happy", title=title, task=(experiment.task == happy).long())


def by_frames() -> Speech:
    """Cepstra with derivatives; every frame carries its sentence's emotion."""
    corpus = load_corpus("emodb")
    speakers, emotion = labels(corpus, "speaker"), labels(corpus, "emotion")
    sequence = frames(corpus, replace(MfccConfig(), cmvn="none"))
    target = emotion.unsqueeze(-1).expand(sequence.features.shape[:2])
    return Speech(sequence, speakers, emotion, target, hold_out(speakers, torch.arange(len(corpus)), TEST_SHARE, 0))


def frames(corpus: Corpus, config: MfccConfig) -> Frames:
    """Padded features of a corpus."""
    features = FeatureStore(config).load(corpus.utterances)
    return Frames(pad_sequence(features, batch_first=True), torch.tensor([len(x) for x in features]))


def labels(corpus: Corpus, field: str) -> Tensor:
    """The place of each utterance's label among the sorted ones, `(utterances,)`."""
    return numbered([getattr(u, field) for u in corpus])[1]
