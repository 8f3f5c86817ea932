"""Parties that find each other from one file."""

from ppspeech.network.group.file import Group
from ppspeech.network.group.identity import LARGEST, Identity, verify
from ppspeech.network.group.join import join

__all__ = ["LARGEST", "Group", "Identity", "join", "verify"]
