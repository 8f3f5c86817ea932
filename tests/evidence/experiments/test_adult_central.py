"""Adult: the coding is what it says, and private models reach what is promised."""

from pathlib import Path

import pytest
import torch

from ppspeech.evidence.experiments import adult_central
from ppspeech.evidence.experiments.adult_central import QUESTIONS, Split, contrasts, recode


def made_up(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows coded like a9a, some answers missing; the label hangs on the first two questions."""
    generator = torch.Generator().manual_seed(seed)
    parts, answers = [], []
    for count in QUESTIONS.values():
        answer = torch.randint(0, count, (rows,), generator=generator)
        known = torch.rand(rows, 1, generator=generator) > 0.05
        parts.append(torch.nn.functional.one_hot(answer, count) * known)
        answers.append(answer)
    return torch.cat(parts, dim=1).float(), ((answers[0] < 2) | (answers[1] < 2)).long()


def test_contrasts_are_an_isometry_without_the_constant() -> None:
    for answers in (2, 5, 16):
        basis = contrasts(answers)
        assert torch.allclose(basis.mT @ basis, torch.eye(answers - 1, dtype=torch.double))
        assert basis.sum(0).abs().max() < 1e-12


def test_no_row_can_exceed_the_norm_of_the_coding() -> None:
    assert sum(QUESTIONS.values()) == 123
    rows, _ = made_up(2000, 0)
    coded, norm = recode(rows)
    assert coded.shape == (2000, 66)
    assert coded.norm(dim=1).max() <= norm * (1 + 1e-12)
    complete = rows.sum(1) == 14
    assert coded[complete].norm(dim=1).min() == pytest.approx(norm)


def test_the_experiment_runs_on_made_up_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (x, y), (test_x, test_y) = made_up(3000, 1), made_up(1000, 2)
    raw = Split(x.double(), y, test_x.double(), test_y, adult_central.RAW_NORM)
    coded = Split(recode(x)[0], y, recode(test_x)[0], test_y, recode(x)[1])
    monkeypatch.setattr(adult_central, "_splits", lambda: (raw, coded))
    figures = {figure.metric: figure for figure in adult_central.run(quick=True, folder=tmp_path)}
    assert figures["adult.nonprivate.accuracy"].value > 0.85
    assert figures["adult.gaussian.eps1.accuracy"].value > figures["adult.gaussian.eps0.1.accuracy"].value
    assert figures["adult.pure.eps0.1.accuracy"].peer_value == figures["adult.diffprivlib.eps0.1.accuracy"].value
    assert (tmp_path / "adult_central.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_adult_reaches_its_targets(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSPEECH_DATA", str(data))
    figures = {figure.metric: figure.value for figure in adult_central.run(quick=False, folder=tmp_path)}
    for name, least in {"gaussian.eps0.1": 0.83, "gaussian.eps0.3": 0.843, "gaussian.eps1": 0.849}.items():
        assert figures[f"adult.{name}.accuracy"] >= least
    assert figures["adult.pure.eps0.1.accuracy"] >= max(0.82, figures["adult.diffprivlib.eps0.1.accuracy"] + 0.02)
    assert figures["adult.pure.eps1.accuracy"] >= 0.836
