"""What encryption does to the equal error rate: the same trials of AudioMNIST, scored plainly and encrypted.

Speakers 01-40 train a background model, 41-60 are enrolled with takes 0-3 of all digits; a trial is one digit of takes
4-7 against all 20 models. An encrypted trial gives one bit, from which no error rate follows: here both parties are
in one process, and their shares of the scores are added up as no deployed party can.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.crypto.shares import ShareEngine, blank, record
from ppspeech.crypto.transfer import Side
from ppspeech.data.corpora import DIGIT_WORDS
from ppspeech.evidence.experiments.embedded_speakers import encrypted_cosines
from ppspeech.evidence.experiments.speakers import (
    BACKGROUND,
    ENROLLMENT,
    FLOOR,
    TRIALS,
    drawn_again,
    load_clips,
    normalize,
    one_take,
    padded,
    speaker_models,
    targets_of,
)
from ppspeech.figures import Figure
from ppspeech.models import SpeakerVerifier, adapt_speakers, equal_error_rate
from ppspeech.models.gaussian import GaussianMixture, fit_mixture, supervectors
from ppspeech.network import run_together
from ppspeech.progress import track
from ppspeech.protocols import Meeting, meet_as_client, meet_as_server
from ppspeech.protocols.scores import MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers import MOST_BITS, voice_codes

NORM = 16.0  # public bound on the length of a frame; the longest of the corpus has 14.5


def eer_differences(quick: bool) -> list[Figure]:
    """The difference between encrypted and plain equal error rates: the larger of two scorers, and each."""
    clips, speakers = load_clips()
    background, enrolled = speakers[:BACKGROUND], speakers[BACKGROUND:]
    words, takes = DIGIT_WORDS[: 1 if quick else 5], TRIALS[: 1 if quick else 3]
    pool = torch.cat([one_take(clips, who, take) for who in background for take in ENROLLMENT + TRIALS])
    ubm = fit_mixture(pool, 16 if quick else 64, floor=FLOOR, iterations=4 if quick else 20)
    models = speaker_models(ubm, clips, enrolled)
    many = [(who, normalize(clips[who, take, word])) for who in enrolled for take in TRIALS for word in words]
    few = [(who, normalize(clips[who, take, DIGIT_WORDS[0]])) for who in enrolled for take in takes]
    known, asked = (_directions(ubm, each) for each in (models, adapt_speakers(ubm, *padded([x for _, x in many]))))
    found = [
        _compare("linear", *encrypted_cosines(known, asked), targets_of(many, enrolled)),
        _compare("gmm_ubm", *_log_ratios(ubm, models, [x for _, x in few]), targets_of(few, enrolled)),
    ]
    worst = max(found, key=lambda figure: figure.value)
    note = "the larger of supervectors with cosines and of mixtures against the background, AudioMNIST, one digit"
    owners = [who for who, _ in many]
    codes = [_codes(known, asked, owners, enrolled, bits) for bits in (MOST_BITS, MOST_BITS // 2)]
    return [Figure("speakers.eer_difference", worst.value, note=note), *found, *codes]


def _compare(name: str, plain: Tensor, encrypted: Tensor, targets: Tensor) -> Figure:
    rates = [equal_error_rate(scores, targets) for scores in (plain, encrypted)]
    note = (
        f"{targets.numel():,} trials: plain {rates[0]:.5f}, encrypted {rates[1]:.5f}, "
        f"scores differ by at most {float((plain - encrypted).abs().max()):.4f}"
    )
    return Figure(f"speakers.eer_difference.{name}", abs(rates[0] - rates[1]), note=note)


def _directions(ubm: GaussianMixture, models: GaussianMixture) -> Tensor:
    """Supervectors measured from the background's, of unit length, `(models, size)`."""
    return torch.nn.functional.normalize(supervectors(ubm, models) - supervectors(ubm, ubm), dim=-1).double()


def _codes(known: Tensor, asked: Tensor, owners: Sequence[str], enrolled: Sequence[str], bits: int) -> Figure:
    """The equal error rate of codes, which `speaker_verification_hardened` compares, beside that of cosines."""
    mine, theirs = (torch.from_numpy(2.0 * voice_codes(each.numpy(), bits) - 1) for each in (asked, known))
    scores = asked @ known.mT, mine @ theirs.mT
    targets = torch.tensor([[who == model for model in enrolled] for who in owners])
    cosines, codes = (equal_error_rate(each, targets) for each in scores)
    plain, coded = (np.array([equal_error_rate(*drawn) for drawn in drawn_again(each, targets)]) for each in scores)
    low, high = np.quantile(coded - plain, [0.025, 0.975])
    note = (
        f"{scores[0].numel():,} trials of one digit; larger than with cosines by {low:.4f} to {high:.4f}, 95 %; "
        "intervals by bootstrap over people"
    )
    ratio = cosines / codes if codes else None
    figure = Figure(f"speakers.hardened.{bits}_bits.eer", codes, "", "cosines", cosines, ratio, note)
    return figure.between(*np.quantile(coded, [0.025, 0.975]).tolist())


def _log_ratios(ubm: GaussianMixture, models: GaussianMixture, trials: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Average log-likelihood ratios, `(trials, speakers)`: plain, and from both parties' shares.

    All speakers are scored at once: the first as the claimed one, the others as a cohort.
    """
    x, lengths = padded(trials)
    with torch.no_grad():
        plain = SpeakerVerifier(ubm, models)(x, lengths)
    speakers = models.batch[0]
    plan = MixturePlan(x.shape[1], ubm.features, ubm.components, 1, speakers - 1, norm=NORM)
    every = mixtures_of(models)
    parts = [Mixtures(*(field[part] for field in vars(every).values())) for part in (slice(1), slice(1, None))]
    scorer = MixtureScorer.of(plan, mixtures_of(ubm), parts[0], 0.0, cohort=parts[1])
    frames = [each.double().numpy() for each in trials]
    mine, theirs = run_together(
        lambda channel: _ratio_shares(meet_as_client(channel), plan, frames, None),
        lambda channel: _ratio_shares(meet_as_server(channel), plan, frames, scorer),
    )
    totals = plan.scale.decode(plan.total_ring.to_signed(plan.total_ring.join(mine, theirs)))
    return plain.double(), torch.from_numpy(totals) / lengths.unsqueeze(-1)


def _ratio_shares(
    met: Meeting, plan: MixturePlan, frames: list[Reals], scorer: MixtureScorer | None
) -> NDArray[np.uint64]:
    """One party's shares of all trials' sums; only the client's reads the frames."""
    shares = []
    cost = record(lambda engine: plan.claimed_scores(engine, blank(plan.frames, plan.product.columns), 0))
    with met.session():
        for trial in track(frames, "ratios"):
            engine = ShareEngine(met.channel, met.setup, cost)
            if met.side is Side.SECOND:
                shares.append(plan.claimed_scores(engine, met.multiply(plan.product, plan.rows(trial)), 0).residues)
            else:
                assert scorer is not None
                shares.append(plan.claimed_scores(engine, scorer.multiply(met), None).residues)
    return np.stack(shares)


def mixtures_of(module: GaussianMixture) -> Mixtures:
    """A diagonal mixture, or a batch of them, as the protocol takes them."""
    fields = (module.log_weights(), module.gaussians.mean, module.gaussians.variances())
    arrays = [field.detach().double().numpy() for field in fields]
    return Mixtures(*(array if module.batch else array[None] for array in arrays))
