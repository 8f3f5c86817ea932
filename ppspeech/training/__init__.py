"""LightningModules and callbacks: where models, data and privacy meet."""
