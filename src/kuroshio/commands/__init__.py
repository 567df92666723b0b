"""What each command does: takes its arguments, calls the library and says what came of it.

A module a command, with SUMMARY, EXAMPLES, `add_arguments(parser)` and `run(arguments)`, and USAGE
where there are many options. Help must appear at once: what is heavy is imported in `run`.
"""

COMMANDS = {
    name: name
    for name in ("climatology", "plan", "info", "plot", "moments", "accuracy", "synth", "ladder")
}
