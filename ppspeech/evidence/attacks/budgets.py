"""Clients that want more answers than they are given: by other certificates, or by leaving before the end."""

import datetime
import tempfile
from contextlib import ExitStack
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ppspeech.crypto.transfer import Side
from ppspeech.errors import ProtocolError
from ppspeech.evidence.attacks import Gain, NotHereError, Target, attack
from ppspeech.evidence.attacks.target import Victim, half_asked
from ppspeech.network import ClientTls, make_certificate
from ppspeech.protocols import meet
from ppspeech.service import BudgetSpentError, Door, send_request


def sign_another(own: tuple[Path, Path], folder: Path, number: int) -> tuple[Path, Path]:
    """A certificate of another name, signed with ours as an authority would, followed by ours; and its key."""
    ours = x509.load_pem_x509_certificate(own[0].read_bytes())
    signer = serialization.load_pem_private_key(own[1].read_bytes(), None)
    private = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(
            subject_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"another {number}")]),
            issuer_name=ours.subject,
        )
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(signer, hashes.SHA256())  # type: ignore[arg-type]
    )
    certificate, key = folder / f"{number}.pem", folder / f"{number}.key"
    pem = serialization.Encoding.PEM
    certificate.write_bytes(made.public_bytes(pem) + ours.public_bytes(pem))
    key.write_bytes(private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return certificate, key


def agreed_to(victim: Victim, tls: ClientTls | None = None) -> bool:
    """Whether the server agrees to answer a query, which is then not asked."""
    try:
        with victim.session(tls) as channel:
            meet(channel, Side.SECOND)
            send_request(channel, victim.request)
    except (ProtocolError, BudgetSpentError):
        return False
    return True


@attack(
    "home_made_certificates",
    "answers beyond a budget, by certificates that one's own has signed",
    tasks=("words", "sentences"),
)
def home_made_certificates(target: Target) -> Gain:
    """A budget of one, for a certificate that is let in; then others, each signed by the first. Of a server that runs,
    the certificate is the one that we were given, and every other that it lets in is another budget.
    """
    others = 2 if target.quick else 4
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        if target.door is None:
            own = folder / "own.pem", folder / "own.key"
            make_certificate(*own)
            victim = stack.enter_context(target.served(own, budget=1, client_ca=own[0]))
            asked = 2
            beyond = sum(agreed_to(victim) for _ in range(asked)) - 1
        else:
            own, asked, beyond = _given(target.door), 0, 0
            victim = stack.enter_context(target.served())
        pin, ca = (victim.door.tls.pin, victim.door.tls.ca) if victim.door.tls else (None, None)
        made = [sign_another(own, folder, number) for number in range(others)]
        more = sum(agreed_to(victim, ClientTls(pin, ca, *each)) for each in made)
    note = f"{beyond} answers too many with the certificate that is let in, {more} with {others} that it signed"
    return Gain(beyond + more, "answers", asked + others, beyond + more > 0, note)


def _given(door: Door) -> tuple[Path, Path]:
    """Our certificate for a server that runs, and its key."""
    if door.tls is None or door.tls.certificate is None or door.tls.key is None:
        raise NotHereError("it is for servers that ask for certificates: give yours, with --certificate and --key")
    return door.tls.certificate, door.tls.key


@attack(
    "hanging_up", "answers that are not counted, by leaving when a part of one has come", tasks=("words", "sentences")
)
def hanging_up(target: Target) -> Gain:
    """Ask, take the encrypted scores, and hang up; what the server then says of the budget tells whether it counted."""
    tries, uncounted = (1 if target.quick else 3), 0
    victim = target.usual
    left = _left(victim)
    for _ in range(tries):
        with victim.session() as channel:
            met = meet(channel, Side.SECOND)
            send_request(channel, victim.request)
            with met.session():
                half_asked(victim, met)
        now = _left(victim)
        uncounted += now is None or left is None or now >= left
        left = now
    note = "the server counts no queries" if left is None else f"{tries - uncounted} of {tries} were counted"
    return Gain(uncounted, "answers", tries, uncounted > 0, note)


def _left(victim: Victim) -> int | None:
    """Queries left, as the server says to a client that asks for nothing."""
    return victim.client().offer.queries_left
