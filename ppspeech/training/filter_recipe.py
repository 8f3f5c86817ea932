"""A filter from a recipe: a corpus or table, what to keep and what to hide; learned, attacked, released as a bundle."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, cast, get_args

import torch
import yaml  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Frames, MfccConfig, utterance_statistics
from ppspeech.bundle import (
    Bundle,
    BundleConfig,
    DataTouch,
    Level,
    MinimaxFilterSettings,
    PrivacyStatement,
    Shape,
    write_bundle,
)
from ppspeech.data import FeatureStore, load_corpus, load_table
from ppspeech.errors import AudioError, ModelError
from ppspeech.figures import Figure
from ppspeech.filters import BASELINES, HIDDEN, NO_NOISE, ClassTask, Owner, Standardized, hold_out, learn_filter
from ppspeech.filters.attack import AttackReport, attack
from ppspeech.privacy import Accountant, Guarantee, NonPrivateEvent, Relation

LABELS = ("speaker", "word", "emotion", "gender")
PERSON, CLASS = "person", "class"
"""The labels of a table: whose row it is, and what it shows."""


@dataclass(frozen=True)
class FilterRecipe:
    """What `configs/filter_*.yaml` say.

    Attributes:
        keep: the label that should stay: `word`, `emotion`, `gender` or `speaker`; for a table `class` or one of its
            further columns.
        hide: the label that should not; for a table also `person`.
        features: d.
        corpus: a corpus by name or folder; or
        table: a table by name.
        options: what its loader takes.
        level: `utterance` statistics or `frames`, for a corpus.
        mfcc: what differs from the front end of Hamm 2015 (utterance) or the preset for the rate (frames).
        filter: `linear`, `sigmoid` or `mlp`.
        solver: `alternating` or `kiwiel`.
        start: of a linear filter.
        rho: what the task weighs against the secret.
        iterations: of the filter; few of them are the best guard against fitting the training people's noise.
        private_ridge: of the adversary.
        task_ridge: of the aggregator.
        test: share of each person's recordings to judge by.
        most_samples: at most so many frames are learned from, drawn at random.
        attackers: names; all that apply where none is given.
        seed: of the draws.
        expect: least values of `task`, and largest of `private`, that the recipe must give on its own data.
    """

    keep: str
    hide: str
    features: int
    corpus: str = ""
    table: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    level: Literal["utterance", "frames"] = "utterance"
    mfcc: Mapping[str, Any] = field(default_factory=dict)
    filter: Shape = "linear"
    solver: str = "alternating"
    start: str = "plda"
    rho: float = 1.0
    iterations: int = 5
    private_ridge: float = 1e-3
    task_ridge: float = 1e-2
    test: float = 0.25
    most_samples: int = 20_000
    attackers: Sequence[str] = ()
    seed: int = 0
    expect: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.corpus) == bool(self.table):
            raise ModelError("a recipe names either a corpus or a table")
        if self.keep == self.hide:
            raise ModelError(f"a label cannot be kept and hidden at once: {self.keep!r}")
        for name, value, known in (
            ("level", self.level, ("utterance", "frames")),
            ("filter", self.filter, get_args(Shape)),
        ):
            if value not in known:
                raise ModelError(f"{name} must be one of {', '.join(known)}, got {value!r:.80}")
        unknown = set(self.expect) - {"task", "private"}
        if unknown:
            raise ModelError(f"a recipe expects figures of task and private, got {sorted(unknown)}")

    @classmethod
    def load(cls, path: Path) -> "FilterRecipe":
        """Read a YAML file.

        Raises:
            ModelError: if it cannot be read, or has a field that is missing or unknown.
        """
        try:
            plain = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ModelError(f"cannot read the recipe {path}: {error}") from None
        known = {each.name for each in fields(cls)}
        if not isinstance(plain, dict) or not {"keep", "hide", "features"} <= set(plain) <= known:
            found = sorted(map(str, plain)) if isinstance(plain, dict) else type(plain).__name__
            raise ModelError(f"{path} must have keep, hide, features and maybe more of {sorted(known)}, got {found}")
        return cls(**plain)

    @property
    def kind(self) -> Level:
        """What one sample is."""
        return "table" if self.table else self.level


@dataclass(frozen=True, eq=False)
class Samples:
    """A corpus or table as a filter sees it.

    Attributes:
        inputs: of each sample, `(D,)` or `(frames, D)`.
        kept: names of the labels to keep.
        private: names of the labels to hide.
        recordings: where each was taken from.
        mfcc: the front end, or None for a table.
    """

    inputs: Sequence[Tensor]
    kept: list[str]
    private: list[str]
    recordings: list[str]
    mfcc: MfccConfig | None = None

    def owners(self) -> list[Owner]:
        """As `write_filtered` takes them."""
        return [Owner(*each) for each in zip(self.kept, self.private, self.recordings, strict=True)]


def load_samples(
    keep: str, hide: str, level: Level, source: str, options: Mapping[str, Any], mfcc: MfccConfig | None
) -> Samples:
    """Load a corpus or table with two of its labels; utterances that lack one of them are left out.

    Args:
        keep: the label that stays.
        hide: the label that does not.
        level: what one sample is.
        source: name or folder.
        options: of its loader.
        mfcc: the front end; None for a table.

    Raises:
        ModelError: if there is no such label.
    """
    if level == "table":
        return _of_table(keep, hide, source, options)
    wrong = [label for label in (keep, hide) if label not in LABELS]
    if wrong:
        raise ModelError(f"a corpus has no label {wrong[0]!r}: known are {', '.join(LABELS)}")
    assert mfcc is not None
    corpus = load_corpus(source, **options).select(lambda u: None not in (getattr(u, keep), getattr(u, hide)))
    clips = FeatureStore(mfcc).load(corpus.utterances)
    if level == "utterance":
        clips = [utterance_statistics(Frames(clip.unsqueeze(0), torch.tensor([len(clip)])))[0] for clip in clips]
    return Samples(
        clips,
        [getattr(u, keep) for u in corpus],
        [getattr(u, hide) for u in corpus],
        [str(index) for index in range(len(corpus))],
        mfcc,
    )


def front_end(recipe: FilterRecipe, sample_rate: int) -> MfccConfig:
    """The front end of a recipe.

    Raises:
        ModelError: for choices that it does not have.
    """
    preset = MfccConfig.hamm2015(sample_rate) if recipe.level == "utterance" else MfccConfig.at_rate(sample_rate)
    try:
        return MfccConfig(**(asdict(preset) | dict(recipe.mfcc)))
    except (TypeError, AudioError) as error:
        raise ModelError(f"the recipe's mfcc: {error}") from None


@dataclass(frozen=True, eq=False)
class FilterEvidence:
    """What was found on held-out recordings, behind one filter.

    Attributes:
        task: how often a logistic classifier finds the label to keep.
        attacks: on the label to hide.
    """

    task: float
    attacks: AttackReport


@dataclass(frozen=True, eq=False)
class LearnedFilter:
    """A filter and how it did beside others.

    Attributes:
        recipe: what was asked.
        filter: what was learned.
        mfcc: the front end, or None.
        evidence: by method: `minimax`, `none`, `pca`.
    """

    recipe: FilterRecipe
    filter: nn.Module
    mfcc: MfccConfig | None
    evidence: Mapping[str, FilterEvidence]

    def figures(self) -> list[Figure]:
        """The evidence as figures."""
        found = []
        for method, evidence in self.evidence.items():
            prefix = "filter" if method == "minimax" else f"filter.{method}"
            worst = evidence.attacks.worst
            said = f"{self.recipe.hide}, chance {evidence.attacks.chance:.3f}"
            found += [
                Figure(f"{prefix}.task", evidence.task, note=f"{self.recipe.keep}, logistic, held-out recordings"),
                Figure(f"{prefix}.private", evidence.attacks["logistic"].accuracy, note=f"{said}; logistic attacker"),
                Figure(
                    f"{prefix}.private_worst", worst.accuracy, note=f"{said}; {worst.attacker}, EER {worst.eer:.3f}"
                ),
            ]
        return found

    def check(self) -> None:
        """Compare with what the recipe promises.

        Raises:
            ModelError: if the task falls short or the secret shows.
        """
        ours = self.evidence["minimax"]
        least, most = self.recipe.expect.get("task", 0.0), self.recipe.expect.get("private", 1.0)
        private = ours.attacks["logistic"].accuracy
        if ours.task < least or private > most:
            raise ModelError(
                f"the recipe must give task >= {least} with private <= {most}, got {ours.task:.4f} and {private:.4f}"
            )

    def release(self, folder: Path) -> Bundle:
        """Write the filter as a bundle, which states that it proves nothing, with the evidence beside."""
        account = Accountant(Relation("speaker", "add_remove"))
        account.compose(NonPrivateEvent("learned without differential privacy", Relation("speaker", "add_remove")))
        recipe = self.recipe
        settings = MinimaxFilterSettings(
            shape=recipe.filter,
            inputs=_inputs(self.filter),
            hidden={"linear": 0, "sigmoid": recipe.features, "mlp": HIDDEN}[recipe.filter],
            features=recipe.features,
            level=recipe.kind,
            keep=recipe.keep,
            hide=recipe.hide,
        )
        statement = PrivacyStatement(
            guarantee=Guarantee(kind="none", relation=Relation("speaker", "add_remove"), caveat=NO_NOISE),
            method="none",
            covers=(),
            touches=(
                DataTouch("normalization", "not_covered", "inputs are scaled by the training people's statistics"),
                DataTouch("early_stopping", "untouched", "the number of iterations is part of the recipe"),
                DataTouch("tuning", "not_covered", "rho, iterations and ridges may have been chosen on such data"),
                DataTouch("threshold", "untouched", "a filter has none"),
                DataTouch(
                    "metrics", "not_covered", "the attacks were measured on held-out recordings of the same people"
                ),
            ),
            caveats=("the weights were learned from the training people's samples and may tell about them",),
        )
        config = BundleConfig(settings, (), self.mfcc or MfccConfig())
        return write_bundle(
            folder,
            model=self.filter.float(),
            config=config,
            statement=statement,
            account=account,
            metrics=self.figures(),
        )


def learn(recipe: FilterRecipe) -> LearnedFilter:
    """Learn a filter and attack it beside no filter and PCA, on recordings that were held out."""
    mfcc = None
    if recipe.corpus:
        mfcc = front_end(recipe, load_corpus(recipe.corpus, **recipe.options).sample_rate)
    samples = load_samples(recipe.keep, recipe.hide, recipe.kind, recipe.corpus or recipe.table, recipe.options, mfcc)
    kept, private = numbered(samples.kept), numbered(samples.private)
    is_test = hold_out(private, numbered(samples.recordings), recipe.test, recipe.seed)
    train = [index for index, held in enumerate(is_test.tolist()) if not held]
    x, hide, keep = _rows(samples, train, private, kept, recipe)
    tasks = (
        ClassTask(hide, int(private.max()) + 1, recipe.private_ridge, name=recipe.hide),
        ClassTask(keep, int(kept.max()) + 1, recipe.task_ridge, name=recipe.keep),
    )
    found = learn_filter(
        x, *tasks, features=recipe.features, rho=recipe.rho, filter=recipe.filter, solver=recipe.solver,
        start=recipe.start, iterations=recipe.iterations, seed=recipe.seed,
    )  # fmt: skip
    methods = {
        "minimax": found.filter,
        "none": nn.Identity(),
        "pca": BASELINES["pca"](x, hide, keep, recipe.features, seed=recipe.seed),
    }
    evidence = {}
    for name, filter in methods.items():
        attackers = (recipe.attackers or None) if name == "minimax" else ("logistic",)
        evidence[name] = judge(filter, samples, kept, private, is_test, attackers)
    return LearnedFilter(recipe, found.filter, mfcc, evidence)


def judge(
    filter: nn.Module, samples: Samples, kept: Tensor, private: Tensor, is_test: Tensor, attackers: Sequence[str] | None
) -> FilterEvidence:
    """Train a task classifier and attackers on filtered samples, and score them on the held-out ones."""
    if attackers is not None and "logistic" not in attackers:
        attackers = ("logistic", *attackers)
    train, test = (_filtered(filter, samples, rows) for rows in (~is_test, is_test))
    task = attack(train, kept[~is_test], test, kept[is_test], ("logistic",)).worst.accuracy
    return FilterEvidence(task, attack(train, private[~is_test], test, private[is_test], attackers))


def numbered(values: Sequence[str]) -> Tensor:
    """Names as 0, 1, … in sorted order."""
    place = {name: index for index, name in enumerate(sorted(set(values)))}
    return torch.tensor([place[value] for value in values])


def pick(features: Tensor | Frames, rows: Tensor) -> Tensor | Frames:
    """Some of the samples, by a bool mask `(samples,)`."""
    if isinstance(features, Frames):
        return Frames(features.features[rows], features.lengths[rows])
    return features[rows]


def loader_of(samples: Samples) -> Callable[[int], Tensor]:
    """The inputs of sample i, as `write_filtered` asks for them."""
    return lambda index: samples.inputs[index]


def _of_table(keep: str, hide: str, source: str, options: Mapping[str, Any]) -> Samples:
    table = load_table(source, **options)
    columns = {CLASS: [table.label_names[label] for label in table.labels.tolist()]}
    if table.groups is not None:
        columns[PERSON] = [str(group) for group in table.groups.tolist()]
    columns |= {name: [str(value) for value in values.tolist()] for name, values in table.extra.items()}
    for label in (keep, hide):
        if label not in columns:
            raise ModelError(f"table {source!r} has no label {label!r}: it has {', '.join(columns)}")
    recordings = columns.get("recording", [str(index) for index in range(len(table))])
    return Samples(table.features.unbind(0), columns[keep], columns[hide], recordings)


def _rows(
    samples: Samples, chosen: list[int], private: Tensor, kept: Tensor, recipe: FilterRecipe
) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs `(n, D)`, private and task labels to learn from; of frames at most so many, drawn at random."""
    inputs = [samples.inputs[index] for index in chosen]
    if recipe.kind != "frames":
        return torch.stack(inputs), private[chosen], kept[chosen]
    lengths = torch.tensor([len(clip) for clip in inputs])
    x = torch.cat(inputs)
    of = torch.tensor(chosen).repeat_interleave(lengths)
    drawn = torch.randperm(len(x), generator=torch.Generator().manual_seed(recipe.seed))[: recipe.most_samples]
    return x[drawn], private[of[drawn]], kept[of[drawn]]


@torch.no_grad()
def _filtered(filter: nn.Module, samples: Samples, rows: Tensor) -> Tensor | Frames:
    inputs = [samples.inputs[index] for index in rows.nonzero().flatten().tolist()]
    if inputs[0].ndim == 1:
        return cast(Tensor, filter(torch.stack(inputs)))
    clips = [cast(Tensor, filter(clip)) for clip in inputs]
    return Frames(pad_sequence(clips, batch_first=True), torch.tensor([len(clip) for clip in clips]))


def _inputs(filter: nn.Module) -> int:
    inside = filter.filter if isinstance(filter, Standardized) else filter
    return cast(int, inside.inputs)
