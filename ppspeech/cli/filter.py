"""`ppspeech filter`: learn features that keep a task and lose the person, write them, and attack them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from ppspeech.cli.clips import Clips, sort_clips
from ppspeech.cli.ray import Ray
from ppspeech.errors import ModelError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from torch import nn

    from ppspeech.bundle import Filterer
    from ppspeech.data import Samples
    from ppspeech.figures import Figure
    from ppspeech.filters import NamingTarget, Noise
    from ppspeech.filters.attack import AttackReport, Finding, KnownFilter
    from ppspeech.training import LearnedFilter

AtMost = Annotated[
    float | None, typer.Option(help="Noise with which nobody names one of --people people more often than this.")
]
People = Annotated[int | None, typer.Option(help="With --at-most: among so many people, all as likely.", min=2)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a figure.")]


def train(
    config: Annotated[str, typer.Option(help="The recipe: a file, or a name that `ppspeech train` lists.")],
    out: Annotated[Path, typer.Option(help="Folder of the filter, a bundle; must not exist.")],
    corpus: Annotated[str, typer.Option(help="Another corpus than the recipe's, by name or folder.")] = "",
    plot: Annotated[Path | None, typer.Option(help="Save private against task accuracy here (.png).")] = None,
    at_most: AtMost = None,
    clips: Annotated[int, typer.Option(help="With --at-most: from so many clips of one person.", min=1)] = 10,
    people: People = None,
    as_json: Json = False,
) -> None:
    """Learn a filter, attack it on held-out recordings, and save it as a bundle that states what was found.

    With --at-most, noise is chosen so that nobody, with any attack, names one of --people people from --clips clips
    more often than that, and what the task keeps behind it is shown. The bundle is the filter; `filter apply` adds the
    noise.

    Examples: `ppspeech filter train --config filter_speaker --out quiet`,
    `ppspeech filter train --config filter_codes --out codes --at-most 0.10 --clips 10 --people 60`,
    `ppspeech filter train --config filter_emotion --out emotions --plot emotions.png`
    """
    from dataclasses import replace

    from ppspeech.figures import show_figures
    from ppspeech.training import FilterRecipe, learn

    recipe = FilterRecipe.load(config)
    if corpus:
        # What a recipe expects, it expects of its own data.
        recipe = replace(recipe, corpus=corpus, table="", options={}, expect={})
    if out.exists():
        raise ModelError(f"{out} exists already: choose another folder")
    learned = learn(recipe, _target(at_most, people, clips))
    learned.check()
    learned.release(out)
    if plot is not None:
        _plot(learned, plot)
    show_figures(learned.figures(), as_json=as_json, title=f"{recipe.keep} kept, {recipe.hide} hidden")
    if not as_json:
        console = Console()
        console.print(f"the filter: {out}; it proves nothing, the attacks are the evidence")
        if at_most is not None:
            with_noise = f"--at-most {at_most:g} --people {people} --most {clips}"
            console.print(f"with noise: ppspeech filter apply {out} CORPUS --out FOLDER {with_noise}")


def apply(
    filter: Annotated[Path, typer.Argument(help="A filter, as `filter train` saved it.")],
    source: Annotated[
        list[str], typer.Argument(help="A corpus by name or folder, the name of a table, or sound files.")
    ],
    out: Annotated[Path, typer.Option(help="Folder, or .npy for one file, of filtered features; must not exist.")],
    option: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the corpus's loader.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Add noise: local DP of this epsilon for each sample.")] = None,
    delta: Annotated[float, typer.Option(help="Above 0, Gaussian noise; 0, noise of pure DP.")] = 0.0,
    bound: Annotated[float, typer.Option(help="With --epsilon: clip every sample to this norm first.")] = 3.0,
    most: Annotated[
        int | None,
        typer.Option(help="With noise: release at most so many samples (or frames) of one person.", min=1),
    ] = None,
    at_most: AtMost = None,
    people: People = None,
    report: Annotated[
        bool, typer.Option("--report", help="Then see what the task and attackers make of it, noise and all.")
    ] = False,
    ray: Ray = None,
    as_json: Json = False,
) -> None:
    """Filter a corpus, sample by sample, into a corpus without what is private, with a statement; or sound files.

    Recordings need no label; those that cannot be used are listed and left out, with exit code 1. Recipes train on the
    folder (`--data.corpus filtered`). Whose each sample was goes to a file beside it, for `filter attack`; keep that to
    yourself. Sound files count as one person's. Noise promises something to a person with at most --most samples;
    labels and lengths are never covered. A filter of codes tells a random code in place of noise. With --ray, workers
    compute features, which are kept if the command is stopped, and filter.

    Examples: `ppspeech filter apply quiet synthetic --out filtered`,
    `ppspeech filter apply quiet audiomnist --out noisy --epsilon 8 --delta 1e-6 --most 10 --report`,
    `ppspeech filter apply codes audiomnist --out noisy --at-most 0.10 --people 60 --most 10`,
    `ppspeech filter apply quiet clip.wav --out clip.npy`, `ppspeech filter apply quiet a.wav b.wav --out filtered`
    """
    from dataclasses import asdict

    from ppspeech.bundle import load_bundle
    from ppspeech.cluster import pool
    from ppspeech.data import load_samples
    from ppspeech.filters import NOT_COVERED, NoisyFilter, private_file, write_filtered

    bundle = load_bundle(filter)
    target = None if at_most is None else _target(at_most, people, _clips(most))
    filterer, noise = bundle.filterer, _noise(bundle.model, epsilon, delta, bound, most, target)
    clips = [each for each in source if Path(each).is_file()]
    if clips == source and out.suffix == ".npy":
        if ray is not None:
            raise ModelError("--ray spreads many recordings, and this is one")
        _apply_to_clip(filterer, source, out, noise, most, as_json)
        return
    settings: Any = bundle.config.settings
    with pool(ray) as workers:
        known = Clips()
        if clips:
            samples, known = _samples_of(filterer, source)
            if not known.good:
                known.tell(as_json)
        elif len(source) > 1:
            raise ModelError(
                f"give one corpus, or sound files that exist: {', '.join(set(source) - set(clips))} is none"
            )
        else:
            mfcc = None if settings.level == "table" else bundle.mfcc
            samples = load_samples(
                *(settings.keep, settings.hide, settings.level, source[0], _options(option), mfcc),
                unlabeled=True,
                skip_bad=True,
                workers=workers,
            )
        if samples.inputs[0].shape[-1] != settings.inputs:
            raise ModelError(
                f"the filter takes {settings.inputs} inputs, {source[0]} has {samples.inputs[0].shape[-1]}"
            )
        labeled = all(samples.kept) and len(set(samples.private)) > 1
        if report and not labeled:
            raise ModelError(f"--report needs recordings whose {settings.keep} and {settings.hide} are known")
        evidence = {figure.metric: figure.value for figure in bundle.metrics}
        about = {"filter": bundle.fingerprint, "keeps": settings.keep, "hides": settings.hide, "attacks": evidence}
        naming = NoisyFilter(bundle.model, noise).naming(people or len(set(samples.private)), most or 10)
        guarantee = write_filtered(
            *(out, bundle.model, samples), keep=settings.keep, noise=noise, most=most, about=about, workers=workers
        )
    released = len(list((out / "samples").iterdir()))
    if as_json:
        counts = {"samples": released, "left_out": samples.left_out + len(known.bad), "most": most}
        typer.echo(
            json.dumps({"folder": str(out), **counts, "guarantee": guarantee.to_json(), "naming": asdict(naming)})
        )
    else:
        console = Console()
        console.print(f"{released:,} samples in {out}: {guarantee}")
        console.print(str(naming))
        if noise is not None:
            console.print(f"not covered: {'; '.join(NOT_COVERED).format(label=settings.keep)}")
        console.print(f"whose they were: {private_file(out)}; keep it to yourself")
    if report:
        attack(out, filter=filter, ray=ray, as_json=as_json)
    elif labeled and not as_json:
        console.print(f"what is left to attackers{' after the noise' if noise else ''}: ppspeech filter attack {out}")
    known.tell(as_json)
    if samples.left_out:
        raise typer.Exit(1)


def attack(
    folder: Annotated[
        Path, typer.Argument(help="Filtered features, as `filter apply` wrote them; or a corpus of changed sound.")
    ],
    private: Annotated[Path | None, typer.Option(help="Whose they were; beside the folder by default.")] = None,
    attacker: Annotated[list[str] | None, typer.Option(help="Which attackers; all that apply by default.")] = None,
    filter: Annotated[
        Path | None, typer.Option(help="The filter, if the attacker has it: its layers are undone.")
    ] = None,
    public: Annotated[
        str, typer.Option(help="With --filter: a corpus or table of other people, to learn to undo the rest from.")
    ] = "",
    clips: Annotated[list[int] | None, typer.Option(help="Of one person, pooled; 1, 3, 10 and 30 by default.")] = None,
    minutes: Annotated[float, typer.Option(help="No attacker starts after so long; the strongest are first.")] = 3.0,
    share: Annotated[float, typer.Option(help="Of each person's recordings, to score on.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Save who is named from how many clips here (.png).")] = None,
    ray: Ray = None,
    as_json: Json = False,
) -> None:
    """Train attackers on half of the filtered features and see how often they name the person in the other half.

    The headline is the worst attacker at each number of clips of one person. Attackers know the label that was kept,
    and with --filter the filter. Then half of the people are strangers to the worst ones (verification). Where it is
    installed, a public voice embedding attacks too, as it is and tuned: it hears sound, and frames that a known filter
    lets through or that are guessed from --public speech.

    Examples: `ppspeech filter attack filtered`, `ppspeech filter attack filtered --filter quiet --plot clips.png`,
    `ppspeech filter attack filtered --attacker plda --clips 1 --clips 10 --json`,
    `ppspeech filter attack changed_voices --attacker voice_tuned`, `ppspeech filter attack audiomnist`
    """
    from ppspeech.cluster import pool
    from ppspeech.data import corpus_names
    from ppspeech.figures import show_figures
    from ppspeech.filters import read_filtered
    from ppspeech.filters.attack import CLIPS, judge_samples, plot_clips, sound_samples

    is_corpus = (folder / "manifest.csv").exists() or str(folder) in corpus_names()
    if (folder / "filtering.json").exists() or not is_corpus:
        samples = read_filtered(folder, private)
    else:
        samples = sound_samples(str(folder))
        if private is not None or filter is not None:
            raise ModelError(f"{folder} is sound: whose it is stands in its manifest, and its filter is not undone")
    known = _known(filter, public)
    with pool(ray) as workers:
        found = judge_samples(
            *(samples, samples.hold_out(share, seed), attacker or None),
            known=known, clips=clips or CLIPS, minutes=minutes, seed=seed, workers=workers,
        )  # fmt: skip
    report, task = found.attacks, found.task
    if plot is not None:
        plot_clips(report, folder.name, plot)
    if as_json:
        show_figures(_attack_figures(report, task), as_json=True)
        return
    console = Console()
    console.print(_table(report))
    console.print(f"the task: {task.accuracy:.3f} ({task.low:.3f} to {task.high:.3f})")
    for f in report.open_set:
        console.print(
            f"half of the people strangers, {f.clips} of one's clips, {f.attacker}: EER {f.eer:.3f}, true claims "
            f"accepted {f.at_percent:.3f} at 1 % of false ones, {f.at_permille:.3f} at 0.1 %"
        )
    if report.left_out:
        console.print(f"left out: {', '.join(report.left_out)}")
    if known is None:
        console.print("the attackers did not know the filter: --filter gives it to them")
    console.print(str(report))


FILTER_COMMANDS: dict[str, Callable[..., None]] = {"train": train, "apply": apply, "attack": attack}
"""The commands of `ppspeech filter`, by name."""


def _samples_of(filterer: "Filterer", clips: list[str]) -> "tuple[Samples, Clips]":
    """Sound files that nothing is known about: they may all be one person's. Those that can be used, and all."""
    from ppspeech.audio import Mfcc, features_of
    from ppspeech.data import Samples, inputs_of

    wrong = [clip for clip in clips if not Path(clip).is_file()]
    if wrong:
        raise ModelError(f"no sound file {wrong[0]}: give sound files alone, or one corpus")
    if filterer.level == "table":
        raise ModelError("this filter takes rows of a table, not sound")
    known = sort_clips([Path(clip) for clip in clips], filterer.mfcc)
    inputs = [inputs_of(each, filterer.level) for each in features_of(known.good, Mfcc(filterer.mfcc))]
    nobody = [""] * len(inputs)
    return Samples(inputs, nobody, nobody, [str(clip) for clip in known.good], filterer.mfcc), known


