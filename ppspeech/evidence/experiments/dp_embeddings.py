"""Heads on public embeddings with differential privacy, on tasks where somebody has something to hide.

    wakewords   which of six words a crowd recorded; one recording is protected; five folds by file
    emotions    which of seven emotions ten people acted; one recording, or one person; five folds by person
    accents     German or not, of sixty people who say digits; one person is protected; five folds by person
    genders     women or men, of the same; one person

Words are heard through the speech embedding, the others through the voice embedding, the ten digits of a take joined.
What is learned is a logistic head, by objective perturbation (`ppspeech.training.fit_head`), and also `means`: one
Gaussian a class with a public covariance, whose mean is released as in `dp-emotions`; a person who is protected, and
has one class, gives one vector, the mean of theirs. Delta is 1e-5, add_remove. The scale of the input, and its
directions, are of the built-in voices (words) or of LibriSpeech, which are public. The clip, the regularization at each
epsilon and that an utterance is pooled in one part were chosen on six words of FSDD; that means are released in 52
directions is taken from `dp-emotions`, and 16 and 24 were looked at here, and are worse. That accents are hardly heard,
also without noise, was seen here too: they stay, and genders were added.

Beside them `nonprivate`, the same head without noise, and `public`: for wake words a head of the built-in voices, who
say the six words, for genders one of LibriSpeech, and for the others none, an untrained head. Accuracy is balanced, the
mean over classes of the share that is recognized: guessing, and one answer to all, are right 1/k of the time. A model
whose commonest answer is 95 % of its answers or more has `collapsed`; the share of such models is a figure of its own.

Needs the corpora wakewords, emodb, audiomnist and librispeech, and both embeddings; --quick takes about 2 min.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Frames
from ppspeech.audio.embeddings import EmbeddingConfig, Pooling, VoiceEmbedding
from ppspeech.data import Corpus, FeatureStore, SyntheticCorpus, load_corpus, numbered, read_rows, scale_corpus
from ppspeech.data.corpora import DIGIT_WORDS
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.dp_emotions import all_alike, said_of, whitened
from ppspeech.figures import Figure
from ppspeech.intervals import SHARE, Mean
from ppspeech.models import EmbeddingHead
from ppspeech.privacy.mechanisms import StatisticsRelease
from ppspeech.progress import track
from ppspeech.training import WordPrivacy, fit_head
from ppspeech.training.private import maximize_hmm_

Unit = Literal["utterance", "speaker"]
FOLDS, DRAWS = 5, 5
DELTA = 1e-5
RADIUS = 1.0
QUADRATIC: Mapping[float | None, float] = {None: 0.3, 1.0: 30.0, 4.0: 10.0}
DIRECTIONS = 52  # of public speech, that means are released in: as many as there are in `dp-emotions`
COLLAPSED = 0.95
SPEECH = EmbeddingConfig("speech", pooling=Pooling("utterance", 1))
RATE = 16_000
BLOCK = 32


@dataclass(frozen=True, eq=False)
class Task:
    """Vectors with their classes, and whose they are.

    Attributes:
        vectors: `(utterances, features)`.
        classes: of each, 0 to k - 1.
        people: whose each is; every recording's own where nobody knows.
        folds: in which fold each is tested; nobody is in two.
        units: what is protected.
        scale: public vectors that scale them, `(many, features)`.
        public: public vectors with classes, to learn from; none where there are none.
        over: what intervals are over.
    """

    name: str
    vectors: Tensor
    classes: Tensor
    people: Tensor
    folds: Tensor
    units: tuple[Unit, ...]
    scale: Tensor
    public: tuple[Tensor, Tensor] | None = None
    over: str = "people"


@EXPERIMENTS.register("dp-embeddings")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001
    """Quick: one draw of the noise instead of five, and two takes of everyone's digits instead of eight."""
    readers = load_corpus("librispeech", part="background")
    scale = heard_voices([[sound] for sound in _waveforms(readers)])
    women = torch.tensor([int(u.gender == "f") for u in readers])
    tasks = (wake_words(), emotions(scale), *groups(scale, women, takes=2 if quick else 8))
    return [figure for task in tasks for figure in figures_of(task, 1 if quick else DRAWS)]


