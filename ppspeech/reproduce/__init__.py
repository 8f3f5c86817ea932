"""`ppspeech reproduce NAME`: published tables and figures, measured again on the real corpora, with plots."""
