"""What `assay submit kubernetes` prints, against the schema that Kubernetes publishes for its API.

The package kubernetes-validate brings that schema (OpenAPI of the release, as JSON Schema). It knows
fields and types, but no values of enumerations: those are compared here with the API's documentation.
"""

import json
import pathlib
import subprocess

import pytest

ASSAY = pathlib.Path(__file__).resolve().parents[2] / "build" / "release" / "bin" / "assay"


def manifest(*flags):
    if not ASSAY.exists():
        pytest.skip("assay is not there: make build")
    command = [ASSAY, "submit", "kubernetes", "--dry-run", "--workers=3", "--image=registry/assay:1"]
    command += ["--store=postgresql://assay@db/runs", *flags]
    return json.loads(subprocess.check_output(command, text=True))


@pytest.mark.parametrize(
    "flags", [(), ("--gpus=0",), ("--secret=assay-db", "--name=night", "--", "--num_workers_per_gpu=2")]
)
def test_manifest_is_what_the_api_takes(flags):
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    job = manifest(*flags)
    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
    assert job["spec"]["completionMode"] in ("NonIndexed", "Indexed")
    # A Job's pods may not have the default, Always.
    assert job["spec"]["template"]["spec"]["restartPolicy"] in ("OnFailure", "Never")
    mounts = {mount["name"] for mount in job["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]}
    assert mounts == {volume["name"] for volume in job["spec"]["template"]["spec"]["volumes"]}


def test_schema_would_notice_a_wrong_field():
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    job = manifest()
    job["spec"]["completion"] = job["spec"].pop("completions")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
