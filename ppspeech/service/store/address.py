"""Where a database is that servers share, and by what password: read so that the password shows nowhere.

    postgresql://USER@HOST:PORT/DATABASE?sslmode=verify-full&sslrootcert=FILE&passfile=FILE
    @FILE                                                           the same, in a file, with or without a password

A password comes from the file, from `passfile` or `PGPASSFILE` (lines of host:port:database:user:password, as other
clients of PostgreSQL read them), or from `PGPASSWORD`. One on a command line can be read by everybody on the machine
(`ps`), and is refused there.
"""

import ipaddress
import os
import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import parse_qsl, unquote, urlsplit

from ppspeech.errors import PpspeechError

Tls = Literal["disable", "require", "verify-ca", "verify-full"]

SCHEMES = ("postgresql", "postgres")
PORT = 5432
LONGEST = 4096
NAME = re.compile(r"[^\x00-\x1f\x7f]{1,63}")
USUAL = "postgresql://USER@HOST:PORT/DATABASE"


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """A database of PostgreSQL, and how to come in. What is printed of it has no password.

    Attributes:
        host: a name, an address, or the folder of a local socket.
        tls: `disable`; `require` encrypts to whoever answers; `verify-ca` asks for a certificate of an authority;
            `verify-full` asks that it is for this host, and is the default but on this machine. There is nothing in
            between that falls back to none.
        authorities: PEM of those who are trusted; the system's where there is none, and then the host is checked too:
            they give anybody a certificate, of a name of their own.
        certificate, key: of this client, where the database asks for one.
    """

    host: str
    port: int
    database: str
    user: str
    password: str | None = field(default=None, repr=False)
    tls: Tls = "verify-full"
    authorities: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @classmethod
    def parse(cls, text: str) -> "StoreAddress":
        """Read an address, and what files and the environment say of its password.

        Raises PpspeechError for anything else, without saying it again: there may be a password in it.
        """
        if text.startswith("@"):
            text = _read(Path(text[1:]), "the address of the store").strip()
        try:
            return _parsed(text)
        except ValueError:  # what urlsplit and int find wrong; their words repeat what they were given
            raise PpspeechError(f"the address of a store is {USUAL}: this one cannot be read") from None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://{self.user}@{host}:{self.port}/{self.database}"

    def context(self) -> ssl.SSLContext | Literal[False]:
        """What its certificate is checked by; False for no TLS. Raises PpspeechError for files that are none."""
        if self.tls == "disable":
            return False
        try:
            context = ssl.create_default_context(cafile=self.authorities)
            context.check_hostname = self.tls == "verify-full"
            context.verify_mode = ssl.CERT_NONE if self.tls == "require" else ssl.CERT_REQUIRED
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise PpspeechError(f"TLS to {self} cannot be prepared: {error.strerror or error}") from None
        return context


def refuse_password(text: str) -> str:
    """An address of a command line, which everybody on the machine can read. Raises PpspeechError for a password."""
    if re.match(r"[^/?#]*//[^/?#]*:[^/?#]*@", text) or "password=" in text:
        raise PpspeechError(
            "an address with a password can be read by everybody on this machine (`ps`): leave it out and set "
            "PGPASSFILE or PGPASSWORD, or give the whole address as PPSPEECH_STORE or in a file, --store @FILE"
        )
    return text


def _parsed(text: str) -> StoreAddress:
    parts = urlsplit(text)
    if len(text) > LONGEST or parts.scheme not in SCHEMES or parts.fragment:
        raise PpspeechError(f"the address of a store is {USUAL}: this one cannot be read")
    options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    unknown = sorted(set(options) - {"host", "sslmode", "sslrootcert", "sslcert", "sslkey", "passfile"})
    if unknown:
        raise PpspeechError(f"the address of a store has an option that is not known: {unknown[0]!r:.40}")
    host = options.get("host") or unquote(parts.hostname or "") or "127.0.0.1"
    port = PORT if parts.port is None else parts.port
    user = unquote(parts.username or "") or os.environ.get("PGUSER") or "ppspeech"
    database = unquote(parts.path.removeprefix("/")) or user
    for what in (host, user, database):
        if not NAME.fullmatch(what) and not (what is host and len(what) <= 255 and what.isprintable()):
            raise PpspeechError(f"host, user and database of a store are names of up to 63 characters: {USUAL}")
    files = {name: Path(options[name]) for name in ("sslrootcert", "sslcert", "sslkey") if options.get(name)}
    tls = options.get("sslmode") or ("disable" if _is_here(host) and not files else "verify-full")
    if tls not in get_args(Tls):
        raise PpspeechError(
            f"sslmode is one of {', '.join(get_args(Tls))}, got {tls!r:.40}: what falls back to no TLS is not taken"
        )
    if ("sslrootcert" in files) != (tls == "verify-ca") and tls != "verify-full":
        raise PpspeechError(
            f"sslmode={tls} looks at no certificate, and does not go with sslrootcert: say verify-full"
            if "sslrootcert" in files
            else "sslmode=verify-ca trusts whoever has a certificate of an authority, and the system's give one to "
            "anybody: say whose with sslrootcert=FILE, or verify-full"
        )
    password = None if parts.password is None else unquote(parts.password)
    if password is None:
        password = _password(host, port, database, user, options.get("passfile"))
    return StoreAddress(
        host,
        port,
        database,
        user,
        password,
        tls,  # type: ignore[arg-type]
        files.get("sslrootcert"),
        files.get("sslcert"),
        files.get("sslkey"),
    )


def _is_here(host: str) -> bool:
    """Whether nobody else can hear: a local socket, or a loopback address."""
    if host.startswith("/"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _password(host: str, port: int, database: str, user: str, passfile: str | None) -> str | None:
    if (said := os.environ.get("PGPASSWORD")) and passfile is None:
        return said
    chosen = passfile or os.environ.get("PGPASSFILE")
    path = Path(chosen) if chosen else Path.home() / ".pgpass"
    if not chosen and not path.is_file():
        return None
    here = "localhost" if host.startswith("/") else host
    for line in _read(path, "passwords").splitlines():
        fields = [re.sub(r"\\(.)", r"\1", each) for each in re.split(r"(?<!\\):", line)]
        wanted = zip(fields[:4], (here, str(port), database, user), strict=False)
        if not line.startswith("#") and len(fields) == 5 and all(each in ("*", value) for each, value in wanted):
            return fields[4]
    return None


def _read(path: Path, what: str) -> str:
    """A file with a secret. Raises PpspeechError for one that is missing or that everybody can read."""
    try:
        if path.stat().st_mode & 0o007:
            raise PpspeechError(f"everybody can read {path}, which holds {what}: chmod 600 it")
        return path.read_text("utf-8")
    except OSError as error:
        raise PpspeechError(f"cannot read {what} in {path}: {error.strerror}") from None
    except ValueError:  # no text, or no path
        raise PpspeechError(f"{path} does not hold {what}: it is no text") from None
