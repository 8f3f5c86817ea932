"""Random rotation and projection of tables, unmixed: twenty people's recordings, cepstra, and the census.

Rows mixed: each of 20 people of AudioMNIST says ten digits, a row of samples at 8 kHz each, all at one level; what is
released are mixtures of the people, R X. Columns mixed: 13 cepstra of frames, or the six numbers of Adult, of deviation
1 each; X R. A row or column is read if its correlation is above 0.95 after the best matching. Independent components
are those of scikit-learn (FastICA); whoever knows m of the samples that were mixed needs no independence, and for k < m
guesses the rest by other people's cepstra (FSDD).

k = m is a rotation. Recordings and the census have independent columns, and all of it is read; cepstra depend on each
other, and independence reads none of them: known samples read all. With k < m less is read the smaller k is, and for
k <= (m + 1) / 2 next to nothing; inner products are told all the same. That nothing is read is no guarantee.

Needs the corpora audiomnist and fsdd and the table adult; --quick takes about 10 s.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ppspeech.arrays import Reals
from ppspeech.audio import MfccConfig
from ppspeech.data import Corpus, FeatureStore, load_corpus
from ppspeech.data.tables import load_adult_raw
from ppspeech.evidence.attacks.tables import RECOVERED, from_known, recovered, unmixed
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.figures import Figure
from ppspeech.pictures import blank, save
from ppspeech.privacy.mechanisms import RandomProjection

PEOPLE, RATE = 20, 8_000
CEPSTRA = 13
DRAWS = 5


@dataclass(frozen=True, eq=False)
class Sources:
    """Columns `(samples, m)` that are mixed, and rows of others that are distributed alike."""

    name: str
    values: Reals
    side: str
    public: Reals | None = None

    @property
    def count(self) -> int:
        """m."""
        return int(self.values.shape[1])

    def mixed(self, outputs: int) -> Reals:
        """As the mechanism releases them, column by column."""
        table = torch.from_numpy(self.values)
        if self.side == "rows":
            by_rows = RandomProjection(inputs=self.count, outputs=outputs, side="rows")
            return by_rows.release(table.mT).value.mT.numpy()
        return RandomProjection(inputs=self.count, outputs=outputs).release(table).value.numpy()

    def by_independence(self, outputs: int) -> int:
        """How many columns independent components read."""
        return recovered(self.values, unmixed(self.mixed(outputs)))

    def by_known(self, outputs: int) -> int:
        """How many columns are read by whoever knows m of the samples, spread over the table."""
        mixed = self.mixed(outputs)
        at = independent_rows(self.values)
        return recovered(self.values, from_known(self.values[at], mixed[at], mixed, self.public))


@EXPERIMENTS.register("projection")
def run(quick: bool, folder: Path) -> list[Figure]:
    """Save `projection.png` in `folder`; `quick`: one draw of the matrix instead of five."""
    draws = 1 if quick else DRAWS
    speech, cepstra, census = people(), frames(), numbers()
    curves = {
        f"{each.name}, {how}": {k: mean(read, k, draws) / each.count for k in outputs(each.count)}
        for each in (speech, cepstra, census)
        for how, read in (("independence", each.by_independence), ("known samples", each.by_known))
    }
    picture = folder / "projection.png"
    _plot(curves, {each.name: each.count for each in (speech, cepstra, census)}, picture)
    setting = f"|correlation| > {RECOVERED}, mean of {draws} drawn; {picture}"
    half = (speech.count + 1) // 2
    made = []
    for each, short in ((speech, ""), (cepstra, "cepstra."), (census, "adult.")):
        m, small = each.count, (each.count + 1) // 2
        for how, kind in (("independence", "ica"), ("known samples", "known")):
            curve = curves[f"{each.name}, {how}"]
            for what, k in (("rotation", m), ("projection", small)):
                note = f"{each.name}: share of {m} {each.side} read by {how}, k = {k}; {setting}"
                made.append(Figure(f"{kind}.{short}{what}.recovered", curve[k], note=note))
    more = f"{speech.name}, by independence, of {speech.count} {speech.side}; k <= (m + 1) / 2 = {half} reads few"
    made += [
        Figure(f"ica.k{k}.recovered", curves[f"{speech.name}, independence"][k], note=more)
        for k in outputs(speech.count)
    ]
    return made


def outputs(m: int) -> list[int]:
    """Numbers of outputs to look at: few, half, all but some, all, more."""
    return sorted({max(1, m // 4), (m + 1) // 2, (3 * m + 2) // 4, m - 1, m, m + m // 2})


def mean(read: Callable[[int], int], k: int, draws: int) -> float:
    """Over fresh matrices."""
    return sum(read(k) for _ in range(draws)) / draws


def people() -> Sources:
    """What twenty people say, sample by sample, `(samples, people)`, each at the same level."""
    corpus = load_corpus("audiomnist")
    said = []
    for speaker in corpus.speakers[:PEOPLE]:
        own = sorted((u for u in corpus if u.speaker == speaker and u.take == 0), key=lambda u: str(u.word))
        said.append(np.concatenate([u.waveform(RATE).numpy().ravel() for u in own]).astype(np.float64))
    shortest = min(len(each) for each in said)
    return Sources("recordings", standardized(np.stack([each[:shortest] for each in said], axis=1)), "rows")


def frames() -> Sources:
    """Cepstra of frames of twenty people, and of other people."""
    corpus = load_corpus("audiomnist")
    some = set(corpus.speakers[:PEOPLE])
    own = cepstra_of(corpus.select(lambda u: u.speaker in some and u.take == 0))
    public = cepstra_of(load_corpus("fsdd").select(lambda u: u.take == 0))
    spread = own.std(axis=0)
    return Sources("cepstra", own / spread, "columns", public / spread)


def cepstra_of(corpus: Corpus) -> Reals:
    """All frames one below the other, `(frames, 13)`."""
    found = FeatureStore(MfccConfig(cmvn="none")).load(corpus.utterances)
    return np.concatenate([each[:, :CEPSTRA].numpy() for each in found]).astype(np.float64)


def numbers() -> Sources:
    """The six numbers of the census."""
    records = load_adult_raw()
    table = np.stack([values.numpy() for values in records.numbers.values()], axis=1).astype(np.float64)
    return Sources("census", standardized(table), "columns")


def standardized(values: Reals) -> Reals:
    """Mean 0 and deviation 1, column by column."""
    centered: Reals = values - values.mean(axis=0)
    scaled: Reals = centered / centered.std(axis=0)
    return scaled


def independent_rows(values: Reals) -> list[int]:
    """m rows that are linearly independent, the first such ones after a stride through the table."""
    chosen: list[int] = []
    for at in range(0, len(values), max(1, len(values) // (50 * values.shape[1]))):
        if np.linalg.matrix_rank(values[[*chosen, at]]) > len(chosen):
            chosen.append(at)
        if len(chosen) == values.shape[1]:
            break
    return chosen


def _plot(curves: dict[str, dict[int, float]], counts: dict[str, int], path: Path) -> None:
    picture = blank(7, 5)
    axes = picture.subplots()
    for name, curve in curves.items():
        source, _, how = name.partition(", ")
        shares = [k / counts[source] for k in curve]
        axes.plot(shares, list(curve.values()), "o-" if how == "independence" else "s--", label=name)
    axes.set(xlabel="outputs k / inputs m", ylabel="share of inputs read", title="Random projection, unmixed")
    axes.set_ylim(-0.03, 1.03)
    axes.legend(fontsize="small")
    save(picture, path)
