r"""Johnson-Lindenstrauss releases: the floors that are needed and those that were published, cuts, and speech.

Floors for rows of norm 1 and delta 1e-6: w^2 of covariances and w of graphs by the exact law, beside Blocki et al. 2012
as the survey prints them, and Sheffet 2017.

Cuts: a made-up graph of who calls whom, 4,500 people in six circles (1,400 and ten rows where --quick is given), cut in
two at random and along circles; released at (1, 1e-6) for one pair, with the exact floor and with the published one,
whose factor 1/2 is corrected to 1/r. Noise on every pair alone, exact Gaussian, stands beside them.

Speech: second moments of AudioMNIST, 4,800 utterances of 52 numbers scaled by the public built-in voices and clipped
to norm 1; root mean square errors of the variance in the five directions that have most and the five that have least,
over draws, by a projection, by Gaussian noise on the moments (Analyze Gauss) and by Wishart noise. A floor never is
better than Gaussian noise of the same epsilon in one direction: sqrt(2/r) w^2 falls to its sigma as r grows, and what
the direction itself has comes on top. It is a sketch that is small (r numbers a feature), and it protects whole people
(speaker unit) without a second analysis.

Needs the corpus audiomnist; --quick takes about 20 s.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ppspeech.audio import MfccConfig, utterance_statistics
from ppspeech.data import SyntheticCorpus, load_corpus
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.minimax_emodb import frames, labels
from ppspeech.evidence.published.projections import PublishedGraphCuts, covariance_floor, graph_floor, sheffet_floor
from ppspeech.figures import Figure
from ppspeech.intervals import Mean
from ppspeech.pictures import blank, save
from ppspeech.privacy import AnalyzeGauss, Relation, gaussian_sigma
from ppspeech.privacy.mechanisms import GraphCuts, JohnsonLindenstrauss, Wishart, projection_ratio

DELTA = 1e-6
TABLE = ((10, 1.0), (100, 1.0), (100, 0.1))
RECORD, SPEAKER = Relation("record", "add_remove"), Relation("speaker", "add_remove")
CIRCLES, INSIDE, ACROSS = 6, 0.1, 0.01  # circles of people, and how likely two of one, or of two, call
SPLITS = 20
SPOKEN_ROWS = (20, 100, 1000)
MADE_UP = 1000
FEW = 5  # directions of most and of least variance


@EXPERIMENTS.register("jl")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Save `jl.png`; `quick`: a graph of 1,400 nodes, ten rows and three releases; 5 draws on speech instead of 30."""
    figures = [figure for rows, epsilon in TABLE for figure in floors(rows, epsilon)]
    figures += _cuts(1_400, 10, 3) if quick else _cuts(4_500, 100, 5)
    return [*figures, *_speech(5 if quick else 30, folder / "jl.png")]


def floors(rows: int, epsilon: float) -> list[Figure]:
    """The floors of one row of the table."""
    q = projection_ratio(epsilon, DELTA, rows, False, RECORD)
    at = f"r{rows}.eps{epsilon:g}"
    printed, proved, graph = (floor(rows, epsilon, DELTA) for floor in (covariance_floor, sheffet_floor, graph_floor))
    note = f"delta {DELTA:g}, rows of norm 1; w of graphs as n grows"
    return [
        Figure.less(f"jl.covariance.{at}.w2", 1 / q, "", "as the survey prints it", printed, note=note),
        Figure.less(f"jl.sheffet.{at}.w2", 1 / q, "", "Sheffet 2017", proved, note=note),
        Figure.less(f"jl.graph.{at}.w", 2 / q, "", "as the survey prints it", graph, note=note),
    ]


