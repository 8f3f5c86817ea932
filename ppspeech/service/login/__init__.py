"""Log-in by voice: what a device hears, templates sealed under people's own keys, and the server that checks."""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.service.login.accounts import Accounts
    from ppspeech.service.login.digits import kept_digits, learn_digits, space_of
    from ppspeech.service.login.ear import RATE, LoginEar, LoginSpace, digit_clips, joined, until_said
    from ppspeech.service.login.keeper import remove_account, unlock_account
    from ppspeech.service.login.seal import Template, new_key, read_key, write_key
    from ppspeech.service.login.served import DIGIT_COSINE, LoginDeployment, ServedLogin

__all__ = [
    "DIGIT_COSINE",
    "RATE",
    "Accounts",
    "LoginDeployment",
    "LoginEar",
    "LoginSpace",
    "ServedLogin",
    "Template",
    "digit_clips",
    "joined",
    "kept_digits",
    "learn_digits",
    "new_key",
    "read_key",
    "remove_account",
    "space_of",
    "unlock_account",
    "until_said",
    "write_key",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
