"""`assay kernel`: functions of one's own with and without a reference."""

import pathlib
import re
import subprocess

import pytest
from tree import ASSAY, ROOT

HERE = pathlib.Path(__file__).resolve().parent
CHEATS = HERE / "kernel_cheats.py"
INPUTS = '(Tensor([64, 100], "float32"), Tensor([100], "float32"))'
SUBTLE = HERE / "subtle_kernels.py"
INPUTS_OF = {
    "softmax": '(Tensor([8, 64], "float32"), scale=0.5)',
    "rows": '(Tensor([8, 256], "bfloat16"))',
    "biased": '(Tensor([8, 64], "float32"), Tensor([64], "float32"))',
    "norm": '(Tensor([16, 64], "float32"))',
    "product": '(Tensor([16, 16], "complex64"), Tensor([16, 16], "complex64"))',
    "whole": '(Tensor([16, 16], "int32"), Tensor([16, 16], "int32"))',
    "sums": '(Tensor([16, 64], "float32"))',
}
# What only a reference can tell.
NEEDS_REFERENCE = {"wrong_formula", "first_row_for_all", "disables_the_checks"}


def cheats():
    names = [line[4:].partition("(")[0] for line in CHEATS.open() if line.startswith("def ")]
    gradients = "half_gradient", "missing_gradient", "gradient_of_ones"
    return [*(name for name in names if name != "right"), *gradients]


@pytest.fixture(name="kernel")
def fixture_kernel(tmp_path):
    """A function that judges a kernel in an empty folder, and returns (exit code, output)."""
    if not ASSAY.exists() or not (ROOT / ".venv" / "torch").exists():
        pytest.skip("PyTorch or assay is not there: make build")

    def kernel(function, *flags, inputs=INPUTS):
        command = [ASSAY, "kernel", function, "-n", "1", *flags]
        command += [f"--api_config={inputs}"] if inputs else []
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return kernel


def own(name):
    return f"{HERE / 'own_kernels.py'}:{name}"


def cheat(name):
    return f"{CHEATS}:{name}"


def test_a_right_kernel_passes_with_other_shapes_and_every_value_regime(kernel):
    inputs = '(Tensor([8, 64], "bfloat16"), Tensor([64], "bfloat16"), 1e-6)'
    code, output = kernel(own("rms_norm"), f"--reference={own('rms_norm_reference')}", inputs=inputs)
    assert code == 0 and "passes: none of 6 cases failed" in output, output


def test_without_a_reference_a_right_kernel_is_not_judged(kernel):
    code, output = kernel(cheat("right"), "--no-larger-shapes")
    assert code == 4 and "1 case compared only with itself" in output, output
    assert kernel(cheat("right"), "--no-larger-shapes", "--values=usual", "--allow=self_only")[0] == 0


@pytest.mark.parametrize("name", ["zeros", "cached_by_address", "half_gradient"])
def test_some_cheats_are_found_without_a_reference(kernel, name):
    code, output = kernel(cheat(name), "--no-larger-shapes")
    assert code == 1 and "KernelFault: its " in output, output


@pytest.mark.slow
@pytest.mark.parametrize("name", cheats())
def test_each_cheat_is_found_with_a_reference(kernel, name):
    flags = ("--gradients",) if name == "no_gradient" else ()
    code, output = kernel(cheat(name), f"--reference={cheat('right')}", *flags)
    assert code == 1, output


@pytest.mark.slow
@pytest.mark.parametrize("name", cheats())
def test_nearly_each_cheat_is_found_without_one(kernel, name):
    flags = ("--gradients",) if name == "no_gradient" else ()
    code, output = kernel(cheat(name), *flags)
    assert code == (4 if name in NEEDS_REFERENCE else 1), output


def subtle(quick):
    names = re.findall(r"^(?:def )?([a-z]\w*)(?:\(.*\):| = \w+\.apply)$", SUBTLE.read_text(), re.M)
    fast = "rows_in_bfloat16", "biased_along_the_rows_of_a_square"
    return [name for name in names if (name in fast) == quick]