def calls(nodes: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Who calls whom, `(nodes, nodes)` of 0 and 1, and the circle of everyone, `(nodes,)`."""
    generator = torch.Generator().manual_seed(seed)
    circle = torch.arange(nodes) % CIRCLES
    likely = torch.where(circle == circle.unsqueeze(1), INSIDE, ACROSS)
    above = (torch.rand(nodes, nodes, generator=generator) < likely).double().triu(1)
    return above + above.mT, circle


def _cuts(nodes: int, rows: int, releases: int) -> list[Figure]:
    weights, circle = calls(nodes)
    generator = torch.Generator().manual_seed(1)
    members = torch.cat(
        [circle == torch.arange(CIRCLES).unsqueeze(1), torch.rand(SPLITS, nodes, generator=generator) < 0.5]
    )
    inside = members.double()
    truth = ((inside @ weights) * (1 - inside)).sum(1)
    exact = GraphCuts.calibrated(epsilon=1.0, delta=DELTA, nodes=nodes, rows=rows)
    printed = PublishedGraphCuts(epsilon=1.0, delta=DELTA, nodes=nodes, rows=rows)

    def error(cuts: Callable[[], Tensor]) -> Mean:
        return Mean.of([float(((cuts() - truth) / truth).square().mean().sqrt()) for _ in range(releases)])

    ours = error(lambda: exact.cuts(exact.release(weights).value, members))
    theirs = error(lambda: printed.cuts(printed.release(weights).value, members, factor=1 / rows))
    size = inside.sum(1)
    alone = float((gaussian_sigma(1.0, DELTA) * (size * (nodes - size)).sqrt() / truth).square().mean().sqrt())
    about = f"{nodes:,} nodes, {rows} rows, {len(members)} cuts, relative, {releases} releases; w {exact.floor:.4g}"
    return [
        Figure.less("jl.cuts.w", exact.floor, "", "published", printed.floor, note="(1, 1e-6), this graph"),
        Figure.less(
            "jl.cuts.error",
            ours.value,
            "",
            "published w, factor corrected",
            theirs.value,
            note=f"{about}; interval over releases, the published one's {theirs.low:.4g} to {theirs.high:.4g}",
        ).between(ours.low, ours.high),
        Figure("jl.cuts.gaussian.error", alone, note="noise on every pair instead, by its law"),
    ]


def spoken_rows() -> tuple[Tensor, Tensor]:
    """Utterances `(n, 52)` scaled by public voices to a norm of about 1, and whose they are."""
    corpus = load_corpus("audiomnist")
    real, public = (
        utterance_statistics(frames(each, MfccConfig.hamm2015(each.sample_rate))).double()
        for each in (corpus, SyntheticCorpus(speakers=8, takes=2).build())
    )
    scaled = (real - public.mean(0)) / (public.std(0) * math.sqrt(real.shape[1]))
    return scaled, labels(corpus, "speaker")


def _speech(draws: int, picture: Path) -> list[Figure]:
    x, people = spoken_rows()
    terms: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "radius": 1.0, "features": x.shape[1], "relation": RECORD}
    gauss = AnalyzeGauss.calibrated(**terms)
    wishart = Wishart.calibrated(made_up=MADE_UP, **terms)
    truth = gauss.moments(x)
    directions = torch.linalg.eigh(truth).eigenvectors.mT
    ends = {"least": directions[:FEW], "most": directions[-FEW:]}
    ways: dict[str, Callable[[], Tensor]] = {
        "gaussian": lambda: gauss.release(x).value,
        f"wishart{MADE_UP}": lambda: wishart.moments(wishart.release(x).value),
    }
    for rows in SPOKEN_ROWS:
        ways[f"r{rows}"] = _projected(JohnsonLindenstrauss.calibrated(rows=rows, **terms), x)
    errors = {name: _errors(way, truth, ends, draws) for name, way in ways.items()}
    _plot({name: {end: mean.value for end, mean in found.items()} for name, found in errors.items()}, picture)
    figures = []
    for end, along in ends.items():
        held = float(((along @ truth) * along).sum(1).mean())
        for name, found in errors.items():
            peer = None if name == "gaussian" else "Analyze Gauss"
            rival = None if name == "gaussian" else errors["gaussian"][end].value
            note = f"directions of {end} variance, {held:.4g} of {len(x):,} utterances; {draws} draws; {picture}"
            ratio = None if rival is None else rival / found[end].value
            note += "; interval over draws"
            figures.append(Figure.mean(f"jl.speech.{name}.{end}.error", found[end], "", peer, rival, ratio, note=note))
    person = terms | {"relation": SPEAKER}
    whole = JohnsonLindenstrauss.calibrated(rows=100, **person)
    moments = _errors(lambda: whole.moments(whole.release(x, people).value), whole.scatter(x, people), ends, draws)
    note = f"a whole person protected, all their utterances together of norm 1; w^2 {whole.floor:.4g}"
    figures.append(Figure.mean("jl.speech.speaker.r100.most.error", moments["most"], note=note))
    return figures


def _projected(mechanism: JohnsonLindenstrauss, x: Tensor) -> Callable[[], Tensor]:
    return lambda: mechanism.moments(mechanism.release(x).value)


def _errors(way: Callable[[], Tensor], truth: Tensor, ends: dict[str, Tensor], draws: int) -> dict[str, Mean]:
    """Root mean square errors of the variance along directions."""
    found: dict[str, list[float]] = {end: [] for end in ends}
    for _ in range(draws):
        wrong = way() - truth
        for end, along in ends.items():
            found[end].append(float(((along @ wrong) * along).sum(1).square().mean().sqrt()))
    return {end: Mean.of(values) for end, values in found.items()}


def _plot(errors: dict[str, dict[str, float]], path: Path) -> None:
    picture = blank(7, 4)
    axes = picture.subplots()
    places = range(len(errors))
    for offset, end in ((-0.2, "least"), (0.2, "most")):
        axes.bar([at + offset for at in places], [errors[name][end] for name in errors], 0.4, label=f"{end} variance")
    axes.set_xticks(list(places), list(errors))
    axes.set(yscale="log", ylabel="error of a direction's variance", title="AudioMNIST, (1, 1e-6) for one utterance")
    axes.legend()
    save(picture, path)
