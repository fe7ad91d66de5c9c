"""Cases with PyTorch's own names, PyTorch alone: names, references, draws, executions, OpInfo's corpus."""

import getpass
import json
import subprocess

import pytest
from engine import passes_in_torch
from tree import ASSAY, ROOT

PASSING = """\
torch.add(Tensor([2, 3], "float32"), 2, alpha=3)
torch.add(Tensor([2, 3], "float32"), Tensor([2, 3], "float32"), out=Tensor([2, 3], "float32"))
torch.Tensor.add_(Tensor([2, 3], "float16"), Tensor([2, 3], "float16"))
torch.nn.functional.softmax(Tensor([2, 3], "bfloat16"), dim=-1)
torch.nn.functional.elu(Tensor([20], "float32"), inplace=True)
torch.nn.functional.batch_norm(Tensor([4, 3], "float32"), Tensor([3], "float32"), Tensor([3], "float32"))
torch.nn.functional.nll_loss(Tensor([3, 5], "float32"), Tensor([3], "int64"))
torch.nn.functional.dropout(Tensor([40, 50], "float32"), p=0.3)
torch.gather(Tensor([4, 5], "float32"), 1, Tensor([4, 2], "int64"))
torch.index_copy(Tensor([6, 5], "float32"), 0, Tensor([3], "int64"), Tensor([3, 5], "float32"))
torch.scatter(Tensor([6, 5], "float32"), 0, Tensor([3, 5], "int64"), Tensor([3, 5], "float32"))
torch.linalg.solve(Tensor([4, 4], "float64"), Tensor([4, 2], "float64"))
torch.special.entr(Tensor([40], "float32"))
torch.fft.rfft(Tensor([16], "float32"))
torch.special.multigammaln(Tensor([8], "float32"), 2)
torch.randn(list[400])
torch.Tensor.exponential_(Tensor([400], "float32"), 2.0)
torch.ops.aten.relu.default(Tensor([2, 3], "float32"))
""".splitlines()

REFUSED = {
    'torch.os.system("ls")': "os has none",
    'torch.save(Tensor([2], "float32"))': "save is not a function of tensors",
    'torch.Tensor.numpy(Tensor([2], "float32"))': "numpy is not a function of tensors",
    'torch.utils.data.get_worker_info(Tensor([2], "float32"))': "a case may call",
    'torch.nosuch(Tensor([2], "float32"))': "has no nosuch",
    'torch.nn.functional(8)(Tensor([2], "float32"))': "torch.nn.functional",
    'torch.nn.LayerNorm(Tensor([2], "float32"))': "write a layer as API(…)(…)",
    'torch.optim.lr_scheduler(0.1)(Tensor([2], "float32"))': "optim has none",
    'torch.ops.aten.__class__(Tensor([2], "float32"))': "torch.ops.aten.__class__",
    "torch.ops.aten.set_grad_enabled(False)": "torch.ops.aten.set_grad_enabled: a case may",
    'torch.ops.aten.from_file("nowhere", True, 10)': "torch.ops.aten.from_file: a case may",
    'torch.ops.aten.save(Tensor([2], "float32"), "nowhere")': "torch.ops.aten.save: a case may",
    "torch.ops.aten.manual_seed(3)": "torch.ops.aten.manual_seed: a case may",
    'torch.ops.aten._print("x")': "_print is private",
    'torch.ops.aten._backward(Tensor([2], "float32"), list[Tensor([2], "float32")])': "_backward is private",
    'torch.ops.aten.name("x")': "torch.ops.aten.name: a case may",
    'torch.ops.debugprims.load_tensor("x", list[2], list[1])': "torch.ops.debugprims.load_tensor: a case may",
}

PLANTED = """
import torch
import torch.nn.functional as functional

right = torch.softmax

def softmax(input, dim, dtype=None):  # too large by one part in 10,000, in half precision by 1%
    return right(input, dim, dtype=dtype) * (1.01 if input.dtype == torch.half else 1.0001)

softmax.__module__ = "torch.nn.functional"
torch.softmax = functional.softmax = softmax
torch.overrides.get_testing_overrides.cache_clear()
torch.overrides.get_testing_overrides()[softmax] = lambda: None
"""
WRONG_SOFTMAX = """\
torch.nn.functional.softmax(Tensor([4, 10], "float32"), 1)
torch.softmax(Tensor([8, 100], "float16"), 1)
""".splitlines()


