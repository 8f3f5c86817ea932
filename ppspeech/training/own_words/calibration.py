"""By how much a word must beat the background, so that other speech is rarely taken for one.

A window is taken for a word where the best word's score exceeds the background's by more than `reject`. Whoever listens
on says so once and then waits for two seconds: that is one alarm.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.errors import ModelError

WAIT = 25
"""Windows, of 80 ms each, after an alarm that raise none: two seconds."""
ENOUGH = 3.0
"""False alarms that are expected in what was heard, from which on their number says enough."""
TAIL = 0.1  # of the stretches of two seconds, those with the highest margins, whose law is continued
FEWEST = 30
"""Stretches of two seconds that anything can be said from: a minute."""
SLACK = 1e-4  # nats: rounding of scores


@dataclass(frozen=True)
class Calibration:
    """What was found.

    Attributes:
        reject: nats by which a word must beat the background.
        alarms_an_hour: what was asked for.
        hours: of speech that was heard, none of which trained the head.
        alarms: in it, at this threshold.
        extrapolated: whether so little was heard that the threshold is where the rate would be if the highest margins
            fall off exponentially, as they do among the highest tenth: then the rate was not shown.
    """

    reject: float
    alarms_an_hour: float
    hours: float
    alarms: int
    extrapolated: bool

    @property
    def shown(self) -> float:
        """Alarms an hour that are refuted with 95 % confidence where there were so few: Poisson's upper limit."""
        from scipy.stats import chi2

        return float(chi2.ppf(0.95, 2 * (self.alarms + 1)) / 2 / self.hours)

    def __str__(self) -> str:
        minutes = f"{60 * self.hours:.1f} minutes" if self.hours < 2 else f"{self.hours:.1f} hours"
        told = (
            f"{self.alarms} false alarms in {minutes} of other speech, which show fewer than {self.shown:.2g} an hour"
        )
        if not self.extrapolated:
            return told
        return (
            f"{told}; {self.alarms_an_hour:g} an hour is not shown by so little: the threshold is extrapolated from "
            f"the highest margins. {ENOUGH / self.alarms_an_hour:.2g} hours of background would show it"
        )


def calibrated(margins: Sequence[Reals], hours: float, alarms_an_hour: float) -> Calibration:
    """The lowest threshold with at most so many alarms an hour.

    `margins` are those of every recording, in order of time: the best word's score over the background's. Raises
    ModelError for a rate that is not > 0, and for less than a minute.
    """
    if not (alarms_an_hour > 0 and math.isfinite(alarms_an_hour)):
        raise ModelError(f"false alarms an hour must be > 0, got {alarms_an_hour}")
    highest = np.concatenate([_highest(each) for each in margins]) if margins else np.zeros(0)
    if len(highest) < FEWEST or not hours > 0:
        raise ModelError(
            f"the background that calibrates has {len(highest)} stretches of two seconds: at least {FEWEST} are needed "
            "to say anything about false alarms; give more of it"
        )
    expected = alarms_an_hour * hours
    reject = _lowest(margins, highest, math.floor(expected))
    if expected < ENOUGH:
        reject = max(reject, _extrapolated(highest, expected))
    return Calibration(reject, alarms_an_hour, hours, alarms_in(margins, reject), expected < ENOUGH)


def evened(margins: Sequence[Reals], hours: float, alarms_an_hour: float) -> Reals:
    """By how much each word must beat the background more than words do on average, `(words,)`, so that other speech is
    taken for one as often as for another.

    `margins` are those of every word, `(windows, words)`, in every recording. Each word's threshold is where it alone
    would have its share of the alarms, by the law of its highest margins. With one threshold for all, that of the word
    which is most like other speech would decide how often the others are missed.
    """
    words = margins[0].shape[1]
    expected = alarms_an_hour * hours / words
    own = [np.concatenate([_highest(each[:, word]) for each in margins]) for word in range(words)]
    if words == 1 or len(own[0]) < FEWEST:
        return np.zeros(words)
    alone = np.array([_extrapolated(highest, expected) for highest in own])
    return np.asarray(alone - alone.mean())


def alarms_in(margins: Sequence[Reals], reject: float) -> int:
    """How often an alarm is raised; after each, for two seconds, none."""
    count = 0
    for each in margins:
        free = 0
        for place in np.flatnonzero(each > reject).tolist():
            if place >= free:
                count, free = count + 1, place + WAIT
    return count


def _highest(margins: Reals) -> Reals:
    """Of every two seconds."""
    if not len(margins):
        return np.zeros(0)
    return np.maximum.reduceat(margins, np.arange(0, len(margins), WAIT))


def _lowest(margins: Sequence[Reals], highest: Reals, most: int) -> float:
    """The lowest threshold, among the highest margins, with at most so many alarms."""
    places = np.sort(highest)[::-1]
    low, high = 0, len(places) - 1  # at places[0] there is none
    while low < high:
        middle = (low + high + 1) // 2
        if alarms_in(margins, float(places[middle]) + SLACK) <= most:
            low = middle
        else:
            high = middle - 1
    return float(places[low]) + SLACK


def _extrapolated(highest: Reals, expected: float) -> float:
    """Where so many of the stretches would be above, if the law of the highest tenth goes on: an exponential one."""
    ordered = np.sort(highest)
    count = max(FEWEST // 3, round(TAIL * len(ordered)))
    start, tail = ordered[-count - 1], ordered[-count:]
    return float(start + (tail - start).mean() * math.log(max(1.0, count / expected)))
