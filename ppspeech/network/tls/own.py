"""The certificate that whoever listens shows: the one that was given, or one made for as long as it is needed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ppspeech.errors import PpspeechError
from ppspeech.network.tls.certificates import make_certificate
from ppspeech.network.tls.context import ServerTls


@contextmanager
def own_tls(
    certificate: Path | None, key: Path | None, client_ca: Path | None = None, *, insecure: bool = False
) -> Iterator[ServerTls | None]:
    """TLS for a listener; None for plain TCP, which `insecure` asks for.

    `certificate`: PEM; one is made that lasts as long as the `with` block where there is none. `client_ca`: let in only
    clients whose certificate is, or is signed by, one of these. Raises `PpspeechError` for a certificate without its
    key, or a key without its certificate.
    """
    if insecure:
        yield None
    elif certificate is not None and key is not None:
        yield ServerTls(certificate, key, client_ca)
    elif certificate is not None or key is not None:
        raise PpspeechError("a certificate needs its key, and a key its certificate: give both or neither")
    else:
        with tempfile.TemporaryDirectory() as folder:
            made = ServerTls(Path(folder, "certificate.pem"), Path(folder, "key.pem"), client_ca)
            make_certificate(made.certificate, made.key)
            yield made
