"""What shows that the rest holds: benchmarks, experiments, and what others published, with the attacks on it."""