def figures_of(task: Task, draws: int) -> list[Figure]:
    """Every case of a task."""
    figures = _figures(task, "public", torch.stack([answers(task, None, None, public=True)]), "no private speech")
    figures += _figures(task, "nonprivate", torch.stack([answers(task, None, None)]), "no noise")
    for unit in task.units:
        for epsilon in (each for each in QUADRATIC if each is not None):
            heard = torch.stack([answers(task, epsilon, unit) for _ in range(draws)])
            promised = WordPrivacy(epsilon, DELTA, unit).hook(QUADRATIC[epsilon])
            note = f"epsilon {epsilon:g}, delta {DELTA:g}, one {promised.relation.unit}, {promised.relation.adjacency}"
            figures += _figures(task, f"{unit}.eps{epsilon:g}", heard, note)
            if unit == "utterance" or _one_class_each(task):
                told = torch.stack([by_means(task, epsilon, unit) for _ in range(draws)])
                figures += _figures(task, f"{unit}.means.eps{epsilon:g}", told, f"means of classes; {note}")
    return figures


def by_means(task: Task, epsilon: float, unit: Unit) -> Tensor:
    """As `answers`, by one Gaussian a class with a public covariance, whose mean is released as in `dp-emotions`. To
    protect a speaker each gives one vector, and what is promised for a vector is promised for all that they said.
    """
    directions = torch.linalg.svd(task.scale.double() - task.scale.double().mean(0), full_matrices=False).Vh[
        :DIRECTIONS
    ]
    x = whitened(task.vectors.double() @ directions.T, task.scale.double() @ directions.T)
    heard = torch.zeros_like(task.classes)
    for fold in range(FOLDS):
        tested = task.folds == fold
        learned = x[~tested], task.classes[~tested]
        if unit == "speaker":
            who = sorted(set(task.people[~tested].tolist()))
            own = [task.people == each for each in who]
            learned = (
                torch.stack([x[each].mean(0) for each in own]),
                torch.stack([task.classes[each][0] for each in own]),
            )
        bank = all_alike(int(task.classes.max()) + 1, x.shape[1])
        release = StatisticsRelease(epsilon, DELTA, iterations=1, transition_share=0.0)
        maximize_hmm_(bank, said_of(bank, *learned, release).released(), release)
        with torch.no_grad():
            heard[tested] = bank(x[tested].unsqueeze(1), torch.ones(int(tested.sum()), dtype=torch.long)).argmax(-1)
    return heard


def answers(task: Task, epsilon: float | None, unit: Unit | None, *, public: bool = False) -> Tensor:
    """What is heard in each utterance by a head of other folds, or of public speech alone, `(utterances,)`."""
    heard = torch.zeros_like(task.classes)
    for fold in range(FOLDS):
        tested = task.folds == fold
        head = EmbeddingHead(int(task.classes.max()) + 1, task.vectors.shape[1], "logistic", RADIUS)
        head.scale_(task.scale)
        if not public:
            own = task.people if unit == "speaker" else torch.arange(len(tested))
            privacy = None if epsilon is None or unit is None else WordPrivacy(epsilon, DELTA, unit)
            hook = None if privacy is None else privacy.hook(QUADRATIC[epsilon])
            learned = task.vectors[~tested], task.classes[~tested]
            fit_head(head, *learned, quadratic=QUADRATIC[epsilon], privacy=hook, units=own[~tested])
        elif task.public is not None:
            fit_head(head, *task.public, quadratic=QUADRATIC[None])
        with torch.no_grad():
            heard[tested] = head(task.vectors[tested]).argmax(-1)
    return heard


def wake_words() -> Task:
    """Six words, and the built-in voices who say them."""
    corpus = load_corpus("wakewords")
    names, classes = numbered([str(u.word) for u in corpus])
    spoken = SyntheticCorpus(tuple(name.replace("_", " ") for name in names), takes=1).build()
    said = torch.tensor([names.index(str(u.word).replace(" ", "_")) for u in spoken])
    number = torch.arange(len(corpus))
    place = torch.zeros_like(number)
    for each in range(len(names)):
        place[classes == each] = torch.arange(int((classes == each).sum()))
    vectors, public = (torch.cat(FeatureStore(SPEECH).load(part.utterances)) for part in (corpus, spoken))
    scale = torch.cat(FeatureStore(SPEECH).load(scale_corpus(RATE).utterances))
    return Task("wakewords", vectors, classes, number, place % FOLDS, ("utterance",), scale, (public, said), "files")


