"""Speech statistics without names, linked to a few other clips of the same people; and ratings of films, made up.

The table: 60 people of AudioMNIST, a row each, the 52 numbers of Hamm 2015 (mean, maximum, minimum, deviation of 13
cepstra) averaged over the 40 clips of takes 0 to 3; no names. Somebody has n clips of each person out of takes 4 to 7,
drawn at random, and gives each the row that resembles them most (Narayanan and Shmatikov 2008), or matches all people
to rows jointly, which is the stronger attack where there is noise; the better of the two counts. Protected tables are
linked likewise: k-anonymous by boxes, all columns being known to others; every column swapped on its own, among a share
of the people; and each row with noise of its own, (epsilon, 1e-5)-DP for a whole person exchanged, scaled and clipped
by what clips of FSDD are like. What is left to use is how far the means of the columns are off, in deviations; where
means are all that is wanted, a curator releases them alone, for less noise and without a row to link.

Ratings: 2,000 subscribers, 1,000 films of which few are seen by many; 8 known ratings, 2 of them wrong.

Needs the corpora audiomnist and fsdd; --quick takes about 15 s.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ppspeech.arrays import Reals, Whole
from ppspeech.audio import MfccConfig, utterance_statistics
from ppspeech.data import Corpus, load_corpus
from ppspeech.evidence.attacks.tables import attributes, link, match, of_people
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.minimax_emodb import frames, labels
from ppspeech.figures import Figure
from ppspeech.intervals import clopper_pearson
from ppspeech.pictures import blank, save
from ppspeech.privacy import DiscreteGaussian, Relation, UnitSum
from ppspeech.privacy.anonymity import KAnonymity, Records, Swapping

RATE = 8_000  # of both corpora
RELEASED = 4  # takes below are in the table, the others are known clips
CLIPS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 40)
K = (2, 5)
RATES = (0.3, 1.0)
EPSILONS = (1.0, 4.0, 64.0)  # the last to see that the attackers win where there is little noise
DELTA = 1e-5
DRAWS = 20
SUBSCRIBERS, FILMS = 2_000, 1_000
KNOWN_RATINGS = (2, 4, 6, 8)


@dataclass(frozen=True, eq=False)
class Speech:
    """Clips as 52 numbers `(clips, 52)`, whose they are and of which take; and what others' are like."""

    values: Reals
    people: Whole
    takes: Whole
    center: Reals
    spread: Reals

    @property
    def table(self) -> Reals:
        """A row a person."""
        inside = self.takes < RELEASED
        return of_people(self.values[inside], self.people[inside])

    def known(self, clips: int, chance: np.random.Generator) -> Reals:
        """What so many clips of each person, of the other takes, say in the mean."""
        rows = []
        for person in range(int(self.people.max()) + 1):
            own = np.flatnonzero((self.people == person) & (self.takes >= RELEASED))
            rows.append(self.values[chance.choice(own, clips, replace=False)].mean(axis=0))
        return np.stack(rows)


Told = tuple[Reals, Reals]
"""The smallest and the largest number that each cell of a table may mean."""

Protection = Callable[[Reals, Speech], Told]


@EXPERIMENTS.register("deanonymize")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Save `deanonymize.png` in `folder`; `quick`: two draws of clips instead of twenty, 200 subscribers asked for."""
    speech, draws = load_speech(), 2 if quick else DRAWS
    curves = {name: linked(speech, protect, draws) for name, protect in protections().items()}
    films, sought = ratings(200 if quick else SUBSCRIBERS)
    picture = folder / "deanonymize.png"
    _plot(curves, films, picture)
    return [*_speech_figures(speech, curves, draws, picture), *_film_figures(films, sought)]


def load_speech() -> Speech:
    """AudioMNIST, and the center and spread of FSDD's clips."""
    corpus, public = load_corpus("audiomnist"), statistics(load_corpus("fsdd"))
    takes = np.array([u.take for u in corpus])
    return Speech(statistics(corpus), labels(corpus, "speaker").numpy(), takes, public.mean(axis=0), public.std(axis=0))


def statistics(corpus: Corpus) -> Reals:
    """The 52 numbers of every clip."""
    found: Reals = utterance_statistics(frames(corpus, MfccConfig.hamm2015(RATE))).double().numpy()
    return found


def protections() -> dict[str, Protection]:
    """What is done to the table, by name."""
    made: dict[str, Protection] = {"none": lambda table, _: (table, table)}
    made |= {f"k{k}": lambda table, _, k=k: boxed(table, k) for k in K}  # type: ignore[misc]
    made |= {f"swap{rate:g}": lambda table, _, rate=rate: swapped(table, rate) for rate in RATES}  # type: ignore[misc]
    made |= {f"dp{at:g}": lambda table, speech, at=at: noisy(table, speech, at) for at in EPSILONS}  # type: ignore[misc]
    return made


