"""Log-in by voice: what a device hears, templates sealed under people's own keys, and the server that checks."""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.service.login.accounts import Accounts
    from ppspeech.service.login.ear import LoginEar, LoginSpace, digit_clips, digit_of, joined, until_said
    from ppspeech.service.login.learned import Learned, digit_space, kept_space
    from ppspeech.service.login.seal import SealedTemplate, new_key, read_key, seal, write_key
    from ppspeech.service.login.served import LoginDeployment, ServedLogin

__all__ = [
    "Accounts",
    "Learned",
    "LoginDeployment",
    "LoginEar",
    "LoginSpace",
    "SealedTemplate",
    "ServedLogin",
    "digit_clips",
    "digit_of",
    "digit_space",
    "joined",
    "kept_space",
    "new_key",
    "read_key",
    "seal",
    "until_said",
    "write_key",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
