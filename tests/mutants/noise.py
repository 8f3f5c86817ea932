"""Mutants of noise, and of what it is added to."""

from tests.mutants.mutant import mutant

CLIPPING = "privacy/gradients/clipping.py"
PLAN = "privacy/gradients/plan.py"
HOOK = "training/private/hook.py"
PRIVATE_GRADIENTS = "training/private/gradients.py"
GRADIENT_TESTS = "tests/training/test_gradient_privacy.py"
PLAN_TESTS = "tests/privacy/test_plan.py"

NOISE = [
    mutant(
        "m11 noise for all parties instead of the honest",
        "colluders leave less noise than is stated",
        "tests/privacy/test_distributed_noise.py",
        (
            "privacy/mechanisms/distributed.py",
            "return (self.sigma / self.grid.step) ** 2 / (2 * self.honest)",
            "return (self.sigma / self.grid.step) ** 2 / (2 * self.parties)",
        ),
    ),
    # Exact noise, and private gradients.
    mutant(
        "a unit's numbers above the bound",
        "one unit moves a sum further than its noise is for",
        PLAN_TESTS,
        (CLIPPING, "AIM = STEPS * (1 - 2.0**-24)", "AIM = STEPS * (1 + 2.0**-24)"),
    ),
    mutant(
        "numbers that are no numbers added up",
        "one recording marks every model that it was in",
        PLAN_TESTS,
        (CLIPPING, "    if not bool(is_finite.all()):", "    if is_finite.dim() == 0:"),
    ),
    mutant(
        "half the noise on sums of statistics",
        "twice the epsilon that is stated",
        "tests/training/test_private_statistics.py",
        (
            "privacy/mechanisms/unit_sum.py",
            "noisy = noisy_sum(total, self.scale, place)",
            "noisy = noisy_sum(total, self.scale / 2, place)",
        ),
    ),
    mutant(
        "half the noise on gradients",
        "twice the epsilon that is stated",
        PLAN_TESTS,
        (PLAN, ", self.scale, place)\n", ", self.scale / 2, place)\n"),
    ),
    mutant(
        "one noise for all steps",
        "the difference of two steps has none",
        PLAN_TESTS,
        (
            PLAN,
            "        flat = noisy_sum(torch.cat([total.flatten() for total in sums]), self.scale, place)\n",
            "        flat = torch.cat([total.flatten() for total in sums])\n"
            "        kept, none = vars(GradientPlan).get('kept'), torch.zeros_like(flat)\n"
            "        GradientPlan.kept = noisy_sum(none, self.scale, place) if kept is None else kept\n"
            "        flat = flat + GradientPlan.kept\n",
        ),
    ),
    mutant(
        "feature noise in floating point",
        "the last bits of a released vector rule wrong candidates out",
        "tests/filters/test_noisy.py",
        (
            "filters/noisy.py",
            "            noisy = ball.release(ball.whole(flat)).value\n",
            "            noisy = flat + ball.sigma * torch.randn_like(flat)\n",
        ),
    ),
    mutant(
        "fractions taken for whole numbers",
        "rounding moves them further than the sensitivity says",
        "tests/privacy/test_mechanisms.py",
        (
            "privacy/samplers/grid.py",
            "        if self.integer_valued and not",
            "        if self.dimension == 0 and not",
        ),
    ),
    mutant(
        "the tail of the discrete Gaussian cut off",
        "an output that only one of two neighbors can have",
        "tests/privacy/test_discrete.py",
        (
            "privacy/samplers/discrete.py",
            "            k[tail] = stairs.reach + sample_geometric(stairs.slope, tail.size)\n",
            "            k[tail] = stairs.reach\n",
        ),
    ),
    mutant(
        "gradients divided by how many there are",
        "the scale of the noise tells the number of people",
        GRADIENT_TESTS,
        (
            PRIVATE_GRADIENTS,
            "parameter.grad = noisy / self.expected_units",
            "parameter.grad = noisy / len(set(self._loader.dataset.speakers.tolist()))",
        ),
    ),
    mutant(
        "a batch released again and again",
        "samples that are not fresh, booked as if they were",
        GRADIENT_TESTS,
        (PRIVATE_GRADIENTS, "        if here == self._batch:", "        if here is self._batch:"),
    ),
    mutant(
        "plain steps before private ones",
        "what they learned gets a guarantee",
        GRADIENT_TESTS,
        (HOOK, "        if trainer.global_step != known:", "        if trainer.global_step < known:"),
    ),
    mutant(
        "plain training before private training",
        "what it learned gets a guarantee",
        GRADIENT_TESTS,
        (PRIVATE_GRADIENTS, '`module.zero_grad()`": not left,', '`module.zero_grad()`": True,'),
    ),
    mutant(
        "another hook's account forgotten",
        "a model pays for its second training only",
        GRADIENT_TESTS,
        (
            HOOK,
            "        if FITTED.get(pl_module, self._mark) is not self._mark:",
            "        if FITTED.get(pl_module) is self:",
        ),
    ),
    mutant(
        "one dropout mask for all",
        "examples see each other's",
        GRADIENT_TESTS,
        ("training/private/per_sample.py", 'randomness="different"', 'randomness="same"'),
    ),
]