def written(table: Reals) -> Records:
    """As text, each number to the last bit."""
    return Records({f"x{at}": tuple(map(repr, column.tolist())) for at, column in enumerate(table.T)})


def boxed(table: Reals, k: int) -> Told:
    """k-anonymous, all columns being quasi-identifiers."""
    records = written(table)
    told = KAnonymity(k=k, quasi=tuple(records.columns), method="mondrian").release(records).value.records
    return attributes(told, records, tuple(records.columns))[:2]


def swapped(table: Reals, rate: float) -> Told:
    """Every column on its own, among a share of the people."""
    records = written(table)
    for name in records.columns:
        records = Swapping(columns=(name,), rate=rate).release(records).value
    return attributes(records, records, tuple(records.columns))[:2]


def mechanism(columns: int, epsilon: float) -> DiscreteGaussian:
    """Noise for one row, clipped to norm sqrt(columns): another person's row is at most twice that away."""
    reach = 2 * math.sqrt(columns)
    relation = Relation("speaker", "replace")
    return DiscreteGaussian.calibrated(
        epsilon=epsilon, delta=DELTA, sensitivity=reach, dimension=columns, relation=relation
    )


def noisy(table: Reals, speech: Speech, epsilon: float) -> Told:
    """Each row by itself: scaled by public speech, clipped, with noise, and scaled back."""
    columns = table.shape[1]
    noise = mechanism(columns, epsilon)
    told = np.stack([noise.release(torch.from_numpy(row)).value.numpy() for row in clipped(table, speech)])
    back: Reals = told * speech.spread + speech.center
    return back, back


def clipped(table: Reals, speech: Speech) -> Reals:
    """Scaled by public speech, to norm sqrt(columns) at the most."""
    scaled = (table - speech.center) / speech.spread
    norms = np.linalg.norm(scaled, axis=1, keepdims=True)
    short: Reals = scaled * np.minimum(1.0, math.sqrt(table.shape[1]) / norms)
    return short


def error_of_means(speech: Speech, epsilon: float) -> float:
    """Of the means alone, released by a curator with noise for one person exchanged; in deviations."""
    table = speech.table
    bound, relation = math.sqrt(table.shape[1]), Relation("speaker", "replace")
    noise = UnitSum.calibrated(epsilon=epsilon, delta=DELTA, bound=bound, relation=relation)
    total = noise.release(noise.add_up(torch.from_numpy(clipped(table, speech)))).value.numpy()
    return off(total / len(table) * speech.spread + speech.center, table)


def off(means: Reals, table: Reals) -> float:
    """How far means of the columns are off, in deviations of the people, root mean square."""
    return float(np.sqrt(np.square((means - table.mean(axis=0)) / table.std(axis=0)).mean()))


@dataclass(frozen=True)
class Curve:
    """What a table tells.

    Attributes:
        named: share of people named, by known clips, by the better attacker.
        scored: the same by scores, one person at a time.
        narrowed: by the most clips, share whose row is among those that resemble most, which may be several.
        off: error of the means of columns, in deviations.
    """

    named: dict[int, float]
    scored: dict[int, float]
    narrowed: float
    off: float


def linked(speech: Speech, protect: Protection, draws: int) -> Curve:
    """Each draw has clips and a table of its own."""
    chance = np.random.default_rng(0)
    table = speech.table
    truth = np.arange(len(table))
    scored, jointly = dict.fromkeys(CLIPS, 0.0), dict.fromkeys(CLIPS, 0.0)
    narrowed, error = 0.0, 0.0
    for _ in range(draws):
        low, high = protect(table, speech)
        error += off(((low + high) / 2).mean(axis=0), table) / draws
        for clips in CLIPS:
            known = speech.known(clips, chance)
            found = link(known, low, high)
            scored[clips] += found.named(truth) / draws
            jointly[clips] += float((match(known, low, high) == truth).mean()) / draws
        narrowed += found.narrowed(truth) / draws
    return Curve({clips: max(scored[clips], jointly[clips]) for clips in CLIPS}, scored, narrowed, error)


def clips_for(named: Mapping[int, float], share: float) -> int | None:
    """The fewest clips, of those tried, that name so many."""
    return next((clips for clips, found in named.items() if found >= share), None)