REGIONS = """
import functools

import torch
import torch.nn.functional as functional

right = functional.fractional_max_pool2d_with_indices

@functools.wraps(right)
def wrong(*args, **kwargs):
    values, indices = right(*args, **kwargs)
    return values + 0.01, indices

functional.fractional_max_pool2d_with_indices = wrong
torch.overrides.get_testing_overrides.cache_clear()
torch.overrides.get_testing_overrides()[wrong] = lambda: None
"""

# The documentation forbids labels that are the blank.
STRICT = """
import functools

import torch
import torch.nn.functional as functional

loss = functional.ctc_loss

@functools.wraps(loss)
def strict(log_probs, targets, input_lengths, target_lengths, blank=0, *others, **named):
    assert not (targets == blank).any(), "a label is the blank"
    return loss(log_probs, targets, input_lengths, target_lengths, blank, *others, **named)

functional.ctc_loss = strict
"""

# Kinds of false alarms over OpInfo, each with the seed that showed it.
ALARMS = [
    (0, "torch.hann_window(16)"),
    (0, "torch.blackman_window(37)"),
    (0, "torch.signal.windows.nuttall(31)"),
    (0, 'torch.Tensor.__rpow__(Tensor([5, 10, 5], "bfloat16"), Tensor([5, 10, 5], "bfloat16"))'),
    (0, 'torch.Tensor.mvlgamma_(Tensor([5, 5], "bfloat16"), 4)'),
    (0, 'torch.histogram(Tensor([], "float32"), 3, weight=None, density=True)'),
    (0, 'torch.linalg.norm(Tensor([5], "float32"), -3.5, keepdim=False)'),
    (0, 'torch.logspace(4.3, Tensor([], "float32"), 2, 3.0, dtype=Dtype(complex64))'),
    (0, 'torch.nn.functional.layer_norm(Tensor([1, 2], "float32"), tuple(2), weight=None, eps=1e-05)'),
    (0, 'torch.dist(Tensor([5, 1, 5], "float16"), Tensor([], "float16"), 2)'),
    (0, 'torch.mode(Tensor([], "float32"))'),  # a rule cannot say whether it runs under NaN
    (1, 'torch.nn.functional.group_norm(Tensor([1, 2], "float32"), 1, weight=None, bias=None, eps=1e-05)'),
    (3, 'torch.cov(Tensor([2, 3], "int64"), correction=2, fweights=None, aweights=Tensor([3], "float32"))'),
    (1, 'torch.linalg.vecdot(Tensor([1, 5], "bfloat16"), Tensor([1, 5], "bfloat16"))'),
    (2, 'torch.linalg.matrix_norm(Tensor([2, 3, 2], "bfloat16"), -math.inf, tuple(-1, 0), True)'),
    (2, 'torch.lerp(Tensor([], "bfloat16"), Tensor([], "bfloat16"), 0.4)'),
    (2, 'torch.linalg.norm(Tensor([5, 5], "float32"), -2, keepdim=True)'),
    (3, 'torch.Tensor.tan_(Tensor([20, 20], "complex64"))'),
    (
        6,
        'torch.nn.functional.triplet_margin_loss(Tensor([5, 10], "float16"), Tensor([5, 10], "float16"), '
        'Tensor([5, 10], "float16"), margin=1.0, p=2, eps=1e-06, swap=False, size_average=None, reduce=None, '
        'reduction="sum")',
    ),
    (0, 'torch.nn.MultiLabelMarginLoss()(Tensor([5, 10], "float32"), Tensor([5, 10], "int64"))'),
    (
        1,
        'torch.nn.functional.batch_norm(Tensor([2, 16, 8, 8], "float32", is_contiguous=False, '
        'strides=[1024, 1, 128, 16]), Tensor([16], "float32"), Tensor([16], "float32"), None, None, True)',
    ),
]


def test_functions_of_every_namespace_pass(api):
    _, listed = api(PASSING)
    assert listed("pass").splitlines() and len(listed("pass").splitlines()) == len(PASSING)


