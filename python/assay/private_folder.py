"""A folder for what lanes and their compilers write, which no other user can enter.

Inductor's default is a folder in /tmp with a name that everybody knows. Another user could make it first, and
put code into it that this user's lanes run.
"""

import os
import tempfile

# Where compilers keep their results, unless the user says so.
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH")


def make_private_folder() -> str:
    """Makes the folder (mode 0700, a name that nobody can guess), names it in the environment of this process
    and of its lanes, and returns it. The caller removes it."""
    folder = tempfile.tempdir = tempfile.mkdtemp(prefix="assay-lanes-")
    os.environ["TMPDIR"] = folder
    for name in CACHES:
        os.environ.setdefault(name, os.path.join(folder, name.lower()))
    return folder
