"""Mutants of the privacy layer: what makes a stated epsilon untrue while everything still runs and learns.

The first number of a name is the kind of fault: 1 less noise, 2 a sensitivity too small, 3 a clip in the wrong place,
4 batches of a fixed size, 5 noise used again, 6 noise that can be known, 7 a bound on the wrong unit, 8 delta not
asked for, 9 releases not booked, 10 a path around the noise, 11 people's shifts, 12 the audit itself.
"""

from tests.mutants.mutant import mutant

AVERAGE, STATISTICS = "training/together/average.py", "privacy/mechanisms/statistics.py"
SUMS, CLIPPING = "privacy/mechanisms/unit_sum.py", "privacy/gradients/clipping.py"
RANDOMNESS = "privacy/samplers/randomness.py"
GAUSSIAN, PCA = "privacy/mechanisms/gaussian.py", "privacy/mechanisms/pca.py"
NOISY, OUTPUT, OBJECTIVE = "filters/noisy.py", "privacy/convex/output.py", "privacy/convex/objective.py"
PLAN, SHIFTS = "privacy/gradients/plan.py", "privacy/mechanisms/shifts.py"

AUDIT_TESTS, LAW_TESTS = "tests/privacy/audit/test_half_noise.py", "tests/training/test_release_law.py"
CONVEX_TESTS, OBJECTIVE_TESTS = "tests/training/test_private_convex.py", "tests/privacy/test_objective.py"
GRADIENT_TESTS, PLAN_TESTS = "tests/training/test_gradient_privacy.py", "tests/privacy/test_plan.py"
HOOK_TESTS, NOISY_TESTS = "tests/training/test_private_hook.py", "tests/filters/test_noisy.py"
SHIFT_TESTS, STATISTICS_TESTS = "tests/training/test_shifts.py", "tests/training/test_private_statistics.py"

RELEASED = "noisy = self.release.release(self.steps(), place).value\n"
FLAT = "torch.cat([total.flatten() for total in sums])"
DRAWN = f"flat = noisy_sum({FLAT}, self.scale, place)"
CLIPPED = "emission = clip_norm(emission, math.sqrt(1 - release.transition_share))"
UNIT_NORM = "torch.linalg.vector_norm(vectors, dim=1, dtype=torch.float64)"
COINS = "torch.from_numpy(coins(self.sampling, int(self.mine.sum())))"

