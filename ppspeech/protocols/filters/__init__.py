"""Personal filters, learned over a network."""

from ppspeech.protocols.filters.personal_filters import SEEN, aggregator, contributor, digest_of, personal_filters

__all__ = ["SEEN", "aggregator", "contributor", "digest_of", "personal_filters"]
