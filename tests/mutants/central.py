"""Mutants of projections, Wishart noise, records perturbed where they are and running sums; numbers as in
`privacy.py`."""

from tests.mutants.mutant import mutant

PROJECTION, GRAPH = "privacy/mechanisms/johnson_lindenstrauss.py", "privacy/mechanisms/graph_cuts.py"
WISHART, LOCAL, RUNNING = (f"privacy/mechanisms/{name}.py" for name in ("wishart", "local", "running"))
PROJECTION_TESTS, LOCAL_TESTS = "tests/privacy/test_projections.py", "tests/privacy/test_local.py"
RUNNING_TESTS = "tests/privacy/test_running.py"

CENTRAL = [
    mutant(
        "privacy 1 half the floor of a projection",
        "one row is four times as large a part of what is drawn as is stated",
        PROJECTION_TESTS,
        (PROJECTION, "+ self.floor * torch.eye(self.features))\n", "+ self.floor / 4 * torch.eye(self.features))\n"),
    ),
    mutant(
        "privacy 5 a projection that is used again",
        "two sketches show the difference of two data sets without noise",
        PROJECTION_TESTS,
        (
            PROJECTION,
            "        sketch = standard_normal((self.rows, self.features)) @ root.mT\n",
            "        kept = projection_ratio.__dict__.setdefault('kept', {})\n"
            "        size = (self.rows, self.features)\n"
            "        sketch = kept.setdefault(size, standard_normal(size)) @ root.mT\n",
        ),
    ),
    mutant(
        "privacy 2 a mean that does not move",
        "centered rows have a quarter of the floor they need",
        PROJECTION_TESTS,
        (
            PROJECTION,
            "        reach = 2 * self.radius if self.centered else self.radius\n",
            "        reach = self.radius\n",
        ),
    ),
    mutant(
        "privacy 7 rows of a person bounded one by one",
        "who has many moves the sketch as often",
        PROJECTION_TESTS,
        (PROJECTION, "own = unit_ids if self.relation.unit not in OWN_ROWS else None", "own = None"),
    ),
    mutant(
        "privacy 9 one direction of a projection's account",
        "a row that is there is easier to tell than is stated",
        PROJECTION_TESTS,
        (PROJECTION, "return max(self._leaves(epsilon), self._comes(epsilon))", "return self._comes(epsilon)"),
    ),
    mutant(
        "privacy 2 half of what a pair of nodes changes",
        "a call is told from none more easily than is stated",
        PROJECTION_TESTS,
        (
            GRAPH,
            "        ratio = 2 * (1 - self.floor / self.nodes) / self.floor\n",
            "        ratio = (1 - self.floor / self.nodes) / self.floor\n",
        ),
    ),
    mutant(
        "privacy 5 a graph's projection used again",
        "two sketches show the difference of two graphs without noise",
        PROJECTION_TESTS,
        (
            GRAPH,
            "    drawn = standard_normal((rows, len(inner))) @",
            "    size = (rows, len(inner))\n"
            "    kept = sketched_laplacian.__dict__.setdefault('kept', {})\n"
            "    drawn = kept.setdefault(size, standard_normal(size)) @",
        ),
    ),
    mutant(
        "privacy 1 made-up rows half as long",
        "Wishart noise hides a quarter of what is stated",
        PROJECTION_TESTS,
        (WISHART, "noise = self.scale * standard_normal(", "noise = self.scale / 2 * standard_normal("),
    ),
    mutant(
        "privacy 1 classes told as if there were two",
        "the truth is told more often than is stated",
        LOCAL_TESTS,
        (
            LOCAL,
            "return 1 / (1 + (self.classes - 1) * math.exp(-self.epsilon))",
            "return 1 / (1 + math.exp(-self.epsilon))",
        ),
    ),
    mutant(
        "privacy 2 noise for the radius of a ball and not its diameter",
        "opposite vectors are told apart at twice the epsilon",
        LOCAL_TESTS,
        (LOCAL, "return self.epsilon_vector / (2 * self.radius)", "return self.epsilon_vector / self.radius"),
    ),
    mutant(
        "privacy 2 Gaussian noise for the radius of a ball and not its diameter",
        "opposite vectors are told apart at twice the epsilon",
        LOCAL_TESTS,
        (LOCAL, '"sensitivity": 2 * radius,', '"sensitivity": radius,'),
    ),
    mutant(
        "privacy 1 half the noise on vectors",
        "everybody tells twice as much",
        LOCAL_TESTS,
        (LOCAL, "    noise: Tensor = direction * (length /", "    noise: Tensor = direction / 2 * (length /"),
    ),
    mutant(
        "privacy 7 all records of a person told",
        "who has many pays for few",
        LOCAL_TESTS,
        (LOCAL, "limit_contributions(unit_ids, self.most)", "limit_contributions(unit_ids, len(unit_ids))"),
    ),
    mutant(
        "privacy 9 a row pays for one block",
        "sums that are told again and again cost as much as one",
        RUNNING_TESTS,
        (RUNNING, "        one, count = self.block.event, self.levels\n", "        one, count = self.block.event, 1\n"),
    ),
]
