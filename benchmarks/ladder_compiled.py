"""Make src/kuroshio/ladder/compiled.json: what compilers make of the ladder's kernels.

    python benchmarks/ladder_compiled.py

No device is needed, but hipcc and NVRTC of CUDA 12; the tests have the functions that call them.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from kuroshio.ladder.compiled import FILE, TEXTS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import ladder_compiling


def main() -> None:
    kept = ladder_compiling.KEPT
    versions = {name: ladder_compiling.version(name) for name in dict(kept)}
    rows = [
        json.dumps(asdict(row))
        for name in TEXTS
        for compiler, arch in kept
        for row in ladder_compiling.rows(name, compiler, arch)
    ]
    lines = ",\n".join(rows)  # a kernel a line, so that changes can be read
    FILE.write_text(
        f'{{"compilers": {json.dumps(versions)},\n"kernels": [\n{lines}\n]}}\n', encoding="utf-8"
    )


if __name__ == "__main__":
    main()