def twin_is_found(kernel, name):
    right = name.partition("_")[0]
    code, output = kernel(f"{SUBTLE}:{name}", f"--reference={SUBTLE}:{right}", inputs=INPUTS_OF[right])
    assert code == (0 if name == right else 1), output


@pytest.mark.parametrize("name", subtle(True))
def test_some_twins_that_are_wrong_in_one_respect_are_found(kernel, name):
    twin_is_found(kernel, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", subtle(False))
def test_a_twin_that_is_wrong_in_one_respect_is_found(kernel, name):
    twin_is_found(kernel, name)


@pytest.mark.slow
def test_complex_numbers_need_no_reference(kernel):
    assert kernel(f"{SUBTLE}:product", inputs=INPUTS_OF["product"])[0] == 4


@pytest.mark.parametrize("name", ["raises", "exits"])
def test_a_kernel_that_raises_is_wrong_without_a_reference_too(kernel, name):
    code, output = kernel(own(name), "--no-larger-shapes", inputs='(Tensor([2], "float32"))')
    assert code == 1 and ("ValueError: only square" in output or "SystemExit" in output), output


def test_a_kernel_without_float64_is_compared_with_itself_as_it_is(kernel):
    inputs = '(Tensor([8, 4], "float32"))'
    code, output = kernel(own("float32_only"), "--no-larger-shapes", "--values=usual", inputs=inputs)
    assert code == 4 and "1 case compared only with" in output, output


def test_a_module_has_its_parameters_filled(kernel):
    inputs = '(32)(Tensor([8, 32], "float32"))'
    flags = f"--reference={own('NormReference')}", "--no-larger-shapes"
    assert kernel(own("Norm"), *flags, inputs=inputs)[0] == 0
    code, output = kernel(own("WrongNorm"), *flags, inputs=inputs)
    assert code == 1 and "elements differ" in output, output


@pytest.mark.slow
def test_a_kernel_in_place_is_compared_by_what_it_changes(kernel):
    inputs = '(Tensor([8, 32], "float32"), Tensor([3], "float32"))'
    flags = (f"--reference={own('add_one_reference')}", "--changes=x")
    assert kernel(own("add_one_"), *flags, inputs=inputs)[0] == 0
    assert kernel(own("add_one_and_return_"), *flags, inputs=inputs)[0] == 0
    code, output = kernel(own("adds_twice_"), *flags, inputs=inputs)
    assert code == 1 and "x afterwards" in output, output
    code, output = kernel(own("add_one_"), inputs=inputs)
    assert code == 2 and "returns nothing: --changes=PARAMETER" in output, output


def test_value_rules_make_valid_indices(kernel):
    inputs = '(Tensor([10, 8], "float32"), Tensor([64], "int64"))'
    flags = (f"--reference={own('lookup')}", "--no-larger-shapes")
    code, output = kernel(own("lookup"), *flags, "--rules=index=integers(0, 10)", inputs=inputs)
    assert code == 0, output


@pytest.mark.slow
def test_what_a_kernel_refuses_of_the_added_is_no_fault(kernel):
    inputs = '(Tensor([8, 32], "float32"))'
    code, output = kernel(own("only_multiples_of_32"), f"--reference={own('twice')}", inputs=inputs)
    assert code == 0 and "skip" in output, output
    inputs = '(Tensor([8, 31], "float32"))'
    code, output = kernel(own("only_multiples_of_32"), f"--reference={own('twice')}", inputs=inputs)
    assert code == 1 and "AssertionError" in output, output


@pytest.mark.slow
def test_a_kernel_without_gradient_is_judged_by_its_results(kernel):
    inputs = '(Tensor([8, 32], "float32"))'
    flags = (f"--reference={own('twice')}", "--no-larger-shapes")
    code, output = kernel(own("forward_only"), *flags, inputs=inputs)
    assert code == 0 and "the kernel has no gradient: only its results are judged" in output, output
    assert kernel(own("forward_only"), *flags, "--gradients", inputs=inputs)[0] == 1


@pytest.mark.parametrize(
    ("function", "flags", "inputs", "told"),
    [
        ("nofile.py:f", (), INPUTS, "there is no file nofile.py"),
        ("nofile.py", (), INPUTS, "takes FILE.py:NAME, not nofile.py"),
        (own("rms_nrm"), (), INPUTS, "has no function rms_nrm; did you mean rms_norm?"),
        (own("rms_norm"), (f"--reference={own('none')}",), INPUTS, "has no function none"),
        (own("twice"), (f"--reference={own('raises')}",), '(Tensor([2], "int8"))', "the reference raises"),
        (
            own("Wider"),
            (f"--reference={own('Norm')}",),
            '(8)(Tensor([2, 8], "float32"))',
            "differ: weight [9] and",
        ),
        (own("text"), (), '(Tensor([2], "int8"))', "the kernel returns no tensor but str"),
        (own("twice"), (f"--reference={own('text')}",), '(Tensor([2], "int8"))', "the reference returns no"),
        (own("rms_norm"), (), '(Tensor([2], "float32"))', "missing a required argument: 'weight'"),
        (own("rms_norm"), (), 'Tensor([2], "float32")', "inputs are written as (…)"),
        (own("rms_norm"), (), '(Tensor([2], "float3"))', "did you mean 'float32'?"),
        (own("rms_norm"), (), "", "no inputs: give --api_config"),
        (own("Norm"), (), '(Tensor([2], "float32"))', "is a class"),
        (own("rms_norm"), ("--changes=z",), INPUTS, "no parameter z; it has x, weight, eps"),
        (own("rms_norm"), ("--rules=x=int(3)",), INPUTS, "is no value rule"),
        (own("rms_norm"), ("--speed",), INPUTS, "--speed times the kernel beside --reference"),
        (f"{HERE / 'engine.txt'}:f", (), INPUTS, "there is no file"),
    ],
)
def test_wrong_input_is_refused(kernel, function, flags, inputs, told):
    code, output = kernel(function, *flags, inputs=inputs)
    assert code == 2 and told in output, output


@pytest.mark.slow
def test_speed_is_measured_beside_the_reference(kernel, tmp_path):
    inputs = '(Tensor([8, 32], "float32"))'
    flags = (f"--reference={own('twice')}", "--no-larger-shapes", "--values=usual", "--speed")
    code, output = kernel(own("forward_only"), *flags, "--timing_seconds=1", "--log_dir=run", inputs=inputs)
    assert code == 0 and "speed, beside the reference" in output, output
    assert "forward host warm" in (tmp_path / "run" / "speed" / "performance.csv").read_text()


@pytest.mark.slow
def test_the_script_of_a_finding_imports_the_kernel(kernel, tmp_path):
    flags = (f"--reference={cheat('right')}", "--log_dir=run", "--no-larger-shapes")
    inputs = '(Tensor([2, 3], "float32"), Tensor([3], "float32"))'
    code, output = kernel(cheat("wrong_formula"), *flags, inputs=inputs)
    assert code == 1, output
    text = subprocess.check_output(
        [ASSAY, "finding", "run", "1", "--script=shown.py"], cwd=tmp_path, text=True
    )
    assert "from kernel_cheats import wrong_formula" in text
    python = ROOT / ".venv" / "torch" / "bin" / "python"
    done = subprocess.run([python, tmp_path / "shown.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "got " in done.stdout, done.stdout + done.stderr


def test_a_corpus_cannot_name_code(kernel, tmp_path):
    (tmp_path / "cases.txt").write_text(f"torch.kernel.right{INPUTS}\n")
    command = [ASSAY, "api", "cases.txt", "--log_dir=run"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "a case may call functions of tensors" in done.stdout, done.stdout
