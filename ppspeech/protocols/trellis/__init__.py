"""One recursion over a public graph on shares."""

from ppspeech.protocols.trellis.combine import TABLE_STEP
from ppspeech.protocols.trellis.scan import can_scan

__all__ = ["TABLE_STEP", "can_scan"]
