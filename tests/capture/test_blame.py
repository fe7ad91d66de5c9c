"""`assay blame` names the operator that is wrong, and nobody in a clean model."""

import json
import pathlib
import re
import subprocess

import pytest
from assay.capture.blame import suspects_of
from capture.programs import ASSAY, MODEL, ROOT, TORCH, capture, needed

LANE = """version = 1
[lanes.broken]
framework = "torch"
modules = ["planted"]
environment = ["PYTHONPATH={folder}", "FAULT={fault}"]
"""
MOST_OF_AN_API = 3  # cases, so that a fault takes seconds


def capture_of(folder, program):
    """A capture with few cases of each API."""
    done = capture(folder, program)
    assert done.returncode == 0, done.stderr
    lines = (folder / "corpus.txt").read_text().splitlines()
    kept, seen = lines[:1], {}
    for text, note in zip(lines[1::2], lines[2::2], strict=True):
        api = text.partition("(")[0]
        seen[api] = seen.get(api, 0) + 1
        if seen[api] <= MOST_OF_AN_API or "autocast" in note:
            kept += [text, note]
    (folder / "corpus.txt").write_text("\n".join(kept) + "\n")
    return folder / "corpus.txt"


def blame(folder, corpus, fault="", *flags):
    """The finished command on a lane with a fault."""
    settings = LANE.format(folder=pathlib.Path(__file__).parent, fault=fault)
    (folder / "assay.toml").write_text(settings)
    command = [ASSAY, "blame", corpus, "--test-lane=broken", f"--log_dir={folder / 'run'}", "-n1", *flags]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    return capture_of(tmp_path_factory.mktemp("training"), MODEL)


def test_nobody_is_blamed_in_a_clean_model(training, tmp_path):
    done = blame(tmp_path, training)
    assert done.returncode == 0, done.stdout + done.stderr
    count = len(training.read_text().splitlines()) // 2
    assert done.stdout.startswith(
        f"no operator is to blame: {count} of {count} distinct calls have a verdict"
    )


