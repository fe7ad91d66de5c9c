import sys
import time

import model

epochs = int(model.flag(sys.argv, "--epochs", "10"))
w = b = 0.0
for epoch in range(epochs):
    start = time.perf_counter()
    pairs = list(model.points())
    for x, y in pairs:
        error = w * x + b - y
        w -= 0.05 * error * x
        b -= 0.05 * error
    cost = time.perf_counter() - start
    print(
        f"[Epoch {epoch}] loss: {model.loss(w, b):.6f}, avg_batch_cost: {cost:.6f} sec, "
        f"avg_ips: {len(pairs) / cost:.1f} points/sec.",
        flush=True,
    )
model.save(model.flag(sys.argv, "--output-dir") + "/latest.json", {"w": w, "b": b})
