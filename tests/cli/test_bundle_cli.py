"""`export`, `inspect`, `sign`, `ledger` and `audit` as a person meets them."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
import yaml
from torch import Tensor
from typer.testing import CliRunner

from ppspeech.cli.app import guarded
from ppspeech.cli.audit import audit, figures_of
from ppspeech.cli.export import export
from ppspeech.cli.inspect import inspect_bundle
from ppspeech.cli.keys import keys
from ppspeech.cli.ledger import LEDGER_COMMANDS
from ppspeech.cli.sign import sign, verify_release
from ppspeech.privacy import Gaussian, Relation, Released
from ppspeech.privacy.audit import AuditReport, audited
from tests.bundle.conftest import forge
from tests.training.test_release import checkpoint, keyword, record

app = typer.Typer()
app.command("export")(guarded(export))
app.command("inspect")(guarded(inspect_bundle))
app.command("audit")(guarded(audit))
app.command("keys")(guarded(keys))
app.command("sign")(guarded(sign))
app.command("verify-release")(guarded(verify_release))
ledger_app = typer.Typer()
for name, command in LEDGER_COMMANDS.items():
    ledger_app.command(name)(guarded(command))
app.add_typer(ledger_app, name="ledger")
runner = CliRunner()


def run(*words: str | Path, code: int = 0) -> str:
    result = runner.invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + str(result.exception)
    return result.output


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """A bundle, exported by the command."""
    (tmp_path / "figures.json").write_text('{"metric": "recognize.accuracy", "value": 0.93, "unit": ""}\n')
    saved = checkpoint(keyword(), tmp_path / "a.ckpt", record())
    said = run("export", saved, "--out", tmp_path / "words", "--metrics", tmp_path / "figures.json")
    assert "1e-05)-DP for one utterance (add_remove)" in said
    assert "not covered: tuning" in said
    return tmp_path / "words"


def test_inspect_shows_the_promise_and_its_edges(words: Path, tmp_path: Path) -> None:
    shown = run("inspect", words, "--registry", tmp_path / "words.yaml")
    for part in (
        "keyword_hmm",
        "one, two, zero",
        "1e-05)-DP for one utterance",
        "early stopping",
        "NOT covered",
        "0.93",
    ):
        assert part in shown
    told = yaml.safe_load((tmp_path / "words.yaml").read_text())["deployment"]
    plain = json.loads(run("inspect", words, "--json"))
    assert told["privacy_loss"]["privacy_parameters"]["epsilon"] == plain["privacy"]["guarantee"]["epsilon"]
    assert plain["metrics"] == {"recognize.accuracy": 0.93}
    assert plain["events"]["events"][0]["count"] == 4
    assert ".yaml" in run("inspect", words, "--registry", tmp_path / "words.txt", code=2)


def test_a_forged_bundle_is_a_word_and_exit_code_2(words: Path) -> None:
    forge(words, "privacy.json", lambda plain: plain["guarantee"].update(epsilon=0.01))
    for command in ("inspect", "audit"):
        said = run(command, words, code=2)
        assert "do not trust this bundle" in said
        assert "Traceback" not in said


def test_a_ledger_from_its_first_release_to_the_one_that_is_too_much(words: Path, tmp_path: Path) -> None:
    ledger, saved = tmp_path / "releases.jsonl", tmp_path / "a.ckpt"
    told = ("--data", "ward 7", "--by", "ann")
    first = json.loads(run("ledger", "add", ledger, words, *told, "--json"))
    once = first["totals"][0]["epsilon"]
    assert "already: entry 1" in run("ledger", "add", ledger, words, *told, code=2)
    again = ("export", saved, "--out", tmp_path / "again", "--ledger", ledger, *told, "--most")
    mistyped = run(*again, 9 * once, "--ledger", tmp_path / "release.jsonl", code=2)
    assert "--begin begins it" in mistyped
    assert not list(tmp_path.glob("release.jsonl*"))
    refused = run(*again, 1.01 * once, code=2)
    assert "refused, nothing is released: 2 releases of ward 7" in refused
    assert not (tmp_path / "again").exists()
    assert "2 releases of ward 7" in run(*again, 2 * once)
    shown = json.loads(run("ledger", "show", ledger, "--json"))
    assert [entry["number"] for entry in shown["entries"]] == [1, 2]
    assert once < shown["totals"][0]["epsilon"] < 1.8 * once
    said = run("ledger", "show", ledger, "--data", "ward 7")
    assert "for one utterance (add_remove) together" in said
    assert "there are ward 7" in run("ledger", "show", ledger, "--data", "ward 8", code=2)
    said = run("ledger", "verify", ledger, words, tmp_path / "again", "--head", first["head"])
    assert "2 of them compared with their bundles" in said
    assert "the most that was stated is" in run("ledger", "verify", ledger, "--most", once, code=2)
    ledger.write_bytes(ledger.read_bytes().splitlines(keepends=True)[0])
    assert "keep its head" in run("ledger", "verify", ledger)
    assert "was cut off" in run("ledger", "verify", ledger, "--head", shown["head"], code=2)
    assert "together" in run("export", saved, "--out", tmp_path / "c", "--ledger", ledger, code=2)


@pytest.mark.skipif(find_spec("model_signing") is None, reason='needs pip install "ppspeech[sign]"')
def test_a_release_is_signed_and_verified(words: Path, tmp_path: Path) -> None:
    made = json.loads(run("keys", "signing", tmp_path / "my keys", "--json"))
    private, public = made["key"], made["public_key"]
    assert "is not signed" in run("verify-release", words, "--key", public, code=2)
    assert "is signed" in run("sign", words, "--key", private)
    ledger = tmp_path / "releases.jsonl"
    run("ledger", "add", ledger, words, "--data", "ward 7", "--by", "ann")
    said = run("verify-release", words, "--key", public, "--ledger", ledger)
    assert "computed again from its events" in said
    assert "entry 1 of the ledger: from ward 7, by ann" in said
    assert "The signature does not prove:" in said
    told = json.loads(run("verify-release", words, "--key", public, "--json"))
    assert (told["signer"], len(told["not_proven"])) == (made["signer"], 4)
    assert "signed: head 1:" in run("ledger", "sign", ledger, "--key", private)
    assert "goes through the head that is signed" in run("ledger", "verify", ledger, "--key", public)
    forge(words, "privacy.json", lambda plain: plain["guarantee"].update(epsilon=0.01))
    assert "what is said about the model was changed" in run("verify-release", words, "--key", public, code=2)


def test_export_asks_for_the_flag(tmp_path: Path) -> None:
    saved = checkpoint(keyword(), tmp_path / "a.ckpt", None)
    assert "--not-private" in run("export", saved, "--out", tmp_path / "b", code=2)
    assert "NO differential privacy" in run("export", saved, "--out", tmp_path / "b", "--not-private")
    assert "NO differential privacy" in run("inspect", tmp_path / "b")
    assert "nothing to refute" in run("audit", tmp_path / "b", code=2)
    assert "gives no guarantee" in run("inspect", tmp_path / "b", "--registry", tmp_path / "b.yaml", code=2)
    (tmp_path / "bad.json").write_text("[1]")
    out = tmp_path / "c"
    assert "no figures" in run(
        "export", saved, "--out", out, "--not-private", "--metrics", tmp_path / "bad.json", code=2
    )
    assert not out.exists()


def test_audit_of_a_mechanism_is_a_table_and_figures() -> None:
    table = run("audit", "published_output_laplace", code=1)  # printed elsewhere, and refuted
    assert "refutes what published_output_laplace states" in table
    for part in ("stated epsilon", "lower bound", "confidence", "violated"):
        assert part in table
    figures = {f["metric"]: f["value"] for f in map(json.loads, run("audit", "exponential", "--json").splitlines())}
    assert figures["audit.exponential.eps_stated"] == 1.0
    assert 0.99 < figures["audit.exponential.eps_lower"] <= 1.0
    assert set(run("audit").split()) == set(audited())
    assert "no mechanism called" in run("audit", "nonesuch", code=2)
    assert "either" in run("audit", "gaussian", "--all", code=2)


def test_audit_of_a_bundle_attacks_it_at_its_own_parameters(words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("audit", words, "--quick")
    assert "as stated" in said
    assert "4 x GaussianEvent(noise_multiplier=" in said
    assert "attacked through gaussian" in said
    assert "not attacked: the trained weights" in said
    assert "no violation found" in said
    assert "laplace" not in said
    stated, lower = (json.loads(line) for line in run("audit", words, "--quick", "--json").splitlines())
    assert (stated["metric"], lower["metric"]) == ("audit.words.eps_stated", "audit.words.eps_lower")
    assert stated["value"] == json.loads(run("inspect", words, "--json"))["privacy"]["guarantee"]["epsilon"]
    assert 0 < lower["value"] < stated["value"]

    # Half the noise of a release that books such events is found out, and the exit code says so.
    monkeypatch.setattr(Gaussian, "release", with_half_the_noise)
    assert "refutes what" in run("audit", words, "--quick", code=1)
    assert "--one-run audits a mechanism" in run("audit", words, "--one-run", code=2)


def with_half_the_noise(self: Gaussian, value: Tensor) -> Released[Tensor]:
    return Released(value + self.sigma / 2 * torch.randn(value.shape), self.event, self.guarantee)


def test_audit_of_a_recipe_runs_it_with_canaries(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def audited(path: Path, **sizes: int) -> list[AuditReport]:
        asked.update(sizes, path=path)
        shared = {"relation": Relation("utterance", "add_remove"), "eps_stated": 4.0, "method": "one_run"}
        return [
            AuditReport(mechanism=f"keyword_dp.{box}", eps_lower=e, **shared) for box, e in (("white", 1), ("black", 2))
        ]

    monkeypatch.setattr("ppspeech.training.audited_recipe", audited)
    assert "one run with canaries" in run("audit", "keyword_dp", "--quick")
    assert (asked["path"].stem, asked["canaries"], asked["runs"]) == ("keyword_dp", 200, 10_000)
    stated, lower = (json.loads(line) for line in run("audit", "keyword_dp", "--json").splitlines())
    assert (stated["metric"], stated["value"]) == ("audit.keyword_dp.eps_stated", 4.0)
    assert (lower["metric"], lower["value"]) == ("audit.keyword_dp.eps_lower", 2)
    assert "--profile draws" in run("audit", "keyword_dp", "--profile", "a.png", code=2)


def test_the_list_of_audits_is_for_programs_too() -> None:
    assert {json.loads(line)["name"] for line in run("audit", "--json").splitlines()} == set(audited())


def test_figures_take_the_strongest_audit_and_stay_json() -> None:
    shared = {"mechanism": "m", "relation": Relation("record", "add_remove"), "eps_stated": 1.0}
    weak = AuditReport(**shared, method="sampling", eps_lower=0.5, confidence=0.999)  # type: ignore[arg-type]
    strong = AuditReport(**shared, method="exact", eps_lower=float("inf"))  # type: ignore[arg-type]
    stated, lower = figures_of([weak, strong])
    assert (stated.metric, stated.value) == ("audit.m.eps_stated", 1.0)
    assert (lower.metric, lower.value) == ("audit.m.eps_lower", 1.7976931348623157e308)
    assert "infinite" in str(lower.note)
    assert "violated" in str(lower.note)
    assert "Infinity" not in lower.to_json()
