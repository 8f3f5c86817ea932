"""`python -m ppspeech` is the `ppspeech` command."""

from ppspeech.cli import main

main()