def emotions(scale: Tensor) -> Task:
    """Seven emotions of ten people."""
    corpus = load_corpus("emodb")
    _, classes = numbered([str(u.emotion) for u in corpus])
    _, people = numbered([u.speaker for u in corpus])
    vectors = heard_voices([[sound] for sound in _waveforms(corpus)])
    return Task("emotions", vectors, classes, people, people % FOLDS, ("utterance", "speaker"), scale)


def groups(scale: Tensor, women: Tensor, takes: int) -> tuple[Task, Task]:
    """German or not, and women or men, by each take of the ten digits; folds have about as many of each."""
    corpus = load_corpus("audiomnist").select(lambda u: u.take < takes)
    rows = read_rows(corpus.utterances[0].path.parent.parent / "metadata.csv", ("speaker", "accent"))
    german = {row["speaker"]: row["accent"].strip().lower() == "german" for row in rows}
    female = {u.speaker: u.gender == "f" for u in corpus}
    by_take = {(u.speaker, u.take, str(u.word)): u for u in corpus}
    spoken = [(who, take) for who in corpus.speakers for take in range(takes)]
    vectors = heard_voices(
        [[by_take[each, take, word].waveform(RATE) for word in DIGIT_WORDS] for each, take in spoken]
    )
    people = torch.tensor([corpus.speakers.index(who) for who, _ in spoken])

    def task(name: str, group: Mapping[str, bool], public: tuple[Tensor, Tensor] | None) -> Task:
        classes = torch.tensor([int(group[who]) for who, _ in spoken])
        order = sorted(corpus.speakers, key=lambda who: (group[who], who))
        folds = torch.tensor([order.index(who) % FOLDS for who, _ in spoken])
        return Task(name, vectors, classes, people, folds, ("speaker",), scale, public)

    return task("accents", german, None), task("genders", female, (scale, women))


@torch.no_grad()
def heard_voices(clips: list[list[Tensor]]) -> Tensor:
    """The voice in recordings, each joined of several, `(recordings, 256)`."""
    embedding, found = VoiceEmbedding(), []
    for start in track(range(0, len(clips), BLOCK), "Hearing voices"):
        mel = [
            torch.cat([embedding.frames(part).features[0] for part in each]) for each in clips[start : start + BLOCK]
        ]
        lengths = torch.tensor([len(each) for each in mel])
        found.append(embedding.voices(Frames(pad_sequence(mel, batch_first=True), lengths)))
    return torch.cat(found)


def _waveforms(corpus: Corpus) -> list[Tensor]:
    return [u.waveform(RATE) for u in corpus]


def _figures(task: Task, name: str, heard: Tensor, how: str) -> list[Figure]:
    """Balanced accuracy, and how many models collapsed, of answers `(draws, utterances)`."""
    right, classes = (heard == task.classes).double(), int(task.classes.max()) + 1
    counts = torch.bincount(task.classes).double()
    weighted = right * counts.reciprocal()[task.classes] * len(task.classes) / classes
    by_unit = torch.stack([weighted[:, task.people == who].mean() for who in sorted(set(task.people.tolist()))])
    commonest = torch.tensor(
        [[_commonest(row[task.folds == fold]) for fold in range(FOLDS)] for row in heard], dtype=torch.float64
    )
    gone, models = int((commonest >= COLLAPSED).sum()), commonest.numel()
    value = float(weighted.mean())
    said = "; collapsed" if 2 * gone >= models else ""
    note = (
        f"{how}; {len(heard)} draws of {FOLDS} folds; interval over {len(by_unit)} {task.over}; chance "
        f"{1 / classes:.4f}{said}"
    )
    mean = Mean(value, Mean.of(by_unit.tolist()).half_width)
    return [
        Figure.mean(f"dp_embeddings.{task.name}.{name}.balanced_accuracy", mean, note=note, limits=SHARE),
        Figure(
            f"dp_embeddings.{task.name}.{name}.collapsed",
            gone / models,
            note=f"share of {models} models that give one answer to {COLLAPSED:.0%} or more",
        ),
    ]


def _one_class_each(task: Task) -> bool:
    return all(len(set(task.classes[task.people == who].tolist())) == 1 for who in set(task.people.tolist()))


def _commonest(answers: Tensor) -> float:
    return float(torch.bincount(answers).max() / len(answers))
