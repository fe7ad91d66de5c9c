"""References of operators without a kernel on a CPU, in PyTorch's Python."""

import pathlib

from engine import passes_in_torch, run

HERE = pathlib.Path(__file__).parent
OWN_LANE = "version = 1\n[lanes.ref]\nframework = 'torch'\nreference_functions = true\n"


def test_references_of_operators_obey_their_definitions():
    passes_in_torch(HERE / "kernel_checks.py")


def test_their_value_rules_make_inputs_that_they_accept(tmp_path):
    """Both lanes run the reference, because no CPU has the kernel."""
    (tmp_path / "assay.toml").write_text(OWN_LANE)
    found = run(tmp_path, HERE / "kernels.txt", "--test-lane=ref", "--allow=self_only")
    assert set(found.values()) == {"self_only"} and len(found) > 25


def test_paddle_says_that_it_has_no_kernel(tmp_path):
    found = run(tmp_path, HERE / "kernels.txt", "--values=usual", "--fail-on=none")
    with_kernel = {case.split("(")[0] for case, outcome in found.items() if outcome != "no_kernel"}
    assert with_kernel <= {"paddle.nn.functional.flash_attn_qkvpacked"}, found
