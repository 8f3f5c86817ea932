"""A model that parties trained together, as a bundle: the statement says what the noise of all promises."""

from collections.abc import Sequence
from pathlib import Path

from torch import nn

from ppspeech.bundle import Bundle, BundleConfig, DataTouch, PrivacyStatement, write_bundle
from ppspeech.errors import BundleError
from ppspeech.figures import Figure
from ppspeech.privacy import Guarantee
from ppspeech.privacy.accounting import Accountant

TOUCHES = (
    DataTouch("normalization", "untouched", "features are scaled by public constants or by each utterance alone"),
    DataTouch("early_stopping", "untouched", "the number of rounds was fixed in advance"),
    DataTouch("tuning", "untouched", "all terms were agreed on before anyone looked at data"),
    DataTouch("threshold", "untouched", "none is released"),
)
"""What training together does by itself; a caller who did otherwise says so."""

CAVEATS = (
    "The guarantee holds against the curator and as many colluding parties as the assumptions say, not against more.",
    "The guarantee is about the training data. It does not protect what is said to the model in use.",
)


def write_joint_bundle(
    folder: str | Path,
    *,
    model: nn.Module,
    config: BundleConfig,
    account: Accountant,
    guarantee: Guarantee,
    touches: Sequence[DataTouch] = TOUCHES,
    metrics: Sequence[Figure] = (),
) -> Bundle:
    """Write what all parties hold; each can, and the bundles are equal.

    Args:
        folder: must not exist yet.
        model: the released one, with the tensors of the config's type.
        config: its public choices.
        account: every sum that was released.
        guarantee: what they promise, from `JointSum.guarantee` or a `JointFit`.
        touches: where data was looked at outside the sums.
        metrics: how well it does.

    Raises:
        BundleError: for a guarantee that is none, or anything a bundle refuses.
    """
    if not guarantee.proven:
        raise BundleError(f"this model has no guarantee to state ({guarantee}): joint bundles are for private ones")
    measured = (DataTouch("metrics", "not_covered", "the figures are exact results on test data"),) if metrics else ()
    caveats = list(CAVEATS)
    if guarantee.unit in {"frame", "utterance", "record"}:
        caveats.append(
            f"One {guarantee.unit} is protected, not a person: for someone with k of them in the data, epsilon is up "
            "to k times as large, and delta grows too."
        )
    statement = PrivacyStatement(
        guarantee=guarantee,
        method=account.report(guarantee.delta).method,
        covers=("the weights in model.safetensors",),
        touches=(*touches, *measured),
        caveats=tuple(caveats),
    )
    return write_bundle(folder, model=model, config=config, statement=statement, account=account, metrics=list(metrics))
