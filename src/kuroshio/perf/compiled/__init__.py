"""What compilers say of kernels, read from the files that they leave: one module a format.

Each module has `kernels(...)`, which gives what every kernel takes. What cannot be read raises
ValueError: what is the matter with it. `files.read` finds a file's kind by its content and tells
the user.
"""
