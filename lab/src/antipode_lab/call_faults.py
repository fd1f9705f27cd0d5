"""The library that fails the n-th call of a function in a process that preloads it (how it is told: `call_faults.c`).

`python -m antipode_lab.call_faults` prints where it is, for the tests of other languages.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

from antipode_lab.cache import cache_folder, made_once
from antipode_lab.errors import InstallError

_SOURCE: Final = Path(__file__).with_suffix(".c")
PREFIX: Final = "/antipode-faults:"
"""Of the paths by which a process speaks to the library; the answer is three numbers."""


def library() -> Path:
    """Return the built library, for `LD_PRELOAD`; build it unless it is in the cache.

    Raises:
        InstallError: without a C compiler, or if the build fails.
    """
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:12]
    return made_once(cache_folder() / f"call-faults-{digest}.so", _build)


def _build(folder: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        raise InstallError("failing the calls of a process needs a C compiler: there is no `cc` on the PATH")
    made = folder / "call-faults.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-o", str(made), str(_SOURCE), "-ldl"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"building {_SOURCE.name} failed:\n{done.stderr[-2000:]}")
    return made


if __name__ == "__main__":
    print(library())
