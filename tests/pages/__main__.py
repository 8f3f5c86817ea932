"""Put the parts that follow from the code into the reference pages: `python -m tests.pages`."""

from tests.pages import PAGES, TOP, renewed

for page in PAGES:
    path = TOP / page
    path.write_text(renewed(page, path.read_text(encoding="utf-8")), encoding="utf-8")
