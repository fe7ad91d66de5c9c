import sys

import model

weights = model.load(model.flag(sys.argv, "--pretrained"))
print(f"loss: {model.loss(**weights):.6f}")
