"""A client of words that does what `docs/reference/wire.md` says: plain Python, nothing of ppspeech is imported.

It is slow and short. It shows that the page says enough: a server of this package gives it the right word.
"""
