"""Events, and the accountant that adds them up."""

from ppspeech.privacy.accounting.accountant import Accountant
from ppspeech.privacy.accounting.events import Event, NonPrivateEvent
from ppspeech.privacy.accounting.loss import loss_from_survival
from ppspeech.privacy.accounting.profile import plot_profile, trade_off, trade_off_curve

__all__ = [
    "Accountant",
    "Event",
    "NonPrivateEvent",
    "loss_from_survival",
    "plot_profile",
    "trade_off",
    "trade_off_curve",
]
