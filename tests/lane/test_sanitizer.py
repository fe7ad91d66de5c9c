"""What a lane reads out of compute-sanitizer's log."""

import pytest
from assay.sanitizer import Sanitizer, in_one_line

# As compute-sanitizer 2025.3 wrote them.
BEGIN = "========= COMPUTE-SANITIZER\n"
UNSET = """\
========= Uninitialized __global__ memory read of size 4 bytes
=========     at read_unset(const float *, float *)+0x60 in planted.cu:8
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7fb264800400
========= \n"""
RACE = """\
========= Error: Race reported between Write access at race(int *)+0x60 in planted.cu:5
=========     and Write access at race(int *)+0x60 in planted.cu:5 [63 hazards]
=========     and Read access at race(int *)+0x80 in planted.cu:6 [4 hazards]
========= \n"""
FAILED_CALL = """\
========= Program hit cudaErrorInvalidValue (error 1) due to "invalid argument" on CUDA API call.
=========     Saved host backtrace up to driver entry point at error
=========         Host Frame: planted_bad_call [0x8b9a] in planted.so
========= \n"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (BEGIN, ""),
        (FAILED_CALL + "========= ERROR SUMMARY: 1 error\n", ""),
        (
            BEGIN + RACE,
            "Error: Race reported between Write access at race(int *)+0x60 in planted.cu:5; "
            "and Write access at race(int *)+0x60 in planted.cu:5 [63 hazards]; "
            "and Read access at race(int *)+0x80 in planted.cu:6 [4 hazards]",
        ),
        (
            FAILED_CALL + UNSET * 32,
            "Uninitialized __global__ memory read of size 4 bytes; "
            "at read_unset(const float *, float *)+0x60 in planted.cu:8; "
            "by thread (0,0,0) in block (0,0,0); Address 0x7fb264800400 (and 31 more reports)",
        ),
    ],
)
def test_a_report_becomes_a_line(text, line):
    assert in_one_line(text) == line


class Device:
    """Waits, and lets something be written meanwhile."""

    def __init__(self, log):
        self.log = log
        self.says = []
        self.waits = 0

    def wait(self):
        self.waits += 1
        for text in self.says:
            with open(self.log, "a") as file:
                file.write(text)
        self.says = []


def test_each_case_has_what_was_written_while_it_ran(tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv("ASSAY_SANITIZER_LOG", str(log))
    device = Device(log)
    lane = Sanitizer(device)
    found = []
    for says in ([BEGIN], [], [RACE], [], [UNSET, FAILED_CALL]):
        device.says = says
        lane.begin()
        found.append(lane.found()[:12])
    assert found == ["", "", "Error: Race ", "", "Uninitialize"]


def test_a_lane_that_is_not_looked_at_waits_for_nothing(monkeypatch):
    monkeypatch.delenv("ASSAY_SANITIZER_LOG", raising=False)
    device = Device("")
    lane = Sanitizer(device)
    lane.begin()
    assert lane.found() == "" and device.waits == 0