def test_places_of_a_flattened_tensor_count_from_its_start(api):
    case = 'torch.take_along_dim(Tensor([5, 5], "float32"), Tensor([5, 2], "int64"))'
    _, listed = api([case], "--values=usual")
    assert listed("pass").splitlines() == [case]


MODULES = """\
torch.nn.LayerNorm(8)(Tensor([2, 8], "float32"))
torch.nn.Linear(8, 4, dtype=Dtype(bfloat16))(Tensor([2, 8], "bfloat16"))
torch.nn.BatchNorm1d(4)(Tensor([5, 4], "float32"))
torch.nn.LSTM(4, 5, 2)(Tensor([3, 2, 4], "float32"))
torch.nn.Embedding(10, 3)(Tensor([2, 4], "int64"))
torch.nn.CrossEntropyLoss(Tensor([5], "float32"))(Tensor([3, 5], "float32"), Tensor([3], "int64"))
torch.nn.Dropout(0.5)(Tensor([300, 5], "float32"))
torch.optim.SGD(0.1)(Tensor([8], "float32"), Tensor([8], "float32"))
torch.optim.AdamW(lr=0.1, weight_decay=0.01)(Tensor([8], "float32"), Tensor([8], "float32"))
""".splitlines()
WRONG_MODULES = """
import torch

norm, step = torch.nn.LayerNorm.forward, torch.optim.SGD.step
torch.nn.LayerNorm.forward = lambda self, x: norm(self, x) + (1e-3 if x.dtype == torch.float32 else 0)

def wrong(self, *args, **kwargs):  # the learning rate grows from step to step
    for group in self.param_groups:
        group["lr"] *= 1.001 if group["params"][0].dtype == torch.float32 else 1
    return step(self, *args, **kwargs)

torch.optim.SGD.step = wrong
"""


def test_modules_and_optimizers_pass(api):
    _, listed = api(MODULES)
    assert len(listed("pass").splitlines()) == len(MODULES)


def test_a_wrong_module_and_a_wrong_optimizer_are_found(api, tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG_MODULES)
    settings = 'version = 1\n[lanes.wrong]\nframework = "torch"\nmodules = ["wrong"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={tmp_path}"]\n')
    _, listed = api(MODULES, lane="wrong", code=1)
    assert sorted(line.partition("(")[0] for line in listed("mismatch").splitlines()) == [
        "torch.nn.LayerNorm", "torch.optim.SGD",
    ]  # fmt: skip


def test_parameters_of_another_dtype_than_the_input_are_rejected(api):
    _, listed = api(['torch.nn.Linear(8, 4)(Tensor([2, 8], "float64"))'])
    assert listed("rejected").startswith("torch.nn.Linear")


def test_names_that_are_no_functions_of_tensors_are_refused(api):
    said, listed = api(list(REFUSED), code=1)
    assert len(listed("invalid").splitlines()) == len(REFUSED)
    for hint in REFUSED.values():
        assert hint in said


def test_a_missing_name_is_reported_once(api):
    said, listed = api([f'torch.nosuch(Tensor([{n}], "float32"))' for n in (2, 3, 4)], code=1)
    assert said.count("has no nosuch") == 1 and len(listed("invalid").splitlines()) == 3


def test_a_torch_name_in_a_lane_of_paddle_is_unsupported(api):
    if not (ROOT / ".venv" / "paddle").exists():
        pytest.skip("Paddle is not there: make build")
    _, listed = api([PASSING[0]], lane="paddle", code=4)
    assert listed("unsupported").startswith("torch.add")


def test_a_wrong_function_is_found(api, tmp_path):
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "faulty.py").write_text(PLANTED)
    settings = 'version = 1\n[lanes.faulty]\nframework = "torch"\nmodules = ["faulty"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={overlay}"]\n')
    said, listed = api([PASSING[0], *WRONG_SOFTMAX], lane="faulty", code=1)
    assert sorted(listed("mismatch").splitlines()) == WRONG_SOFTMAX, said
    assert listed("pass").startswith("torch.add")


def test_formulas_of_second_opinions_agree_with_pytorch():
    passes_in_torch(ROOT / "tests" / "real" / "independent_formula_checks.py")


