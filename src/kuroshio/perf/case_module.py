"""Modules that hold cases: imported by name or from a file, and kept apart from each other."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

from ..errors import Refusal
from .raised import said, traceback_of

_CASES = "__kuroshio_perf_cases__"  # of a module that was asked for, not of what it imports
_folders: list[Path] = []  # from which cases were taken in this process


def split(where: str) -> tuple[str, str]:
    """'module:function' or 'folder/file.py:function' in two; the second may be empty."""
    place, colon, name = where.rpartition(":")
    # A drive's colon, C:\\work\\sums.py, is none of ours.
    return (place, name) if colon and not re.search(r"[\\/]", name) else (where, "")


def module_of(place: str) -> ModuleType:
    """The module of that name, here or installed, or of that file; a Refusal where it cannot be."""
    is_file = place.endswith(".py")
    if is_file and not Path(place).is_file():
        raise Refusal(f"There is no file {place}. Give module:function or file.py:function.")
    if not is_file and not re.fullmatch(r"\w+(\.\w+)*", place):
        raise Refusal(
            f"{place!r} names no case. Give module:function, folder/file.py:function, or a module "
            "whose cases are marked with @perf.case."
        )
    folder = Path(place).resolve().parent if is_file else Path.cwd()
    name = _free_name(Path(place).resolve()) if is_file else place
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = _of_file(place, name) if is_file else importlib.import_module(name)
    except ModuleNotFoundError as problem:
        if not is_file and problem.name and f"{place}.".startswith(f"{problem.name}."):
            raise Refusal(
                f"There is no module {problem.name}, here or among what is installed. Run in the "
                "folder that holds it, or give the file: folder/file.py:function."
            ) from problem
        raise _broken(place, problem) from problem
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        raise _broken(place, problem) from problem
    if not is_file:
        _check_is_here(place.partition(".")[0], folder)
    if _is_in(module, folder):
        vars(module)[_CASES] = True
    if folder not in _folders:
        _folders.append(folder)
    check_apart()
    return module


def check_apart() -> None:
    """A Refusal where cases of two folders import modules of the same name.

    A process has one module of a name: the second case, and what the first imports late, would get
    the other's code, and a comparison would be of the same code.
    """
    for name, module in list(sys.modules.items()):
        if "." in name or not (file := getattr(module, "__file__", None)):
            continue
        path = Path(file)
        home = path.parent.parent if path.name == "__init__.py" else path.parent
        if home not in _folders or getattr(module, _CASES, False):
            continue
        for other in _folders:
            if other != home and _holds(other, name):
                raise Refusal(
                    f"Both {home} and {other} have a module {name}, and one process can hold but "
                    "one of a name: both cases would run the same code. Time them apart (-o "
                    "before.json in the one, --vs before.json in the other), time commands "
                    "(--command), or rename one."
                )


def _holds(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or (folder / name / "__init__.py").is_file()


def _free_name(path: Path) -> str:
    """The file's own name, or another where that would hide a module of that name: json.py."""
    name = path.stem
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module without a specification, such as __main__
        return f"{name}_of_cases"
    ours = spec is None or spec.origin == str(path) or hasattr(sys.modules.get(name), _CASES)
    return name if ours else f"{name}_of_cases"


def _of_file(place: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pickles and dataclasses look there
    spec.loader.exec_module(module)
    return module


def _check_is_here(name: str, folder: Path) -> None:
    """Of two modules of a name, the one in this folder is meant, and may not be what came."""
    module = sys.modules[name]
    if _holds(folder, name) and not _is_in(module, folder):
        raise Refusal(
            f"There is a module {name} in this folder, but another of that name "
            f"({getattr(module, '__file__', 'built in')}) was loaded before. Give the file: "
            f"{name}.py:function."
        )


def _is_in(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return bool(file) and folder in Path(str(file)).resolve().parents


def _broken(place: str, problem: BaseException) -> Refusal:
    return Refusal(
        f"{place} could not be imported: {type(problem).__name__}: {said(problem)}. Correct it; "
        "nothing was timed.",
        traceback_of(problem),
    )
