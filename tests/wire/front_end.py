"""Sound to frames: MFCC features, and utterance statistics, by the formulas of the page."""

import math
from typing import Any

import numpy as np


def features(samples: Any, mfcc: dict[str, Any]) -> Any:
    """`(frames, features)` in their usual range, from samples at the front end's rate."""
    x = np.asarray(samples, np.float64)
    rate, d = mfcc["sample_rate"], mfcc["cepstra"]
    window, hop = round(mfcc["window_s"] * rate), round(mfcc["hop_s"] * rate)
    size = 1 << (window - 1).bit_length()
    if mfcc["level"] == "peak":
        x = x / np.abs(x).max()
    emphasized = x - mfcc["pre_emphasis"] * np.concatenate([[0.0], x[:-1]])
    count = 1 + (len(x) - window) // hop
    cut = np.stack([emphasized[t * hop : t * hop + window] for t in range(count)])
    n = np.arange(window)
    shape = {"hamming": (0.54, 0.46), "hann": (0.5, 0.5), "rectangular": (1.0, 0.0)}[mfcc["window"]]
    tapered = cut * (shape[0] - shape[1] * np.cos(2 * math.pi * n / (window - 1)))
    power = np.abs(np.fft.rfft(tapered, size)) ** 2
    log_mel = np.log(np.maximum(power @ filters(mfcc, size), mfcc["floor"]))
    k, b = np.arange(d), np.arange(mfcc["mel_filters"])
    cosine = np.cos(math.pi / len(b) * (b[:, None] + 0.5) * k) * math.sqrt(2 / len(b))
    cosine[:, 0] /= math.sqrt(2)
    lifter = 1 + mfcc["lifter"] / 2 * np.sin(math.pi * k / mfcc["lifter"]) if mfcc["lifter"] else np.ones(d)
    orders = [log_mel @ (cosine * lifter)]
    for _ in range(mfcc["deltas"]):
        orders.append(slopes(orders[-1], mfcc["delta_reach"]))
    found = np.concatenate(orders, axis=1)
    if mfcc["cmvn"] == "utterance":
        return (found - found.mean(0)) / np.sqrt(np.maximum(found.var(0), 1e-10))
    if mfcc["cmvn"] == "public":
        return (found - mfcc["public_mean"]) / mfcc["public_std"]
    root = math.sqrt(mfcc["mel_filters"])
    spread = 2.5 * root / (1 + k) * np.maximum(np.abs(lifter), 1e-2 if mfcc["lifter"] else 0)
    center = np.zeros(found.shape[1])
    center[0] = {"peak": -3.0, "keep": -7.0}[mfcc["level"]] * root
    return (found - center) / np.concatenate([part * spread for part in (1, 1 / 5, 1 / 13)[: 1 + mfcc["deltas"]]])


def filters(mfcc: dict[str, Any], size: int) -> Any:
    """Triangles on the mel scale of HTK, `(size / 2 + 1, filters)`."""
    top = mfcc["high_hz"] or mfcc["sample_rate"] / 2
    low, high = (2595 * math.log10(1 + hz / 700) for hz in (mfcc["low_hz"], top))
    edges = 700 * (10 ** (np.linspace(low, high, mfcc["mel_filters"] + 2) / 2595) - 1)
    bins = np.linspace(0, mfcc["sample_rate"] / 2, size // 2 + 1)[:, None]
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.maximum(0.0, np.minimum(rising, falling))


def slopes(rows: Any, reach: int) -> Any:
    padded = np.concatenate([np.repeat(rows[:1], reach, 0), rows, np.repeat(rows[-1:], reach, 0)])
    total = sum(
        k * (padded[reach + k : reach + k + len(rows)] - padded[reach - k : reach - k + len(rows)])
        for k in range(1, reach + 1)
    )
    return total / (2 * sum(k * k for k in range(1, reach + 1)))
