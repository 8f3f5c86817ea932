"""Public statistics, for scaling that must not look at private speech."""

from functools import lru_cache

import torch
from torch import Tensor

from ppspeech.audio import Frames, GivenFeatures, MfccConfig, utterance_statistics
from ppspeech.data.corpora.synthetic import DIGITS, SyntheticCorpus
from ppspeech.data.features import FeatureStore


@lru_cache(maxsize=8)
def public_scale(config: MfccConfig) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of utterance statistics over the built-in voices, each `(4 * features,)`.

    The built-in voices are nobody's: whatever is scaled by them depends on no private recording but its own. Given
    features are left as they are: filters give deviations near one.
    """
    if isinstance(config, GivenFeatures):
        return torch.zeros(4 * config.features), torch.ones(4 * config.features)
    corpus = SyntheticCorpus(
        DIGITS[::2], speakers=24, takes=1, styles=("calm", "excited"), sample_rate=config.sample_rate
    )
    utterances = corpus.build().utterances
    features = FeatureStore(config).load(utterances)
    vectors = torch.cat([utterance_statistics(Frames(f.unsqueeze(0), torch.tensor([len(f)]))) for f in features])
    return vectors.mean(0), vectors.std(0).clamp_min(1e-6)
