import sys

import model

weights = model.load(model.flag(sys.argv, "--model-dir") + "/inference.json")
for x in (-1.0, 0.5):
    print(f"x={x}\t[{weights['w'] * x + weights['b']:.6f}]")
