"""Frames to scores: Gaussians, mixtures, hidden Markov models and large-margin classifiers as nn.Modules."""
