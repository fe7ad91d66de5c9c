"""Wrong command lines: each ends with exit code 2 and one line that helps, before any case runs."""

import shlex
import subprocess

import pytest
from tree import ASSAY

pytestmark = pytest.mark.skipif(not ASSAY.exists(), reason="build the target assay")

FILES = {
    "cases.txt": 'paddle.abs(Tensor([2], "float32"))\n',
    "framwork.toml": 'version = 1\n[lanes.a]\nframwork = "torch"\n',
    "verson.toml": "verson = 1\n",
    "newer.toml": "version = 2\n",
    "caffe.toml": 'version = 1\n[lanes.a]\nframework = "caffe"\n',
    "environment.toml": 'version = 1\n[frameworks.torch]\nenvironment = ["NAME"]\n',
    "keep.toml": "version = 1\nkeep_frameworks = -1\n",
    "list.toml": "version = 1\napis = 3\n",
    "broken.toml": "version = \n",
    "thresholds.yaml": "manual_threshold_config:\n  paddle.abs: [1]\n",
    "binary.txt": "\0\1\2",
}

# The words behind `assay`, and what the line says.
WRONG = """
ap cases.txt                                        | unknown verb 'ap'; did you mean 'api'?
repotr out                                          | did you mean 'report'?
--accuracy=True                                     | `assay api --accuracy`
--log_dir=out                                       | is a flag of a verb
api                                                 | nothing to run: name files of cases
api --api_config=                                   | --api_config: 1 required
api none.txt                                        | none.txt
api 'none*.txt'                                     | none*.txt
api cases.txt none.txt                              | none.txt
api cases.txt::ffff                                 | cases.txt has no case with the id ffff
api none.txt::00                                    | none.txt
api binary.txt                                      | binary.txt
api --api_config_file=none.txt                      | none.txt
api --api_config_file_pattern='none/*.txt'          | none/*.txt
api --api_config='abs(1)'                           | column 1: expected an API name of two parts
api --api_config='paddle.abs(Tensor([2], "float32")'| --api_config, column
api --api_config='paddle.abs(Tensor([2], "fp32"))'  | did you mean 'float32'?
api --api_config='paddle.abs(Tensor([2], "bf16"))'  | did you mean 'bfloat16'?
api --api_config='paddle.abs(Tensor([2], "flaot32"))' | did you mean 'float32'?
api --api_config='paddle.abs(Tensor([2], float32))' | expected a dtype in quotes
api --api_config='paddle.abs(Tensor([2]))'          | column
api --api_config='paddle.abs(Tenser([2], "int8"))'  | did you mean 'Tensor'?
api --api_config='paddle.abs(x=1, 2)'               | no positional argument can follow
api --api_config='paddle.abs(x=1, x=2)'             | the keyword 'x' is given twice
api --api_config='paddle.abs(slice(1))'             | a slice has three values
api --api_config='paddle.abs(torch.float31)'        | unknown name 'torch.float31'
api --api_config='jax.numpy.abs(1)'                 | assay tests no jax
api --api_config='tensorflow.abs(1)'                | assay tests no tensorflow
api cases.txt --test-lane=paddel                    | did you mean 'paddle'?
api cases.txt --test-lane=torch:compil              | did you mean 'compile'?
api cases.txt --reference-lane=tocrh                | did you mean 'torch'?
api cases.txt --reference-lane=torch:egaer          | did you mean 'eager'?
api cases.txt --settings=none.toml                  | none.toml
api cases.txt --settings=framwork.toml              | framwork
api cases.txt --settings=verson.toml                | version = 1 is wanted, not verson
api cases.txt --settings=newer.toml                 | newer.toml
api cases.txt --settings=caffe.toml                 | no framework is called caffe
api cases.txt --settings=environment.toml           | environment takes NAME=VALUE, not NAME
api cases.txt --settings=keep.toml                  | keep_frameworks takes seconds
api cases.txt --settings=list.toml                  | apis
api cases.txt --settings=broken.toml                | broken.toml
api cases.txt --apis=none                           | none is no folder
api cases.txt --timeout=10x                         | a number with s, min or h, not 10x
api cases.txt --timeout=soon                        | a number with s, min or h, not soon
api cases.txt --timeout=-1                          | --timeout takes seconds
api cases.txt --timeout=9999h                       | at most a year
api cases.txt --timeout=nan                         | --timeout takes seconds
api cases.txt --hang_timeout=0                      | --hang_timeout takes seconds, 1 to 86400
api cases.txt --hang_timeout=2d                     | not 2d
api cases.txt --keep_frameworks=-5                  | --keep_frameworks takes seconds
api cases.txt --keep_frameworks=forever             | not forever
api cases.txt -n two                                | --num_workers_per_gpu
api cases.txt --num_workers_per_gpu=two             | --num_workers_per_gpu
api cases.txt -n 0                                  | takes a number of at least 1
api cases.txt --num_gpus=-2                         | --num_gpus takes a number
api cases.txt --gpu_ids=a                           | gpu_ids
api cases.txt --required_memory=-1                  | --required_memory takes GiB
api cases.txt --required_memory=1e9 --num_gpus=0    | give a smaller number
api cases.txt --seed=x                              | takes a whole number
api cases.txt --random_seed=-1                      | takes a whole number
api cases.txt --seed=1.5                            | takes a whole number
api cases.txt --max-failures=-1                     | takes a whole number
api cases.txt --max-failures=few                    | takes a whole number
api cases.txt --durations=all                       | takes a whole number
api cases.txt --atol=-1                             | --atol takes a finite number
api cases.txt --rtol=inf                            | --rtol takes a finite number
api cases.txt --atol=tiny                           | --atol
api cases.txt --tolerance=engineV3                  | did you mean 'engineV2'?
api cases.txt --tolerance=engineV2 --atol=0         | leave out --atol and --rtol
api cases.txt --bitwise_alignment=True --rtol=1     | leave out --atol and --rtol
api cases.txt --manual_threshold_config_file=none   | none
api cases.txt --manual_threshold_config_file=thresholds.yaml | thresholds.yaml
api cases.txt --values=usul                         | did you mean 'usual'?
api cases.txt --values=usual,wid                    | did you mean 'wide'?
api cases.txt --speed_margin=-1                     | --speed_margin takes a share
api cases.txt --timing_seconds=-1                   | --timing_seconds takes seconds
api cases.txt --accuracy=True --paddle_only=True    | are both modes
api cases.txt --acuracy=True                        | did you mean '--accuracy'?
api cases.txt --accuracy=maybe                      | takes True or False, not maybe
api cases.txt --quiet=2                             | takes True or False, not 2
api cases.txt --fail-on=nw                          | did you mean 'new'?
api cases.txt --fail-on=new                         | name with --against
api cases.txt --against=                            | --against: 1 required
api cases.txt --against=nothing                     | nothing does not exist
api cases.txt --allow=selfonly                      | did you mean 'self_only'?
api cases.txt --junit=                              | --junit: 1 required
api cases.txt --markdown=                           | --markdown: 1 required
api cases.txt -k 'a and'                            | -k, column 6
api cases.txt -k '(a'                               | -k, column
api cases.txt --apis-from=none.diff                 | none.diff
api cases.txt --shard=3/2                           | write PART/PARTS
api cases.txt --shard=1/2 --store=postgresql://x    | exclude each other
api --api_config='paddle.abs(1)' --shard=1/2        | --shard needs a corpus
api cases.txt --costs-from=nothing                  | nothing
api --retest=crash                                  | name it with --log_dir
api --retest=crash --log_dir=nolog                  | nolog holds none
api --retest=crash --log_dir=nolog                  | nolog holds none
api --rerun                                         | --rerun needs an earlier run
api --last-failed                                   | assay-runs/ has no run
api cases.txt --dump_dir=d                          | --dump_dir needs --use_dump
api cases.txt --use_dump=True                       | give it with --api_config
api cases.txt --store=mysql://x                     | postgresql://
api cases.txt --custom_device_vs_gpu=True --custom_device_vs_gpu_mode=upload | `assay record --log_dir=GOLD`
api cases.txt --accuracy_manual_file=x              | of engineV4
api cases.txt --use_compute_sanitizer=memchek       | memcheck
report                                              | DIR is required
report nolog                                        | nolog
report nolog --format=yaml                          | takes one of text, json
repro nolog abs                                     | nolog
show nolog abs                                      | nolog
finding nolog 1                                     | nolog
merge out nolog                                     | nolog
shrink nolog                                        | nolog
mutate --api_config_file=cases.txt --judge=none.toml | --judge: cannot read none.toml
corpus check none.txt                               | none.txt
record cases.txt                                    | needs --log_dir=GOLD
runs list                                           | assay-runs holds no folder with a run.db
runs prune nights                                   | --keep is required
runs prune nights --keep=0                          | --keep
serve nolog                                         | there is no run in nolog
chain report none.db                                | none.db does not exist
"""

LINES = [tuple(part.strip() for part in line.split("|", 1)) for line in WRONG.strip().splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("wrong")
    for name, text in FILES.items():
        (place / name).write_text(text)
    return place


@pytest.mark.parametrize("words, says", LINES, ids=[words for words, _ in LINES])
def test_a_wrong_command_line_is_a_usage_error(folder, words, says):
    done = subprocess.run(
        [ASSAY, *shlex.split(words)], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2, done.stdout + done.stderr
    [line] = done.stderr.splitlines()
    assert line.startswith("assay: ") and says in line
    assert not (folder / "assay-runs").exists() and not (folder / "nolog").exists()


def test_there_are_a_hundred_of_them():
    assert len(LINES) >= 100


def test_a_case_may_be_copied_from_several_lines(folder):
    config = '--api_config=paddle.abs(Tensor([2],\n      "fp32"))'
    done = subprocess.run([ASSAY, "api", config], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "did you mean 'float32'?" in done.stderr
