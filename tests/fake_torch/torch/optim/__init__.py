from .optimizer import Optimizer as SGD  # noqa: F401
