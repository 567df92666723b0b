"""`kuroshio ...` that also writes down when things happened, for gpu_run.py.

    python benchmarks/recorded_run.py moments.json climatology ... --json

The command runs as ever; as it leaves, a file gets the account's times of every stage and a few
moments besides, by perf_counter. On Linux all processes share that clock.
"""

from __future__ import annotations

import sys
from time import perf_counter

BEGUN_S = perf_counter()

import json  # noqa: E402


def main() -> None:
    to = sys.argv[1]
    sys.argv = ["kuroshio", *sys.argv[2:]]  # before it is imported, for it looks at its name
    from kuroshio import account, cli
    from kuroshio.archive import part

    moments = {"python": BEGUN_S}
    accounts: list[account.Account] = []
    rename, leave = part.rename, cli._leave

    class Account(account.Account):
        def __init__(self) -> None:
            moments["account"] = perf_counter()
            super().__init__()
            accounts.append(self)

    def renamed(*paths) -> None:
        rename(*paths)
        moments["renamed"] = perf_counter()

    def left() -> None:
        (made,) = accounts
        record = {
            "moments": moments,
            "intervals": {stage: list(times) for stage, times in made.busy.items()},
            "seconds": made.seconds,
            "nbytes": made.nbytes,
        }
        with open(to, "w", encoding="ascii") as file:
            json.dump(record, file)
        leave()

    account.Account, part.rename, cli._leave = Account, renamed, left  # type: ignore[misc]
    cli.main()


if __name__ == "__main__":
    main()