def _apply_to_clip(
    filterer: "Filterer", clips: list[str], out: Path, noise: "Noise | None", most: int | None, as_json: bool
) -> None:
    from dataclasses import replace

    import numpy as np

    from ppspeech.filters import NoisyFilter
    from ppspeech.storage import atomic_write

    if len(clips) > 1 or out.exists():
        raise ModelError(f"{out} is for one sound file, and must not exist; of several the features go to a folder")
    released = NoisyFilter(filterer.module, noise)
    features = replace(filterer, module=released).filter_all(clips)[0]
    guarantee = released.guarantee
    if noise is not None and most is not None:
        features, guarantee = features[:most] if features.ndim == 2 else features, noise.guarantee_for(most)
    with atomic_write(out) as temporary:
        np.save(temporary, features.numpy(), allow_pickle=False)
    if as_json:
        typer.echo(json.dumps({"file": str(out), "shape": list(features.shape), "guarantee": guarantee.to_json()}))
        return
    shape = " x ".join(map(str, features.shape))
    Console().print(f"{shape} features in {out}: {guarantee}")


def _noise(
    module: "nn.Module",
    epsilon: float | None,
    delta: float,
    bound: float,
    most: int | None,
    target: "NamingTarget | None",
) -> "Noise | None":
    from ppspeech.filters import CodeNoise, FeatureNoise, codes_of

    if target is not None and epsilon is not None:
        raise ModelError("--at-most chooses the noise, and so does --epsilon: give one of them")
    if (epsilon is None and target is None) != (most is None):
        raise ModelError("noise promises something to a person with at most --most samples: give both, or neither")
    codes = codes_of(module)
    if codes is not None and delta > 0:
        raise ModelError(f"a filter of codes tells random ones, which is pure: --delta is 0, got {delta:g}")
    if target is not None:
        if codes is not None:
            return CodeNoise.for_naming(target, codes=codes)
        return FeatureNoise.for_naming(target, bound=bound, delta=delta or 1e-6)
    if epsilon is None:
        return None
    if codes is not None:
        return CodeNoise(codes=codes, epsilon=epsilon)
    return FeatureNoise(bound=bound, epsilon=epsilon, delta=delta, law="gaussian" if delta > 0 else "laplace")


