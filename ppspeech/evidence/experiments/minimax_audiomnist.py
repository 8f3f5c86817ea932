"""Spoken digits (AudioMNIST): the digit kept, 60 speakers hidden, on utterances and on frames, linear and not.

An utterance is 260 public numbers: the 52 of Hamm 2015 (mean, maximum, minimum, deviation of 13 cepstra over time) and
the means of 13 normalized cepstra and their derivatives over eighths of its length. In every trial two of each
speaker's eight takes are drawn for the test, all digits of them. The speakers are the same in both parts: hiding people
from someone who has their filtered speech is what the filter is for. The built-in voices are measured likewise.

Needs the corpus audiomnist; --quick takes about 20 s.
"""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from ppspeech.audio import Frames, MfccConfig, length_mask, utterance_statistics
from ppspeech.data import Corpus, SyntheticCorpus, load_corpus
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.minimax import Experiment, figures, run_trials
from ppspeech.evidence.experiments.minimax_clips import (
    QUICK,
    Learn,
    certified_figures,
    clip_figures,
    code_filters,
    run_clips,
)
from ppspeech.evidence.experiments.minimax_emodb import frames, labels
from ppspeech.evidence.experiments.minimax_frames import (
    Speech,
    filtered,
    frame_figures,
    learn_frame_codes,
    learn_on_frames,
)
from ppspeech.figures import Figure
from ppspeech.filters import Learning, fit_without_means
from ppspeech.filters.attack import UNKNOWN
from ppspeech.models import GaussianEmission, HiddenMarkovModel, Prior, baum_welch, flat_start_, left_right

SEGMENTS, TEST_TAKES = 8, 2
STATES, ITERATIONS = 5, 3
LEARNING = Learning(rho=0.3, iterations=5, adversary="least squares")
FRAMES, CODED_FRAMES = 5_000, 40_000
CHOSEN = "inputs, start, rho: about 30 settings compared on one draw (takes 1 and 5) of the same people"


