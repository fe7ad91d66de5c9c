import sys

import model

weights = model.load(model.flag(sys.argv, "--pretrained"))
model.save(model.flag(sys.argv, "--save-inference-dir") + "/inference.json", weights)
