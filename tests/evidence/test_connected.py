"""Connected words: sentences and models as the experiments have them, and what is certain of a frame in a ball."""

import numpy as np
import pytest
from scipy.optimize import minimize

from ppspeech.evidence.connected import CONNECTED, fsdd_digits, score_weights
from ppspeech.models.decoding import decode
from ppspeech.protocols.scores import ball_bounds, column_bounds, form_weights, monomials_of


def forms(count: int, d: int, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed)
    made = drawn.normal(size=(count, d + 1, d + 1))
    made = (made + made.transpose(0, 2, 1)) / 2
    made[: count // 2, :d, :d] = -made[: count // 2, :d, :d] @ made[: count // 2, :d, :d]  # as those of densities
    return made


@pytest.mark.parametrize("seed", range(3))
def test_no_frame_in_the_ball_scores_less_and_one_scores_as_little(seed: int) -> None:
    d, radius, drawn = 4, 1.7, np.random.default_rng(seed)
    given = forms(8, d, seed)
    weights = form_weights(given, "full")
    least = ball_bounds(weights, "full", radius)[0]
    frames = drawn.normal(size=(20_000, d))
    frames *= (radius * drawn.uniform(size=len(frames)) ** (1 / d) / np.linalg.norm(frames, axis=1))[:, None]
    assert (monomials_of(frames, "full") @ weights >= least - 1e-9).all()
    for form, lowest in zip(given, least, strict=True):

        def score(x: np.ndarray, form: np.ndarray = form) -> float:
            z = np.append(x * min(1.0, radius / max(np.linalg.norm(x), 1e-12)), 1.0)
            return float(z @ form @ z)

        starts = drawn.normal(size=(12, d))
        assert min(minimize(score, start, method="Nelder-Mead", tol=1e-12).fun for start in starts) == pytest.approx(
            lowest, abs=1e-5
        )
    box = column_bounds(weights, "full", radius)[0]
    assert (box <= least + 1e-9).all()  # the ball lies in the box


def test_the_hard_case_of_the_ball() -> None:
    """Nothing linear along the lowest direction: the minimum lies on the ball all the same."""
    form = np.diag([-2.0, -1.0, 0.0])
    form[1, 2] = form[2, 1] = 0.1
    x = np.linspace(-1.5, 1.5, 3001)
    y = np.sqrt(1.5**2 - x**2)
    slow = min((-2 * y**2 - x**2 + 0.2 * x).min(), (-2 * y**2 - x**2 - 0.2 * x).min())
    assert ball_bounds(form_weights(form[None], "full"), "full", 1.5)[0][0] == pytest.approx(slow, abs=1e-5)
    bowl = np.diag([1.0, 2.0, 0.5])
    bowl[0, 2] = bowl[2, 0] = -0.5
    assert ball_bounds(form_weights(bowl[None], "full"), "full", 3.0)[0][0] == pytest.approx(0.25)  # inside the ball


@pytest.mark.slow
@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(("name", "most"), [("audiomnist", 0.005), ("fsdd", 0.01), ("yesno", 0.005)])
def test_connected_words_are_heard(name: str, most: float) -> None:
    made = CONNECTED[name]()
    assert len(made.sentences) == (30 if name == "yesno" else 120)
    assert made.errors(made.sentences).rate <= most


@pytest.mark.usefixtures("data")
def test_twelve_sentences_of_fsdd() -> None:
    made = fsdd_digits(sentences=12)
    assert made.names == ("eight", "five", "four", "nine", "one", "seven", "six", "three", "two", "zero", "")
    transcriber = made.transcriber
    assert made.errors(made.sentences).rate <= 0.05
    features, text = made.sentences[0]
    assert set(text) <= set(made.names)
    assert decode(made.graph, transcriber.scores(features)).words == transcriber.words(features)
    weights = score_weights(made)
    scores = monomials_of(features.double().numpy(), "full") @ weights
    np.testing.assert_allclose(scores, (transcriber.scores(features).double() + made.stays).numpy(), atol=1e-2)
    least, highest = ball_bounds(weights, "full", transcriber.radius)
    assert ((scores >= least) & (scores <= highest + 1e-6)).all()
    nothing = made.errors(made.sentences, floor=float(highest.max())).rate  # every frame scores alike
    assert nothing > 0.5
