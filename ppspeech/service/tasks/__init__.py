"""The tasks that services offer, one module each: what both parties know of a model, and what it will cost."""