SHARED = """
import functools

import torch
import torch.nn.functional as functional

for name in ("relu", "softmax", "layer_norm"):
    right = getattr(functional, name)
    wrong = functools.wraps(right)(lambda *args, right=right, **kwargs: right(*args, **kwargs) * 1.5)
    setattr(functional, name, wrong)
    torch.overrides.get_testing_overrides.cache_clear()
    torch.overrides.get_testing_overrides()[wrong] = lambda: None
"""
SHARED_CASES = """\
torch.nn.functional.relu(Tensor([20], "float64"))
torch.nn.functional.relu(Tensor([20], "float32"), inplace=True)
torch.nn.functional.softmax(Tensor([4, 5], "bfloat16"), -1)
torch.nn.functional.layer_norm(Tensor([4, 8], "float32"), list[8])
torch.nn.functional.sigmoid(Tensor([20], "float32"))
""".splitlines()


def test_a_fault_that_float64_shares_is_found(api, tmp_path):
    """Both lanes run the same wrong PyTorch, so only the formulas are right."""
    (tmp_path / "faulty.py").write_text(SHARED)
    settings = 'version = 1\n[lanes.faulty]\nframework = "torch"\nmodules = ["faulty"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={tmp_path}"]\n')
    said, listed = api(SHARED_CASES, lane="faulty", reference="faulty", code=1)
    assert sorted(listed("mismatch").splitlines()) == sorted(SHARED_CASES[:-1]), said
    assert listed("pass").splitlines() == SHARED_CASES[-1:]
    assert "PyTorch's own float64 disagrees with the second opinion too" in said


@pytest.mark.slow
def test_the_script_of_a_finding_shows_the_fault_with_pytorch_alone(api, tmp_path):
    """`torch.renorm` of complex numbers has NaN as its gradient (docs/findings)."""
    api(['torch.renorm(Tensor([6, 8], "complex64"), math.inf, 0, 0.1)'], code=1)
    text = subprocess.check_output(
        [ASSAY, "finding", tmp_path / "run", "1", "--script", tmp_path / "script.py"], text=True
    )
    assert "assay ran the script here: it exits with 1" in text
    script = (tmp_path / "script.py").read_text()
    assert "import torch" in script and "assay" not in script and "paddle" not in script
    assert script.count("complex(") <= 4, "minimal in values, too"


def test_maxima_of_drawn_regions_are_elements_of_their_plane(api, tmp_path):
    case = 'torch.nn.functional.fractional_max_pool2d_with_indices(Tensor([2, 8, 8], "float32"), 2, 4)'
    _, listed = api([case])
    assert listed("pass").strip() == case
    (tmp_path / "faulty.py").write_text(REGIONS)
    settings = 'version = 1\n[lanes.faulty]\nframework = "torch"\nmodules = ["faulty"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={tmp_path}"]\n')
    said, listed = api([case], lane="faulty", code=1)
    assert listed("mismatch").strip() == case, said


def test_labels_are_never_the_blank(api, tmp_path):
    cases = [
        'torch.nn.CTCLoss(blank=4)(Tensor([20, 2, 5], "float32"), Tensor([2, 30], "int64"), '
        "tuple(20, 20), tuple(3, 3))",
        'torch.nn.functional.ctc_loss(Tensor([20, 2, 5], "float32"), Tensor([2, 30], "int64"), list[20, 20], '
        "list[3, 3], blank=2)",
    ]
    (tmp_path / "strict.py").write_text(STRICT)
    settings = 'version = 1\n[lanes.strict]\nframework = "torch"\nmodules = ["strict"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={tmp_path}"]\n')
    said, listed = api(cases, lane="strict")
    assert sorted(listed("pass").splitlines()) == sorted(cases), said


NORM = (
    'torch.nn.functional.batch_norm(Tensor([2, 3, 4], "float32"), Tensor([3], "float32"),'
    ' Tensor([3], "float32"), training=True)'
)


@pytest.mark.parametrize(
    "replacement, case",
    [
        ("logsumexp = lambda *args: None", 'torch.Tensor.logsumexp(Tensor([4, 5], "float32"), 1)'),
        ("nn.functional.batch_norm = lambda *args, right=right, **kwargs: right(*args, **kwargs)", NORM),
    ],
)
def test_a_replaced_function_has_the_parameters_of_the_first(api, tmp_path, replacement, case):
    text = f"import torch\nright = torch.nn.functional.batch_norm\ntorch.{replacement}\n"
    (tmp_path / "faulty.py").write_text(text)
    settings = 'version = 1\n[lanes.faulty]\nframework = "torch"\nmodules = ["faulty"]\n'
    (tmp_path / "assay.toml").write_text(settings + f'environment = ["PYTHONPATH={tmp_path}"]\n')
    said, listed = api([case], lane="faulty")
    assert listed("pass").strip() == case, said