def ratings(asked: int) -> tuple[dict[int, tuple[float, float, float]], int]:
    """By known ratings: share of subscribers named; precision and recall of those believed. A quarter are wrong. And
    how many subscribers were looked for.
    """
    chance = np.random.default_rng(0)
    popularity = 1 / np.arange(1, FILMS + 1)
    seen = chance.random((SUBSCRIBERS, FILMS)) < np.minimum(0.9, 40 * popularity / popularity.sum())
    quality = chance.normal(3.5, 0.7, FILMS)
    stars = np.clip(np.rint(quality + chance.normal(0, 1.0, seen.shape)), 1, 5)
    records = np.where(seen, stars, np.nan)
    most = max(KNOWN_RATINGS)
    able = np.flatnonzero(seen.sum(axis=1) >= most)[:asked]
    known = {count: np.full((len(able), FILMS), np.nan) for count in KNOWN_RATINGS}
    for place, subscriber in enumerate(able):
        films = chance.permutation(np.flatnonzero(seen[subscriber]))[:most]
        for count, table in known.items():
            table[place, films[:count]] = records[subscriber, films[:count]]
            wrong = chance.integers(0, FILMS, count // 4)  # films that were not seen, as likely as not
            table[place, films[: len(wrong)]] = np.nan
            table[place, wrong] = chance.integers(1, 6, len(wrong))
    found = {}
    for count, table in known.items():
        linked = link(table, records)
        found[count] = (linked.named(able), *linked.believed(able))
    return found, len(able)


def _speech_figures(speech: Speech, curves: dict[str, Curve], draws: int, picture: Path) -> list[Figure]:
    people = len(speech.table)
    about = f"{people} people, {draws} draws of clips, chance {1 / people:.3f}; who knows one person's clips; {picture}"
    alone = "share named by so many clips of one person, no protection"
    plain = curves["none"].scored
    made = [
        Figure(f"deanonymize.clips_for_{word}", float(clips_for(plain, share) or math.nan), note=about)
        for word, share in (("half", 0.5), ("nine_tenths", 0.9))
    ]
    made += [_named(f"deanonymize.clips{clips}.accuracy", plain[clips], people, alone) for clips in (1, 2, 5, 10)]
    most = max(CLIPS)
    for name, curve in curves.items():
        if name == "none":
            continue
        named = curve.named
        words = [
            f"{share:.0%} of them " + ("never" if clips_for(named, share) is None else f"by {clips_for(named, share)}")
            for share in (0.5, 0.9)
        ]
        note = (
            f"share named by {most} clips, {', '.join(words)}, by the better attacker ({curve.scored[most]:.3f} by "
            f"scores); column means off by {curve.off:.2g} deviations"
        )
        if name.startswith("k"):
            note += f"; {curve.narrowed:.2f} narrowed down to the rows of their class"
        if name.startswith("dp"):
            odds = math.exp(2 * float(name[2:]))
            note += f"; nobody can name more than {odds / (odds + people - 1):.2g}, delta apart"
        label = "after_dp" if name == f"dp{EPSILONS[0]:g}" else f"after_{name}"
        made.append(_named(f"deanonymize.{label}.accuracy", named[most], people, note))
    means = f"means alone by a curator, {EPSILONS[0]:g}-DP at delta {DELTA:g}, one person exchanged; in deviations"
    return [*made, Figure("deanonymize.means.dp.error", error_of_means(speech, EPSILONS[0]), note=means)]


def _named(metric: str, share: float, people: int, note: str, who: str = "people") -> Figure:
    """The mean share over draws; the people are the same in all of them, and so the interval is that of one draw."""
    ends = clopper_pearson(min(share, 1.0) * people, people)
    return Figure(metric, share, note=f"{note}; interval over {people:,} {who}").between(*ends)


def _film_figures(films: dict[int, tuple[float, float, float]], sought: int) -> list[Figure]:
    return [
        _named(
            f"deanonymize.ratings{count}.accuracy",
            named,
            sought,
            f"{SUBSCRIBERS:,} made-up subscribers, {count} known ratings, {count // 4} of them wrong; of those that "
            f"stand out {precision:.3f} right, {recall:.3f} of all",
            "subscribers",
        )
        for count, (named, precision, recall) in films.items()
    ]


def _plot(curves: dict[str, Curve], films: dict[int, tuple[float, float, float]], path: Path) -> None:
    picture = blank(11, 5)
    speech, rated = picture.subplots(1, 2)
    names = {"none": "names removed", "k": "k-anonymous, k = ", "swap": "swapped, share ", "dp": "DP, epsilon = "}
    for name, curve in curves.items():
        kind = name.rstrip("0123456789.")
        speech.plot(list(curve.named), list(curve.named.values()), "o-", label=names[kind] + name.removeprefix(kind))
    speech.set(xscale="log", xlabel="known clips", ylabel="share of people named", title="Speech statistics, 60 people")
    speech.legend(fontsize="small")
    rated.plot(list(films), [named for named, _, _ in films.values()], "o-", label="named")
    rated.plot(list(films), [recall for _, _, recall in films.values()], "s--", label="named, and stands out")
    rated.set(xlabel="known ratings", ylabel="share of subscribers", title="Ratings, made up", ylim=(0, 1.03))
    rated.legend(fontsize="small")
    save(picture, path)
