"""A campaign of many simulated models on namespaces as hosts, one of which loses its power.

Checks that every stage of every model ends once, and prints figures. Needs root, or user namespaces.

    python bench/chain/campaign.py --models 500 --hosts 4
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ASSAY = pathlib.Path(__file__).parents[2] / "build/release/bin/assay"
STAGES = ("train", "eval", "export", "infer")

STAGE = """
model=$1 stage=$2
echo "begin $model $stage" >> ran.txt
for word in "$@"; do case $word in --out=*) out=${word#--out=} ;; esac; done
sleep SECONDS
case $stage in
  train) echo "epoch 1 loss: 0.5"; mkdir -p "$out" && echo w > "$out/last.w" ;;
  export) mkdir -p "$out" && echo w > "$out/inference.pdmodel" ;;
esac
echo "end $model $stage" >> ran.txt
"""

PARAMS = """===train_params===
model_name:MODEL
python:bash
gpu_list:-1
--use_gpu:False
--epochs:lite_train_lite_infer=1
--out:./output/
--batch_size:lite_train_lite_infer=4
--init_weights:null
train_model_name:last.w
--data:./data
##
trainer:norm_train
norm_train:stage.sh MODEL train
##
===eval_params===
eval:stage.sh MODEL eval
##
===infer_params===
--out:./output
--weights:
norm_export:stage.sh MODEL export
##
train_model:./p
infer_export:null
##
inference:stage.sh MODEL infer
--use_gpu:False
--batch_size:1
--model_dir:./output
--image:null
--benchmark:null
"""


class Host:
    """Namespaces for processes, network and mounts; killing the holder kills everything inside."""

    def __init__(self) -> None:
        words = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self.user = os.geteuid() != 0
        if self.user:
            words += ["--user", "--map-root-user"]
        self.holder = subprocess.Popen([*words, "sleep", "infinity"])
        children = pathlib.Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children")
        self.name = ""
        while not self.name or pathlib.Path(f"/proc/{self.name}/comm").read_text() != "sleep\n":
            time.sleep(0.01)
            self.name = children.read_text().strip()

    def reach(self) -> str:
        more = " --user --preserve-credentials" if self.user else ""
        return "nsenter --target {host} --net --pid --mount" + more

    def lose_power(self) -> None:
        self.holder.send_signal(signal.SIGKILL)
        self.holder.wait()


def ended_models(folder: pathlib.Path) -> int:
    log = folder / "night/models.jsonl"
    return sum(1 for line in log.read_text().splitlines() if line) if log.exists() else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--seats", type=int, default=1, help="of each host")
    parser.add_argument("--stage-seconds", type=float, default=0.0)
    parser.add_argument("--keep-power", action="store_true", help="no host dies")
    options = parser.parse_args()

    hosts = [Host() for _ in range(options.hosts)]
    with tempfile.TemporaryDirectory(prefix="assay-campaign-") as name:
        folder = pathlib.Path(name)
        models = [f"m{number:04}" for number in range(options.models)]
        for model in models:
            (folder / f"{model}.txt").write_text(PARAMS.replace("MODEL", model))
        (folder / "stage.sh").write_text(STAGE.replace("SECONDS", str(options.stage_seconds)))
        (folder / "models.toml").write_text(
            f"""version = 1
[chains]
files = ["m*.txt"]
modes = ["lite_train_lite_infer"]
[seats]
hosts = {json.dumps([host.name for host in hosts])}
gpus = {json.dumps([str(seat) for seat in range(options.seats)])}
remote = "{hosts[0].reach()}"
[limits]
lost = 2
[output]
log_dir = "night"
"""
        )
        began = time.monotonic()
        with open(folder / "out.txt", "w") as out:
            campaign = subprocess.Popen([ASSAY, "run", "models.toml"], cwd=folder, stdout=out)
            while not options.keep_power and ended_models(folder) < options.models * 0.4:
                time.sleep(0.05)
            if not options.keep_power:
                hosts[-1].lose_power()
            code = campaign.wait()
        seconds = time.monotonic() - began

        lines = collections.Counter((folder / "ran.txt").read_text().splitlines())
        wrong = [
            f"{model} {stage}: ended {lines[f'end {model} {stage}']} times"
            for model in models
            for stage in STAGES
            if lines[f"end {model} {stage}"] != 1
        ]
        ended = (folder / "night/models.jsonl").read_text().splitlines()
        times = collections.Counter(json.loads(line)["model"].split(".")[0] for line in ended)
        wrong += [f"{model}: {times[model]} ends" for model in models if times[model] != 1]
        report = json.loads((folder / "night/campaign.json").read_text())
        states = collections.Counter(model["state"] for model in report["models"])
        twice = sum(1 for line, count in lines.items() if line.startswith("begin") and count > 1)
        own = sum(stage["seconds"] for model in report["models"] for stage in model["stages"])
        lost = (folder / "out.txt").read_text().count("\nlost ")
        seats = options.hosts * options.seats
    for host in hosts:
        host.lose_power()
    print(f"{options.models} models, {options.hosts} hosts, {options.seats} seat(s) each")
    print(f"  exit code {code}, {dict(states)}")
    print(f"  {seconds:.1f} s, {options.models / seconds:.1f} models/s on {os.cpu_count()} CPUs")
    print(f"  {lost} models lost with their host, {twice} stages begun twice")
    print(f"  {(seconds * seats - own) / options.models:.3f} s of a seat beside stages, per model")
    for line in wrong[:10]:
        print("  WRONG", line)
    return 1 if wrong or code != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