def _clips(most: int | None) -> int:
    if most is None:
        raise ModelError("--at-most is from so many samples of one person: give --most")
    return most


def _target(at_most: float | None, people: int | None, clips: int) -> "NamingTarget | None":
    from ppspeech.filters import NamingTarget

    if (at_most is None) != (people is None):
        raise ModelError("--at-most is among so many people: give --people with it, or neither")
    return None if at_most is None or people is None else NamingTarget(at_most, people, clips)


def _options(given: list[str] | None) -> dict[str, Any]:
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise ModelError(f"an option is NAME=VALUE, got {text!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _known(filter: Path | None, public: str) -> "KnownFilter | None":
    """What the attackers know of the filter, and whose speech they learn from."""
    import torch

    from ppspeech.bundle import load_bundle
    from ppspeech.data import load_samples
    from ppspeech.filters.attack import KnownFilter

    if filter is None:
        if public:
            raise ModelError("--public is sent through the filter: give --filter")
        return None
    bundle = load_bundle(filter)
    settings: Any = bundle.config.settings
    if not public:
        return KnownFilter(bundle.model, mfcc=None if settings.level == "table" else bundle.mfcc)
    mfcc = None if settings.level == "table" else bundle.mfcc
    samples = load_samples(
        *(settings.keep, settings.hide, settings.level, public, {}, mfcc), unlabeled=True, skip_bad=True
    )
    inputs = list(samples.inputs)
    return KnownFilter(bundle.model, torch.stack(inputs) if inputs[0].ndim == 1 else torch.cat(inputs), mfcc)


def _attack_figures(report: "AttackReport", task: "Finding") -> "list[Figure]":
    """Everything as figures: `…_10` is from ten clips, and without a number from one."""
    from ppspeech.figures import Figure

    def named(name: str, clips: int) -> str:
        return f"filter.attack.{name}" if clips == 1 else f"filter.attack.{name}_{clips}"

    figures = [Figure("filter.attack.task", task.accuracy, note="logistic classifier of the label that was kept")]
    for f in report.findings:
        note = f"{f.low:.3f} to {f.high:.3f}, EER {f.eer:.3f}"
        figures.append(Figure(named(f.attacker, f.clips), f.accuracy, note=note))
    for f in report.open_set:
        note = f"{f.attacker}; half of the people strangers; 1 % and 0.1 %: true claims accepted at so many false ones"
        figures.append(Figure(named("open_set.eer", f.clips), f.eer, note=note))
        figures.append(Figure(named("open_set.at_percent", f.clips), f.at_percent, note=note))
        figures.append(Figure(named("open_set.at_permille", f.clips), f.at_permille, note=note))
    missing = f"; left out: {', '.join(report.left_out)}" if report.left_out else ""
    for clips, f in report.headline.items():
        note = f"{f.attacker}, {f.low:.3f} to {f.high:.3f}, EER {f.eer:.3f}, chance {report.chance:.3f}{missing}"
        figures.append(Figure(named("worst", clips), f.accuracy, note=note))
    return [*figures, Figure("filter.attack.chance", report.chance, note="who always names the most frequent person")]


def _table(report: "AttackReport") -> Table:
    """A row an attacker, a column a number of clips; the worst of a column is bold."""
    table = Table(title="named, by clips of one person", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("attacker")
    for clips in report.clips:
        table.add_column(str(clips), justify="right")
    for name in dict.fromkeys(f.attacker for f in report.findings):
        own = {f.clips: f for f in report.findings if f.attacker == name}
        cells = []
        for clips in report.clips:
            f = own.get(clips)
            said = "" if f is None else f"{f.accuracy:.3f} ({f.low:.3f} to {f.high:.3f})"
            cells.append(Text(said, "bold" if f is report.headline[clips] else ""))
        table.add_row(name, *cells)
    table.caption = f"chance {report.chance:.3f} among {report.classes}, {report.samples} samples"
    return table


def _plot(learned: "LearnedFilter", path: Path) -> None:
    from ppspeech.filters.attack import Point, plot_trade_off
    from ppspeech.intervals import Mean

    points = [
        Point(method, Mean(found.task.accuracy, 0.0), Mean(found.attacks["logistic"].accuracy, 0.0))
        for method, found in learned.evidence.items()
    ]
    worst = learned.evidence["minimax"]
    points.append(Point("worst attacker", Mean(worst.task.accuracy, 0.0), Mean(worst.attacks.worst.accuracy, 0.0)))
    recipe = learned.recipe
    plot_trade_off({recipe.features: points}, f"{recipe.keep} against {recipe.hide}", path)
