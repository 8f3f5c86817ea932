import torch

from ppspeech.filters import ClassTask, LinearFilter, MinimaxProblem
from ppspeech.filters.problem import FlatFilter
from ppspeech.filters.solvers.joint import Joint
from tests.filters.games import game, people


def test_points_of_a_line_search_share_the_hessians_of_where_it_starts() -> None:
    problem = game()
    flat = FlatFilter(LinearFilter(6, 2).double())
    joint = Joint(problem, flat)
    here = joint.evaluate(flat.vector(), None)
    q = 1e-4 * torch.ones(flat.size, dtype=torch.float64)
    assert joint.linearized(here, q) is not None
    there = joint.evaluate(here.u + q, here)
    further = joint.evaluate(here.u + 2 * q, there)
    own = [response.solve for response in joint._responses(here)]
    for point in (there, further):
        assert [solution.newton for solution in (*point.private, *point.utility)] == own


def test_shared_hessians_do_not_change_phi() -> None:
    problem = game(ridge=1e-3)
    torch.manual_seed(0)
    flat = FlatFilter(LinearFilter(6, 2).double())
    joint = Joint(problem, flat)
    here = joint.evaluate(flat.vector(), None)
    q = torch.randn(flat.size, dtype=torch.float64)
    joint.linearized(here, 1e-6 * q)
    for length in (1e-3, 1e-1, 1.0):
        near, cold = joint.evaluate(here.u + length * q, here), joint.evaluate(here.u + length * q, None)
        torch.testing.assert_close(near.value, cold.value, atol=1e-11, rtol=0)
        assert near.residual <= 1e-8


def test_pushing_and_pulling_are_the_jacobian_and_its_transpose() -> None:
    x, subject, task = people(20)
    problem = MinimaxProblem(x, [ClassTask(subject, 3, 0.1)], [ClassTask(task, 2, 0.1)])
    flat = FlatFilter(LinearFilter(6, 2).double())
    at = problem.evaluate(flat, flat.vector())
    jacobian = torch.func.jacrev(lambda u: flat(u, x))(at.u)  # (observations, features, size)
    q, right = torch.randn(flat.size).double(), torch.randn(at.features.shape).double()
    torch.testing.assert_close(at.push(q), jacobian @ q)
    torch.testing.assert_close(at.pull(right), torch.einsum("nk,nku->u", right, jacobian))
