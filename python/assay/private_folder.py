"""A folder for what lanes and their compilers write, which no other user can enter.

Inductor's default is a folder in /tmp with a name that everybody knows. Another user could make it first, and
put code into it that this user's lanes run. The supervisor makes the folder and removes it at the end
(src/base/private_folder.h); the fork server removes it if the supervisor is gone.
"""

import os
import tempfile

VARIABLE = "ASSAY_LANE_FOLDER"
# Where compilers keep their results, unless the user says so.
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")


def use_private_folder() -> str:
    """Names the folder in the environment of this process and of its lanes, and returns it."""
    folder = os.environ.get(VARIABLE, "")
    if folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        for name in CACHES:
            os.environ.setdefault(name, os.path.join(folder, name.lower()))
    return folder