PRIVACY = [
    mutant(
        "privacy 1a half the noise of the Gaussian mechanism",
        "epsilon is twice what is stated",
        f"tests/privacy/test_mechanisms.py {AUDIT_TESTS}",
        (
            GAUSSIAN,
            "value.detach() + self.sigma * standard_normal",
            "value.detach() + self.sigma / 2 * standard_normal",
        ),
    ),
    mutant(
        "privacy 1b half the noise of statistics",
        "word models and background models tell twice as much",
        LAW_TESTS,
        (STATISTICS, RELEASED, "noisy = (self.release.release(self.total()).value + self.total()) / 2\n"),
    ),
    mutant(
        "privacy 1c half the noise of gradients",
        "every step tells twice as much",
        LAW_TESTS,
        (PLAN, DRAWN, f"flat = noisy_sum({FLAT}, self.scale / 2, place)"),
    ),
    mutant(
        "privacy 1d half the noise in an objective",
        "a classifier tells twice as much",
        OBJECTIVE_TESTS,
        (OBJECTIVE, "return self.scale * isotropic_normal(", "return self.scale / 2 * isotropic_normal("),
    ),
    mutant(
        "privacy 1e half the noise of second moments",
        "directions tell twice as much",
        "tests/privacy/test_pca.py",
        (
            PCA,
            "        return Released(unpack_symmetric(released.value, self.features)",
            "        half = (released.value + pack_symmetric(self.moments(rows, unit_ids))) / 2\n"
            "        return Released(unpack_symmetric(half, self.features)",
        ),
    ),
    mutant(
        "privacy 2a a sample moves by one bound, not by two",
        "filtered features have half the noise",
        NOISY_TESTS,
        (
            NOISY,
            "math.ceil(2 * COARSE * math.sqrt(features)) / self.epsilon",
            "math.ceil(COARSE * math.sqrt(features)) / self.epsilon",
        ),
    ),
    mutant(
        "privacy 2b two minimizers are one tolerance apart, not two",
        "what the solver left open tells",
        OBJECTIVE_TESTS,
        (
            OBJECTIVE,
            "math.sqrt(dimension) * 2 * self.tolerance",
            "math.sqrt(dimension) * self.tolerance",
        ),
    ),
    mutant(
        "privacy 2c replace moves statistics as far as add_remove",
        "half the noise under replace",
        f"{LAW_TESTS} {STATISTICS_TESTS}",
        (SUMS, 'return 1 if relation.adjacency == "add_remove" else 2', "return 1"),
    ),
    mutant(
        "privacy 2d replace moves a minimizer as far as add_remove",
        "half the noise under replace",
        "tests/privacy/test_output.py",
        (OUTPUT, "head.sensitivity(radius, self.relation.adjacency) + 2", 'head.sensitivity(radius, "add_remove") + 2'),
    ),
    mutant(
        "privacy 2e replace moves parties' minimizers as far as add_remove",
        "half the noise where sizes are public",
        "tests/training/test_parties.py",
        (
            AVERAGE,
            "moved = head_of(module).sensitivity(radius_of(module), self.adjacency)",
            'moved = head_of(module).sensitivity(radius_of(module), "add_remove")',
        ),
    ),
    mutant(
        "privacy 3a statistics clipped after the noise",
        "a loud unit moves the sum without bound",
        STATISTICS_TESTS,
        (STATISTICS, CLIPPED, "emission = emission * 1.0"),
        (SUMS, UNIT_NORM, f"{UNIT_NORM} * 0"),
    ),
    mutant(
        "privacy 3b gradients clipped after the noise",
        "a loud unit moves the sum without bound",
        f"{GRADIENT_TESTS} {PLAN_TESTS}",
        (
            PLAN,
            "whole_scale(torch.stack(norms).norm(dim=0), self.clip",
            "whole_scale(torch.stack(norms).norm(dim=0) * 0, self.clip",
        ),
    ),
    mutant(
        "privacy 4 batches of a fixed size",
        "no Poisson sample: the amplification that is booked does not hold",
        f"{PLAN_TESTS} {LAW_TESTS}",
        (
            PLAN,
            COINS,
            "torch.randperm(int(self.mine.sum())) < self.sampling * self.mine.sum()",
        ),
    ),
    mutant(
        "privacy 5a noise of statistics used again in every iteration",
        "differences of iterations are bare",
        LAW_TESTS,
        (
            STATISTICS,
            "        return self.mechanism.release(total, place)\n",
            "        kept = KEPT.setdefault(len(total), self.mechanism.release(torch.zeros_like(total)).value)\n"
            "        return Released(total + kept, self.event, self.guarantee)\n",
        ),
        (
            STATISTICS,
            'ONE_UTTERANCE = Relation("utterance", "add_remove")',
            'ONE_UTTERANCE = Relation("utterance", "add_remove")\nKEPT = {}',
        ),
    ),
    mutant(
        "privacy 5b noise of gradients used again in every step",
        "differences of steps are bare",
        LAW_TESTS,
        (
            PLAN,
            DRAWN,
            f"flat = {FLAT}\n"
            "        none = torch.zeros_like(flat)\n"
            "        flat = flat + KEPT.setdefault(len(flat), noisy_sum(none, self.scale, place))",
        ),
        (PLAN, "def _event(", "KEPT = {}\n\n\ndef _event("),
    ),
    mutant(
        "privacy 5c noise of gradients used again for every parameter",
        "differences of parameters are bare",
        LAW_TESTS,
        (
            PLAN,
            DRAWN,
            "one = noisy_sum(torch.zeros_like(sums[0].flatten()), self.scale, place)\n"
            f"        flat = {FLAT}\n"
            "        flat = flat + one.repeat(len(sums))[: len(flat)]",
        ),
    ),
    mutant(
        "privacy 6a noise from one seeded stream",
        "whoever knows the seed takes the noise off",
        "tests/privacy/test_randomness.py tests/privacy/test_discrete.py",
        (RANDOMNESS, "        return os.urandom(count)\n", "        return STREAM.bytes(count)\n"),
        (RANDOMNESS, "def random_bytes(", "STREAM = np.random.default_rng(0)\n\n\ndef random_bytes("),
    ),
    mutant(
        "privacy 6b statistics with a fixed seed",
        "whoever reads the code takes the noise off",
        LAW_TESTS,
        (
            STATISTICS,
            RELEASED,
            "seeded = torch.Generator().manual_seed(0)\n"
            "        drawn = torch.randn(len(self.total()), generator=seeded)\n"
            "        noisy = self.total() + self.release.mechanism.sigma * drawn\n",
        ),
    ),
    mutant(
        "privacy 6c coins with a fixed seed",
        "whoever reads the code knows who joined which step",
        LAW_TESTS,
        (PLAN, COINS, "torch.rand(int(self.mine.sum()), generator=torch.Generator().manual_seed(_)) < self.sampling"),
    ),
    mutant(
        "privacy 7a a bound on every frame, not on the unit",
        "whoever spoke longer moves the sum further",
        STATISTICS_TESTS,
        (STATISTICS, CLIPPED, f"{CLIPPED} * frames.clamp_min(1.0).unsqueeze(-1).to(emission)"),
        (SUMS, UNIT_NORM, f"{UNIT_NORM} * 0"),
    ),
    mutant(
        "privacy 7b a bound on every utterance of a protected speaker",
        "a speaker moves the sum once an utterance",
        STATISTICS_TESTS,
        (STATISTICS, '        if self.release.relation.unit == "utterance":', "        if self.release.relation.unit:"),
    ),
    mutant(
        "privacy 7c a speaker counts as often as it spoke",
        "a speaker moves the objective once an utterance",
        CONVEX_TESTS,
        ("training/private/objective.py", "contribution_weights(groups, 1.0)", "contribution_weights(groups, 1e9)"),
    ),
    mutant(
        "privacy 8a statistics calibrated for another delta",
        "less noise than the stated delta needs",
        STATISTICS_TESTS,
        (
            STATISTICS,
            "calibrated(epsilon=epsilon, delta=delta, bound=1.0",
            "calibrated(epsilon=epsilon, delta=0.1, bound=1.0",
        ),
    ),
    mutant(
        "privacy 8b gradients calibrated for another delta",
        "less noise than the stated delta needs",
        f"{GRADIENT_TESTS} {PLAN_TESTS}",
        (
            PLAN,
            "return float(event.pld(interval).get_epsilon_for_delta(delta))",
            "return float(event.pld(interval).get_epsilon_for_delta(0.1))",
        ),
    ),
    mutant(
        "privacy 8c an objective calibrated for another delta",
        "less noise than the stated delta needs",
        f"{OBJECTIVE_TESTS} {CONVEX_TESTS}",
        (
            OBJECTIVE,
            "return _sigma(self.head, epsilon, budget.delta, *terms)",
            "return _sigma(self.head, epsilon, 0.1, *terms)",
        ),
    ),
    mutant(
        "privacy 9a one release of several is booked",
        "epsilon is a third of what it should be",
        HOOK_TESTS,
        (
            "training/private/statistics.py",
            "account.compose(self.release.event, self.spent)",
            "account.compose(self.release.event, 1)",
        ),
    ),
    mutant(
        "privacy 9b one sample of several is booked",
        "a person with many samples is promised what one sample is",
        NOISY_TESTS,
        (
            NOISY,
            'account.compose(self._event(unit), check_count("samples", samples))',
            "account.compose(self._event(unit), 1)",
        ),
    ),
    mutant(
        "privacy 10a layers that mix the examples of a batch",
        "an example's gradient depends on others: no clip bounds it",
        "tests/training/test_own_module.py tests/training/test_private_hook.py",
        (
            "training/private/gradients.py",
            "MIXES = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)",
            "MIXES = (nn.SyncBatchNorm,)",
        ),
    ),
    mutant(
        "privacy 10b a public start that hears private speech",
        "the first model is not covered by anything",
        LAW_TESTS,
        (
            "training/words.py",
            '        if self.start == "public":\n            return public_bank_',
            '        if self.start == "no":\n            return public_bank_',
        ),
    ),
    # Beyond the review's.
    mutant(
        "privacy 11a half the noise of people's shifts",
        "a person is told twice as much",
        SHIFT_TESTS,
        (
            SHIFTS,
            "return self.mechanism.release(self.mechanism.add_up(self.bounded(vectors)), place)",
            "told = self.mechanism.release(self.mechanism.add_up(self.bounded(vectors)))\n"
            "        half = (told.value + self.bounded(vectors).sum(0)) / 2\n"
            "        return Released(half, told.event, told.guarantee)",
        ),
    ),
    mutant(
        "privacy 11b people's shifts not clipped",
        "an unusual voice moves the sum without bound",
        SHIFT_TESTS,
        (SHIFTS, "clip_norm(heard, self.clip) *", "heard *"),
    ),
    mutant(
        "privacy 11c a person with a number that is none is refused",
        "that training fails tells that they were there",
        SHIFT_TESTS,
        (SHIFTS, "heard = torch.where(finite, vectors, 0).to(torch.float64)", "heard = vectors.to(torch.float64)"),
    ),
    mutant(
        "privacy 12 an audit that attacks numbers of its own",
        "half the noise of a release is not noticed",
        AUDIT_TESTS,
        (
            PLAN,
            "plan.release([torch.zeros(0, runs, dtype=torch.float64)]).value[0]",
            "z * torch.randn(runs, dtype=torch.float64)",
        ),
    ),
    mutant(
        "privacy 7d joined utterances counted as one each",
        "what is promised to an utterance holds for one of the many sentences it is in",
        HOOK_TESTS,
        (
            "training/private/hook.py",
            'getattr(pl_module, "refuses_privacy", "") or getattr(data, "refuses_privacy", "")',
            'getattr(pl_module, "refuses_privacy", "")',
        ),
    ),
]
