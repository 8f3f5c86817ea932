"""What a job runs: `python -m ppspeech.studio.command STUDIO …` is `ppspeech …`, and ends when that process does."""

import runpy
import sys

from ppspeech.network import end_with

if __name__ == "__main__":
    end_with(int(sys.argv.pop(1)))  # also by force, when nobody is left to end it
    runpy.run_module("ppspeech", run_name="__main__", alter_sys=True)