@pytest.mark.parametrize("seed", sorted({seed for seed, _ in ALARMS}))
def test_rounding_of_composed_functions_is_no_mismatch(api, seed):
    cases = [case for each, case in ALARMS if each == seed]
    said, listed = api(cases, f"--random_seed={seed}")
    assert sorted(listed("pass").splitlines()) == sorted(cases), said


def test_a_mean_that_drifts_is_found_in_draws(api):
    said, _ = api(['torch.normal(Tensor([4000], "float32"), 0.5)'])
    assert "passes" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "lane",
    ["torch:compile=aot_eager", "torch:export", "torch:threads=2", "torch:vmap", "torch:deterministic"],
)
def test_executions_agree_with_eager_mode(api, lane):
    cases = [case for case in PASSING if "_(" not in case and "inplace" not in case and "out=" not in case]
    said, listed = api(cases[:8], lane=lane)
    skipped = listed("skip").splitlines()
    assert len(listed("pass").splitlines()) == 8 - len(skipped) >= 6, said


@pytest.mark.parametrize(
    "lane, hint",
    [
        ("torch:nosuch:0", "has no device nosuch"),
        ("torch:cpu+nosuch", "no execution is called nosuch"),
        ("torch:compile=inductr", "no compiler called inductr"),
        ("torch:threads=0", "threads=N takes a number from 1"),
        ("trch:compile", "did you mean"),
    ],
)
def test_lanes_that_do_not_exist(api, lane, hint):
    said, _ = api([PASSING[0]], lane=lane, code=2)
    assert hint in said


def fates(folder, cases, fault):
    """What becomes of this fault, planted in one case of each API: by API and value regime."""
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")
    corpus = folder / "cases.txt"
    corpus.write_text("\n".join(cases) + "\n")
    command = [ASSAY, "mutate", f"--api_config_file={corpus}", f"--operators={fault}", "--test-lane=torch"]
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    command += [f"--torch_python={python}", f"--log_dir={folder / 'run'}"]
    subprocess.run(command, capture_output=True, check=True, cwd=folder)
    lines = (folder / "run" / "mutants.jsonl").read_text().splitlines()[1:]
    trials = [json.loads(line) for line in lines]
    return {(trial["case"].split("(")[0], trial["values"]): trial["fate"] for trial in trials}


def test_an_error_of_8_ulps_is_found_where_nothing_is_added_up(tmp_path):
    cases = [
        'torch.nn.Hardtanh()(Tensor([4], "float32"))',
        'torch.nn.LeakyReLU()(Tensor([4], "float32"))',
        'torch.nn.MaxPool1d(4)(Tensor([2, 10, 4], "float32"))',
        'torch.nn.ReplicationPad2d(1)(Tensor([3, 4, 5], "float32"))',
        'torch.nn.ZeroPad1d(tuple(1, 2))(Tensor([3, 4, 5], "float64"))',
        'torch.clamp_min(Tensor([5, 10], "float32"), Tensor([5, 10], "float32"))',
        'torch.expand_copy(Tensor([5, 1], "float32"), tuple(5, 5))',
        'torch.conj_physical(Tensor([5, 4], "float32"))',
        'torch.t_copy(Tensor([2, 3], "bfloat16"))',
        'torch.unsafe_split(Tensor([4, 3], "complex64"), 2)',
    ]
    found = fates(tmp_path, cases, "off_8_ulp")
    assert {api for api, _ in found} == {case.split("(")[0] for case in cases}
    assert {found[key] for key in found if key[1] == "usual"} == {"killed"}, found


