"""`python -m tests.walk [--slow] [--json] [STAGE …]`."""

from tests.walk.walk import main

if __name__ == "__main__":
    main()
