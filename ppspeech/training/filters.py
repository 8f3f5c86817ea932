"""A filter from a recipe: a corpus or table, what to keep and what to hide; learned, attacked, released as a bundle."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, cast, get_args

import torch
import yaml  # type: ignore[import-untyped]
from torch import Tensor, nn

from ppspeech.audio import MfccConfig
from ppspeech.bundle import (
    Bundle,
    BundleConfig,
    DataTouch,
    MinimaxFilterSettings,
    PrivacyStatement,
    Shape,
    write_bundle,
)
from ppspeech.data import Level, Samples, load_corpus, load_samples, options_for
from ppspeech.errors import AudioError, ModelError
from ppspeech.figures import Figure
from ppspeech.filters import (
    BASELINES,
    NO_NOISE,
    CodeNoise,
    FeatureNoise,
    Learning,
    LinearFilter,
    NamingTarget,
    Noise,
    NoisyFilter,
    Solver,
    Standardized,
    codes_of,
)
from ppspeech.filters.attack import FilterEvidence, judge_samples
from ppspeech.privacy import Accountant, NonPrivateEvent, Relation
from ppspeech.recipes import find_recipe
from ppspeech.training.minimax import AdversarialSolver


@dataclass(frozen=True, kw_only=True)
class FilterRecipe(Learning):
    """What `configs/filter_*.yaml` say: how a filter is learned, and from what. The solvers `alternating` and `kiwiel`
    have opponents that answer exactly, those of `adversarial` are networks.
    """

    keep: str  # the label that should stay, one of a corpus's; for a table `class` or a further column
    hide: str  # the label that should not; for a table also `person`
    features: int  # that the filter gives
    corpus: str = ""  # by name or folder; or
    table: str = ""  # a table by name
    options: Mapping[str, Any] = field(default_factory=dict)  # what its loader takes, or that by corpus
    level: Literal["utterance", "frames"] = "utterance"  # `utterance` statistics or `frames`, for a corpus
    mfcc: Mapping[str, Any] = field(default_factory=dict)  # what differs from Hamm 2015 or the preset (frames)
    adversarial: Mapping[str, Any] = field(default_factory=dict)  # for `AdversarialSolver`; an iteration is an epoch
    test: float = 0.25  # share of each person's recordings to judge by
    most_samples: int = 20_000  # at most so many frames are learned from, drawn at random
    attackers: Sequence[str] = ()  # who try to find what is hidden: `logistic` and these; none named are all
    minutes: float = 3.0  # no attacker starts after so long
    skip_bad: bool = False  # leave out recordings that cannot be used, instead of refusing them
    seed: int = 0  # of the split, the start and what is drawn
    expect: Mapping[str, float] = field(default_factory=dict)  # least `task` and largest `private` it must give

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
        if self.adversarial and self.solver != "adversarial":
            raise ModelError(f"adversarial describes solver: adversarial, and the recipe has solver: {self.solver}")

    @classmethod
    def load(cls, given: str | Path) -> "FilterRecipe":
        """Read a YAML file, or a shipped recipe by name.

        Raises ModelError if it cannot be read, or has a field that is missing or unknown.
        """
        path = find_recipe(given)
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

    def samples(self) -> Samples:
        """Load what the recipe names. Raises ModelError for choices that the front end does not have."""
        mfcc = None
        if self.corpus:
            rate = load_corpus(self.corpus, **options_for(self.corpus, self.options)).sample_rate
            preset = MfccConfig.hamm2015(rate) if self.level == "utterance" else MfccConfig.at_rate(rate)
            try:
                mfcc = MfccConfig(**(asdict(preset) | dict(self.mfcc)))
            except (TypeError, AudioError) as error:
                raise ModelError(f"the recipe's mfcc: {error}") from None
        return load_samples(
            self.keep, self.hide, self.kind, self.corpus or self.table, self.options, mfcc, skip_bad=self.skip_bad
        )

    def custom_solver(self) -> Solver | None:
        """The solver with networks for opponents, or None for those that `learn_filter` knows."""
        if self.solver != "adversarial":
            return None
        try:
            return AdversarialSolver(**self.adversarial, seed=self.seed)
        except TypeError as error:
            raise ModelError(f"the recipe's adversarial: {error}") from None


@dataclass(frozen=True, eq=False)
class LearnedFilter:
    """A filter and how it did beside others: `evidence` by method, `minimax`, `none` and `pca`, and `noisy` where noise
    was asked for, behind the filter and the noise.
    """

    recipe: FilterRecipe
    filter: nn.Module
    mfcc: MfccConfig | None
    evidence: Mapping[str, FilterEvidence]
    noise: Noise | None = None
    target: NamingTarget | None = None

    def figures(self) -> list[Figure]:
        """The evidence as figures."""
        found = []
        for method, evidence in self.evidence.items():
            prefix = "filter" if method == "minimax" else f"filter.{method}"
            said = f"{self.recipe.hide}, chance {evidence.attacks.chance:.3f}"
            task = f"{self.recipe.keep}, logistic, held-out recordings"
            found += [
                Figure(f"{prefix}.task", evidence.task.accuracy, note=task),
                Figure(f"{prefix}.private", evidence.attacks["logistic"].accuracy, note=f"{said}; logistic attacker"),
            ]
            for clips, worst in evidence.attacks.headline.items():
                name = f"{prefix}.private_worst" if clips == 1 else f"{prefix}.private_worst_{clips}"
                note = f"{said}; {worst.attacker}, {worst.low:.3f} to {worst.high:.3f}, EER {worst.eer:.3f}"
                found.append(Figure(name, worst.accuracy, note=note))
        if self.target is not None:
            naming = NoisyFilter(self.filter, self.noise).naming(self.target.people, self.target.clips)
            found.append(Figure(f"filter.certified_{naming.clips}", naming.value, note=str(naming)))
        return found

    def check(self) -> None:
        """Compare with what the recipe promises. Raises ModelError if the task falls short or the secret shows."""
        ours = self.evidence["minimax"]
        least, most = self.recipe.expect.get("task", 0.0), self.recipe.expect.get("private", 1.0)
        task, private = ours.task.accuracy, ours.attacks["logistic"].accuracy
        if task < least or private > most:
            raise ModelError(
                f"the recipe must give task >= {least} with private <= {most}, got {task:.4f} and {private:.4f}"
            )

    def release(self, folder: Path) -> Bundle:
        """Write the filter as a bundle, which states that it proves nothing, with the evidence beside."""
        relation = Relation("speaker", "add_remove")
        account = Accountant(relation)
        account.compose(NonPrivateEvent("learned without differential privacy", relation))
        recipe = self.recipe
        inside = self.filter.filter if isinstance(self.filter, Standardized) else self.filter
        settings = MinimaxFilterSettings(
            shape=cast(Shape, recipe.filter),
            inputs=cast(int, inside.inputs),
            hidden=_hidden(inside),
            features=recipe.features,
            codes=0 if (codes := codes_of(self.filter)) is None else len(codes),
            level=recipe.kind,
            keep=recipe.keep,
            hide=recipe.hide,
        )
        config = BundleConfig(settings, (), self.mfcc or MfccConfig())
        touches = (
            DataTouch("normalization", "not_covered", "inputs are scaled by the training people's statistics"),
            DataTouch("early_stopping", "untouched", "the number of iterations is part of the recipe"),
            DataTouch("tuning", "not_covered", "rho, iterations and ridges may have been chosen on such data"),
            DataTouch("threshold", "untouched", "a filter has none"),
            DataTouch("metrics", "not_covered", "the attacks were measured on held-out recordings of the same people"),
        )
        caveat = "the weights were learned from the training people's samples and may tell about them"
        statement = PrivacyStatement.of(account, config, touches, caveats=(NO_NOISE, caveat))
        return write_bundle(
            folder,
            model=self.filter.float(),
            config=config,
            statement=statement,
            account=account,
            metrics=self.figures(),
        )


def learn(recipe: FilterRecipe, target: NamingTarget | None = None) -> LearnedFilter:
    """Learn a filter and attack it beside no filter and PCA, on recordings that were held out. With a target, noise is
    chosen for it, and what the task and attackers make of noisy features stands beside.
    """
    solver = recipe.custom_solver()
    samples = recipe.samples()
    is_test = samples.hold_out(recipe.test, recipe.seed)
    x, hide, keep = _rows(samples, (~is_test).nonzero().flatten(), recipe)
    found = recipe.fit(x, hide, keep, recipe.features, recipe.seed, solver)
    methods = {
        "minimax": found.filter,
        "none": nn.Identity(),
        "pca": BASELINES["pca"](x, hide, keep, recipe.features, seed=recipe.seed),
    }
    noise = None
    if target is not None:
        noise = noise_for(found.filter, x, target)
        methods["noisy"] = NoisyFilter(found.filter, noise)
    evidence = {}
    for name, module in methods.items():
        attackers: Sequence[str] | None = ("logistic",)
        if name in {"minimax", "noisy"}:
            attackers = ("logistic", *(a for a in recipe.attackers if a != "logistic")) if recipe.attackers else None
        evidence[name] = judge_samples(samples, is_test, attackers, module=module, minutes=recipe.minutes)
    return LearnedFilter(recipe, found.filter, samples.mfcc, evidence, noise, target)


@torch.no_grad()
def noise_for(module: nn.Module, inputs: Tensor, target: NamingTarget) -> Noise:
    """The least noise for a target: randomized response on codes, else Gaussian noise on vectors clipped to the median
    length of these inputs' `(n, D)`, which should be public.
    """
    codes = codes_of(module)
    if codes is not None:
        return CodeNoise.for_naming(target, codes=codes)
    return FeatureNoise.for_naming(target, bound=float(torch.linalg.vector_norm(module(inputs), dim=-1).median()))


def _hidden(inside: nn.Module) -> int:
    """How many units a filter has inside."""
    if isinstance(inside, LinearFilter):
        return 0
    first = next(layer for layer in inside.modules() if isinstance(layer, nn.Linear))
    return first.out_features


def _rows(samples: Samples, chosen: Tensor, recipe: FilterRecipe) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs `(n, D)`, private and task labels to learn from; of frames at most so many, drawn at random."""
    inputs = [samples.inputs[index] for index in chosen.tolist()]
    private, kept = samples.private_numbers, samples.kept_numbers
    if recipe.kind != "frames":
        return torch.stack(inputs), private[chosen], kept[chosen]
    x = torch.cat(inputs)
    of = chosen.repeat_interleave(torch.tensor([len(clip) for clip in inputs]))
    drawn = torch.randperm(len(x), generator=torch.Generator().manual_seed(recipe.seed))[: recipe.most_samples]
    return x[drawn], private[of[drawn]], kept[of[drawn]]
