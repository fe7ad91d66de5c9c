"""Writes a few random pictures where a suite's own params files look for their data.

Run it in the suite's checkout: `suite_data.py clas` (PaddleClas) or `suite_data.py seg` (PaddleSeg).
What a model learns of them says nothing; that it trains, exports and infers does.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

RANDOM = np.random.default_rng(0)


def picture(path: Path, shape: tuple[int, ...], values: int) -> None:
    """Saves a picture of this shape (rows, columns, colours) with values below `values`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(RANDOM.integers(0, values, shape, dtype=np.uint8)).save(path)


def clas(root: Path = Path("dataset/ILSVRC2012")) -> None:
    """Two classes of 256 x 256 pictures, in lists of `name class`."""
    for part, count in (("train", 16), ("val", 4)):
        names = [f"{part}/ILSVRC2012_{part}_{i:08}.JPEG" for i in range(1, count + 1)]
        for name in names:
            picture(root / name, (256, 256, 3), 256)
        lines = [f"{name} {i % 2}\n" for i, name in enumerate(names)]
        (root / f"{part}_list.txt").write_text("".join(lines))


def seg(root: Path = Path("test_tipc/data/mini_supervisely")) -> None:
    """Pictures of 224 rows with masks of two classes, in lists of `picture mask`."""
    for part, count in (("train", 8), ("val", 2), ("test", 2)):
        lines = []
        for i in range(count):
            picture(root / f"{part}{i}.jpg", (224, 398, 3), 256)
            picture(root / f"{part}{i}.png", (224, 398), 2)
            lines.append(f"{part}{i}.jpg {part}{i}.png\n")
        (root / f"{part}.txt").write_text("".join(lines))


if __name__ == "__main__":
    suites = {"clas": clas, "seg": seg}
    if len(sys.argv) != 2 or sys.argv[1] not in suites:
        sys.exit(f"usage: suite_data.py {'|'.join(suites)}")
    suites[sys.argv[1]]()