@EXPERIMENTS.register("minimax-audiomnist")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Learn filters, attack them and save the plots as `minimax_audiomnist.png` and `minimax_voices.png` in `folder`.

    Quick is 12 speakers and two trials at d = 10, no frames, no voices; else 60 and ten at d = 5, 10 and 20, a frame
    filter with 10 of the people unknown to the attackers, word models on filtered frames, and the voices.
    """
    corpus = load_corpus("audiomnist")
    if quick:
        some = set(corpus.speakers[:12])
        experiment = digits("audiomnist", corpus.select(lambda u: u.speaker in some), (10,))
        made = figures(experiment, run_trials(experiment, 2), folder, CHOSEN)
        clips = run_clips(experiment, code_filters(10, (1,)), (10,), QUICK)
        return [*made, *clip_figures(experiment, clips), *certified_figures(experiment, 0.2, 10)]
    experiment = digits("audiomnist", corpus, (5, 10, 20))
    made = figures(experiment, run_trials(experiment, 10), folder, CHOSEN)
    clips = run_clips(experiment, {**code_filters(10), **_linear()}, (10, 11, 12))
    made += [*clip_figures(experiment, clips), *certified_figures(experiment, 0.1, 10)]
    voices = digits("voices", SyntheticCorpus(speakers=12, takes=6).build(), (10,))
    made += figures(voices, run_trials(voices, 3), folder, CHOSEN)
    return [*made, *_by_frames(corpus)]


def digits(name: str, corpus: Corpus, dimensions: tuple[int, ...]) -> Experiment:
    """Digits against speakers at some dimensions, 10 among them; with a sigmoid network beside the linear filters."""
    takes = torch.tensor([u.take for u in corpus])
    return Experiment(
        name=name,
        title=f"{corpus.name}: digit against speaker",
        inputs=utterance_vectors(corpus),
        private=labels(corpus, "speaker"),
        task=labels(corpus, "word"),
        split=lambda trial: torch.isin(takes, _drawn(takes, trial)),
        dimensions=dimensions,
        main=10,
        learning=LEARNING,
        networks={"sigmoid": sigmoid_network},
        unseen=lambda trial: torch.isin(takes, _drawn(takes, trial, TEST_TAKES)),
    )


def _linear() -> dict[str, Learn]:
    """Of ten features: the linear filter, the same against those who have ten clips or know the digit, the one without
    means of people, and the sigmoid network.
    """
    against_sets = replace(LEARNING, clips=10)
    return {
        "linear": lambda x, private, task, seed: LEARNING.fit(x, private, task, 10, seed).filter,
        "sets": lambda x, private, task, seed: against_sets.fit(x, private, task, 10, seed).filter,
        "means": lambda x, private, task, seed: fit_without_means(x, private, task, 10, seed),
        "sigmoid": sigmoid_network,
    }


def sigmoid_network(inputs: Tensor, private: Tensor, task: Tensor, seed: int) -> nn.Module:
    """Two layers of ten sigmoids, pre-trained as denoising autoencoders and on the task (Hamm 2015 section 5.1)."""
    return replace(LEARNING, filter="sigmoid", iterations=20).fit(inputs, private, task, 10, seed).filter


def utterance_vectors(corpus: Corpus) -> Tensor:
    """One vector an utterance, `(utterances, 260)`; what is public about it is fixed in advance."""
    plain = utterance_statistics(frames(corpus, MfccConfig.hamm2015(corpus.sample_rate)))
    shape = frames(corpus, replace(MfccConfig.at_rate(corpus.sample_rate), deltas=1))
    return torch.cat([plain, segment_means(shape, SEGMENTS)], dim=-1)


def segment_means(sequence: Frames, segments: int) -> Tensor:
    """Means over equal parts of each utterance's length, `(utterances, segments * features)`.

    Parts are whole frames and overlap by one where the length does not divide; none is empty.

    >>> segment_means(Frames(torch.tensor([[[1.0], [3.0], [5.0], [0.0]]]), torch.tensor([3])), 2)
    tensor([[2., 4.]])
    """
    x, lengths = sequence
    time = torch.arange(x.shape[1], device=x.device)
    means = []
    for part in range(segments):
        first = lengths * part // segments
        end = -(-lengths * (part + 1) // segments)  # rounded up
        inside = ((time >= first.unsqueeze(-1)) & (time < end.unsqueeze(-1))).unsqueeze(-1)
        means.append((x * inside).sum(1) / inside.sum(1))
    return torch.cat(means, dim=-1)


def _drawn(takes: Tensor, trial: int, first: int = 0) -> Tensor:
    """The takes to test on; further ones from `first` on."""
    there: Tensor = torch.unique(takes)
    order = torch.randperm(len(there), generator=torch.Generator().manual_seed(trial))
    return there[order[first : first + TEST_TAKES]]


def _by_frames(corpus: Corpus) -> list[Figure]:
    """A filter on frames that keeps which fifth of which digit each is from, and the words that HMMs tell behind it."""
    speech = by_frames(corpus, unknown=10)
    # 50 targets a frame, ten digits in fifths: least squares on both sides.
    learning = replace(LEARNING, aggregator="least squares")
    learned = learn_on_frames(speech, 13, learning, FRAMES, seed=0)
    coded = learn_frame_codes(speech, CODED_FRAMES, seed=0)
    both = {"": learned, "codes": coded}
    made = frame_figures("minimax.audiomnist", speech, both, "d = 13 of 39, or 50 codes a frame; one draw of takes")
    for name, module in (("frames", learned), ("frames.codes", coded), ("frames.no_filter", nn.Identity())):
        note = f"words told by hidden Markov models of {STATES} states on filtered frames"
        right, tested = words_told(speech, module), int(speech.is_test.sum())
        made.append(Figure.share(f"minimax.audiomnist.{name}.words", right, tested, "utterances", note=note))
    return made


def by_frames(corpus: Corpus, unknown: int) -> Speech:
    """Normalized cepstra with derivatives; a frame's target is its digit and which fifth of the utterance it is in. Of
    the people the last `unknown` are met in training by neither filter nor attackers.
    """
    sequence = frames(corpus, MfccConfig.at_rate(corpus.sample_rate))
    speakers, words, takes = labels(corpus, "speaker"), labels(corpus, "word"), torch.tensor([u.take for u in corpus])
    people = len(corpus.speakers) - unknown
    met = speakers < people
    is_test = torch.isin(takes, _drawn(takes, 0))
    used = is_test | met
    part = torch.arange(sequence.features.shape[1]) * STATES // sequence.lengths.unsqueeze(-1)
    target = words.unsqueeze(-1) * STATES + part.clamp_max(STATES - 1)
    return Speech(
        Frames(sequence.features[used], sequence.lengths[used]),
        torch.where(met, speakers, UNKNOWN)[used],
        words[used],
        target[used],
        is_test[used],
    )


def words_told(speech: Speech, module: nn.Module) -> int:
    """Test utterances whose word a bank of hidden Markov models, trained behind the filter, tells."""
    train, test = filtered(speech, module)
    scale = train.features[length_mask(train.lengths, train.features.shape[1])].std(0).clamp_min(1e-9)
    prior = Prior(covariance=1_000.0)
    words = int(speech.task.max()) + 1
    bank = HiddenMarkovModel(left_right(STATES), GaussianEmission(words, STATES, len(scale), floor=1e-2))
    data = train.features / scale, train.lengths, speech.task[~speech.is_test]
    flat_start_(bank, *data, prior)
    baum_welch(bank, *data, ITERATIONS, prior)
    with torch.no_grad():
        blocks = zip(torch.split(test.features / scale, 100), torch.split(test.lengths, 100), strict=True)
        heard = torch.cat([bank(x, lengths).argmax(-1) for x, lengths in blocks])
    return int((heard == speech.task[speech.is_test]).sum())
