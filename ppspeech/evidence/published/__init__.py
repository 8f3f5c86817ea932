"""Mechanisms, protocols and bounds as others printed them. Not for use: each says what it leaks or breaks."""

from ppspeech.evidence.published.mechanisms import PublishedOutputLaplace

__all__ = ["PublishedOutputLaplace"]
