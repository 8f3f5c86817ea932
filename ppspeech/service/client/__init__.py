"""The client people call: the voice stays with it."""
