"""From which score on a voice is accepted."""

from ppspeech.bundle import Bundle
from ppspeech.errors import PpspeechError
from ppspeech.service.embedding import released_threshold
from ppspeech.service.speaker_offer import SpeakerOffer

USUAL_COSINE = 0.5


def threshold_for(offer: SpeakerOffer, bundle: Bundle, chosen: float | None) -> float:
    """The threshold that was chosen, else the usual one of this scoring.

    Raises:
        PpspeechError: where there is no usual one.
    """
    if chosen is not None:
        return chosen
    if offer.normed:
        raise PpspeechError("normed scores count spreads of impostors: choose a threshold for them, such as 3")
    if offer.scoring != "gmm":
        return USUAL_COSINE
    released = released_threshold(bundle)
    if released is None:
        raise PpspeechError("the bundle was released without a threshold: choose one, in nats a frame, such as 0.2")
    return released