def test_a_wrong_function_is_named_with_place_and_script(training, tmp_path):
    done = blame(tmp_path, training, "half:torch.nn.functional.layer_norm")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("1. torch.nn.functional.layer_norm: wrong beyond the error bar\n")
    assert "\n2. " not in done.stdout
    line = next(number for number, text in enumerate(MODEL.splitlines(), 1) if "self.head(" in text)
    assert re.search(
        rf"program\.py:{line} < program\.py:\d+ \(encoder\.layers\.0\.norm1\): 12 calls", done.stdout
    )
    assert "12 calls, in 100% of 3 steps, first in step 1" in done.stdout
    command = re.search(r"script: assay (.*)", done.stdout)[1].split()
    script = subprocess.run([ASSAY, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert script.returncode == 0 and list(tmp_path.glob("run/repro_*/*.py")), script.stderr


def test_a_wrong_kernel_is_named_with_the_function_that_calls_it(training, tmp_path):
    done = blame(tmp_path, training, "scaled:aten.native_layer_norm.default", "--json")
    found = json.loads(done.stdout)
    assert found["suspects"][0]["api"] == "torch.nn.functional.layer_norm"
    assert found["kernel"] == "native_layer_norm"


def test_a_larger_error_than_in_the_other_lane_is_named(training, tmp_path):
    lines = training.read_text().splitlines()
    linear = next(at for at, line in enumerate(lines) if line.startswith("torch.nn.functional.linear("))
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join([lines[0], *lines[linear : linear + 2]]) + "\n")
    fault = "inexact:torch.nn.functional.linear"
    done = blame(tmp_path, corpus, fault, "--values=usual", "--reference-lane=torch")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("1. torch.nn.functional.linear: larger error than in torch\n")


def test_a_fault_in_the_observed_range_only_is_found(tmp_path):
    """exp above 80: no other regime of blame has such values."""
    needed()
    seen = {"min": 70.0, "max": 88.0, "nan": 0, "inf": 0, "zero": 0, "count": 600}
    lines = ['# assay capture 1 {"framework": "torch 2"}', 'torch.exp(Tensor([600], "float32"))']
    lines.append("#: " + json.dumps({"calls": 1, "steps": 1, "at": [], "values": {"in0": seen}}))
    (tmp_path / "corpus.txt").write_text("\n".join(lines) + "\n")
    done = blame(tmp_path, "corpus.txt", "large:torch.exp")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("1. torch.exp: wrong beyond the error bar\n"), done.stdout
    report = json.loads(subprocess.check_output([ASSAY, "report", tmp_path / "run", "--json"]))
    assert [each["values"] for each in report["findings"]] == [["observed"]]
    command = [ASSAY, "shrink", tmp_path / "run", report["findings"][0]["id"]]
    smaller = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.search(r'torch\.exp\(Tensor\(\[\d?\], "float32"\)\)', smaller.stdout), smaller.stderr


def test_wrong_input(tmp_path):
    (tmp_path / "newer.txt").write_text("# assay capture 9 {}\n")
    (tmp_path / "damaged.txt").write_text("torch.abs(Tensor([2]))\n#: {\n")
    for file, said in (("none.txt", "No such file"), ("newer.txt", "newer assay"), ("damaged.txt", "line 2")):
        done = blame(tmp_path, file)
        assert done.returncode == 2 and said in done.stderr, (file, done.stderr)


FAULTS = """
half:torch.nn.functional.layer_norm gradient:torch.nn.functional.linear scaled:torch.nn.functional.linear
last:torch.nn.functional.conv2d half:torch.nn.functional.conv2d scaled:torch.Tensor.matmul
half:torch.Tensor.matmul half:torch.Tensor.add_ last:torch.cat scaled:torch.Tensor.mul
gradient:torch.Tensor.mul scaled:torch.Tensor.sub scaled:torch.nn.functional.gelu
last:torch.nn.functional.gelu gradient:torch.nn.functional.gelu half:torch.nn.functional.softmax
gradient:torch.nn.functional.softmax scaled:torch.nn.functional.embedding
gradient:torch.nn.functional.cross_entropy half:torch.nn.functional.cross_entropy
last:torch.nn.functional.batch_norm half:torch.nn.functional.batch_norm
gradient:torch.nn.functional.batch_norm half:torch.nn.functional.group_norm
half:torch.nn.functional.instance_norm gradient:torch.nn.functional.layer_norm
half:torch.nn.functional.scaled_dot_product_attention
gradient:torch.nn.functional.scaled_dot_product_attention half:torch.lstm scaled:torch.gru
scaled:torch.nn.functional.dropout half:torch.nn.functional.avg_pool2d last:torch.nn.functional.max_pool2d
half:torch.nn.functional.adaptive_avg_pool2d gradient:torch.nn.functional.relu
gradient:torch.nn.functional.leaky_relu half:torch.nn.functional.hardswish scaled:torch.nn.functional.silu
half:torch.nn.functional.conv_transpose2d last:torch.nn.functional.interpolate half:torch.nn.functional.pad
half:torch.nn.functional.mse_loss gradient:torch.nn.functional.smooth_l1_loss
half:torch.nn.functional.normalize half:torch.nn.functional.binary_cross_entropy_with_logits
scaled:torch.rsqrt half:torch.Tensor.div gradient:torch.Tensor.pow scaled:torch.Tensor.mean
half:torch.Tensor.sum scaled:torch.cumsum scaled:torch.where scaled:torch.Tensor.lerp_
half:torch.Tensor.addcdiv_ half:torch.Tensor.addcmul_ half:torch.Tensor.sqrt half:torch.Tensor.cos
half:torch.Tensor.sin half:torch.einsum half:torch.outer half:torch.Tensor.std scaled:aten.gelu.default
half:aten.native_layer_norm.default scaled:aten.silu.default
scaled:torch.nn.functional.embedding_bag autocast:torch.nn.functional.linear
""".split()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return capture_of(
        tmp_path_factory.mktemp("models"), (ROOT / "tests" / "capture" / "models.py").read_text()
    )


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["", *FAULTS])
def test_the_planted_fault_comes_first(fault, models, tmp_path):
    found = json.loads(blame(tmp_path, models, fault, "--json").stdout)
    named = [suspect["api"].rpartition(".")[2].strip("_") for suspect in found["suspects"]]
    home, _, stem = fault.partition(":")[2].rpartition(".")
    stem = home.rpartition(".")[2].removeprefix("native_") if home.startswith("aten.") else stem
    assert named[:1] == [stem.strip("_")][: bool(fault)], found


@pytest.mark.slow
def test_the_tutorial_prints_what_it_shows(tmp_path):
    """The lines of docs/tutorials/my-loss-is-nan.md that tell the answer."""
    page = (ROOT / "docs" / "tutorials" / "my-loss-is-nan.md").read_text()
    needed()
    program = re.search(r"cat > train.py <<'END'\n(.*?)\nEND\n", page, re.S)[1]
    (tmp_path / "train.py").write_text(program)
    command = [
        ASSAY,
        "capture",
        "--summaries",
        "--judge",
        "--out",
        "corpus.txt",
        "-n1",
        "--",
        TORCH,
        "train.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    shown = re.search(r"```text\n(the first NaN: .*?)```", page, re.S)[1]
    assert done.stdout.startswith("nan\n" + shown), done.stdout
    assert done.returncode == 0


def test_no_memory_and_windows_are_nobodys_fault(tmp_path):
    """`hann_window` adds a cosine of a rounded angle to a number that cancels it."""
    corpus = tmp_path / "corpus.txt"
    large = 'torch.Tensor.expand(Tensor([1], "float32"), 1125899906842624)'
    corpus.write_text(f'torch.hann_window(16)\n{large}\ntorch.abs(Tensor([4], "float32"))\n')
    done = blame(tmp_path, corpus)
    assert done.returncode == 0 and done.stdout.startswith("no operator is to blame: 2 of 3 "), done.stdout


def test_bystanders_make_tensors_and_change_none():
    made = "torch.zeros", "torch.Tensor.fill_", "torch.ops.aten.zero_.default", "torch.rand_like"
    changed = "torch.Tensor.masked_fill", "torch.index_fill", "torch.Tensor.masked_fill_", "torch.range_of"
    cases = {f"{api}()": {} for api in (*made, *changed)}
    found = suspects_of(cases, cases, [], "wrong")
    assert {suspect.api for suspect in found} == set(changed)