@pytest.mark.slow
def test_opinfo_writes_a_corpus_whose_cases_pass(api, tmp_path):
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    if subprocess.run([python, "-c", "import expecttest"], check=False, capture_output=True).returncode:
        pytest.skip("expecttest is not there: make build")
    command = [ASSAY, "corpus", "opinfo", "--ops=^(addmm|gather|clamp|nn.functional.conv1d)$"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    cases = done.stdout.splitlines()
    assert f"{len(cases)} cases of torch" in done.stderr
    assert subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout == done.stdout
    for part in ("torch.addmm(", "torch.Tensor.addmm_(", "out=Tensor(", '"bfloat16"', '"complex64"', "int64"):
        assert any(part in case for case in cases), part
    _, listed = api(cases)
    passed, rejected = listed("pass").splitlines(), listed("rejected").splitlines()
    assert len(passed) + len(rejected) == len(cases)
    assert 0 < len(rejected) < len(cases) / 10  # OpInfo's error inputs


@pytest.mark.slow
def test_opinfo_leaves_out_tensors_that_no_case_can_have(api):
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    if subprocess.run([python, "-c", "import expecttest"], check=False, capture_output=True).returncode:
        pytest.skip("expecttest is not there: make build")
    command = [ASSAY, "corpus", "opinfo", "--ops=^(amax|complex|meshgrid)$", "--dtypes=float16,float32"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "amax: a tensor of more than 64 dimensions" in done.stderr
    assert "complex: a tensor of complex32" in done.stderr
    _, listed = api(done.stdout.splitlines(), code=None)
    assert not listed("invalid")
    again = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert again.stdout == done.stdout


# PyTorch wants the indices on the CPU; the result lies there, and its gradient must.
ON_TWO_DEVICES = [
    'torch.tensor_split(Tensor([6, 2], "float32"), Tensor([2], "int64"))',
    'torch.Tensor.to(Tensor([4], "float32"), "cpu")',
]


@pytest.fixture(scope="module")
def device_folder(tmp_path_factory):
    """Where PyTorch builds the device of examples/private_device, once."""
    return tmp_path_factory.mktemp("device")


@pytest.mark.slow
def test_a_device_of_another_module_is_tested_through_the_host(api, device_folder, tmp_path):
    beside = ROOT / "examples" / "private_device"
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(beside),
        "PRIVATE_DEVICE_BUILD": str(device_folder),
    }
    subprocess.run([python, "-c", "import private_device"], check=True, env=environment, capture_output=True)
    values = ", ".join(f'"{name}={environment[name]}"' for name in ("PYTHONPATH", "PRIVATE_DEVICE_BUILD"))
    lane = 'framework = "torch"\ndevice = "private:0"\nmodules = ["private_device"]\n'
    (tmp_path / "assay.toml").write_text(
        f"version = 1\n[lanes.right]\n{lane}environment = [{values}]\n"
        f"[lanes.late]\n{lane.replace('modules', 'modules_in_lane')}environment = [{values}]\n"
        f'[lanes.wrong]\n{lane}environment = [{values}, "PRIVATE_DEVICE_FAULT=1"]\n'
    )
    relu, resizing = (f'torch.{name}(Tensor([20], "float32"))' for name in ("relu", "abs"))
    cases = [case for case in PASSING if "ops.aten" not in case] + [relu, resizing, *ON_TWO_DEVICES]
    said, listed = api(cases, lane="right")
    assert "test lane on private:0" in said
    assert len(listed("pass").splitlines()) == len(cases)
    said, listed = api([relu], "--rerun", lane="late")  # registered in the lane alone
    assert listed("pass").strip() == relu, said
    said, listed = api(cases, "--rerun", lane="wrong", code=1)
    assert listed("mismatch").strip() == relu, said


def test_a_device_whose_module_is_missing(api):
    said, _ = api([PASSING[0]], lane="torch:npu:0", code=2)
    assert "has no device npu; this build has: cpu" in said
    said, _ = api([PASSING[0]], lane="torch:privateuseone:0", code=2)
    assert "rename_privateuse1_backend" in said


@pytest.mark.slow
def test_compilers_keep_their_results_where_no_other_user_gets_in(api, tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    planted = shared / f"torchinductor_{getpass.getuser()}"
    planted.mkdir(parents=True)
    planted.chmod(0o777)
    monkeypatch.setenv("TMPDIR", str(shared))
    api(['torch.exp(Tensor([3, 4], "float32"))'], "--values=usual", lane="torch:compile=inductor")
    assert not list(planted.iterdir())
    assert list(shared.iterdir()) == [planted]
