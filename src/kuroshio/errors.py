"""The one exception that means: the request cannot be served, and here is what to do.

The command line prints it as a paragraph and exits with status 2. Any other exception is a
defect of ours (or of the machine) and keeps its traceback.
"""


class Refusal(ValueError):
    """What came, what is allowed, what to do; written for a tired scientist.

    `log` is what another program said of it, such as a compiler: lines, shown below the paragraph.
    """

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(f"{message}\n{log}" if log else message)
        self.message, self.log = message, log
