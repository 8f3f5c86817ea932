"""The GMM-UBM attacker: a background mixture of everyone's filtered frames, adapted to each person."""

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ppspeech.audio import Frames
from ppspeech.filters.attack.attackers.attacker import SPEECH_ATTACKERS, Scorer, Standardizing, frames_inside
from ppspeech.models import SpeakerVerifier
from ppspeech.models.gaussian import fit_mixture, frame_mask, map_adapt, mixture_statistics

COMPONENTS, ITERATIONS, FLOOR, BLOCK = 64, 15, 1e-2, 100
FRAMES_A_COMPONENT = 50


@SPEECH_ATTACKERS.register("gmm_ubm")
@torch.no_grad()
def gmm_ubm(frames: Frames, labels: Tensor, classes: int, seed: int) -> Scorer[Frames]:
    """Speaker verification as it was done for a decade (Reynolds et al. 2000), on filtered frames.

    The background model is trained on the same people it is adapted to: the attacker has no one else's filtered
    speech. Scores are average log-likelihood ratios a frame.
    """
    scale = Standardizing(frames)
    seen = scale(frames)
    pool = frames_inside(seen)
    components = max(1, min(COMPONENTS, len(pool) // FRAMES_A_COMPONENT))
    ubm = fit_mixture(pool, components, floor=FLOOR, iterations=ITERATIONS, seed=seed)
    speech = [frames_inside(Frames(*(part[labels == who] for part in seen))) for who in range(classes)]
    lengths = torch.tensor([len(own) for own in speech], device=pool.device)
    x = pad_sequence(speech, batch_first=True)
    # With few people a component may be one person's own: then its weight tells them, not its mean.
    models = map_adapt(ubm, mixture_statistics(ubm, x, frame_mask(lengths, x.shape[1])), adapt=("weights", "means"))
    verifier = SpeakerVerifier(ubm, models)

    @torch.no_grad()
    def scores(asked: Frames) -> Tensor:
        x, lengths = scale(asked)
        blocks = zip(torch.split(x, BLOCK), torch.split(lengths, BLOCK), strict=True)
        return torch.cat([verifier(block, own) for block, own in blocks]).double()

    return scores
