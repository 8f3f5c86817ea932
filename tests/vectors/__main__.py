"""Write all vectors: `python -m tests.vectors`."""

from tests.vectors import ALL, FOLDER, written

for name in ALL:
    (FOLDER / f"{name}.json").write_text(written(name), encoding="utf-8")
    print(FOLDER / f"{name}.json")
