"""The same bits on every x86-64 computer: which instructions BLAS and NumPy use, chosen before
NumPy is imported.

OpenBLAS takes the widest kernel that a CPU has, and NumPy the widest instructions. Each adds in
another order, a last bit differs, and a few rounds later a seed is another play. The portable
arithmetic holds both to x86-64-v3 (AVX2 and FMA), which nearly every x86-64 computer since 2015
has. A machine that cannot do so plays natively; its cells say so.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from cbobench.errors import unknown

CHOICE = "CBOBENCH_ARITHMETIC"  # the variable that carries the choice to workers
CHOICES = ("portable", "native")
PORTABLE = "x86-64-v3"
NEEDED = frozenset({"avx2", "fma"})
KERNEL = "OPENBLAS_CORETYPE"
DISABLED = "NPY_DISABLE_CPU_FEATURES"
ENABLED = "NPY_ENABLE_CPU_FEATURES"
CORE = "Haswell"  # OpenBLAS's kernel for these instructions
# Of the libraries of other methods: MKL, PyTorch and oneDNN.
OTHERS = {"MKL_CBWR": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "DNNL_MAX_CPU_ISA": "AVX2"}
# What NumPy's own builds may use beyond x86-64-v3, by the names that a version knows; unknown ones
# disable nothing.
BEYOND = ("X86_V4", "AVX512_ICL", "AVX512_SPR")
BEYOND_FROM = [2, 4]
BEYOND_BEFORE = (
    "AVX512F",
    "AVX512CD",
    "AVX512_KNL",
    "AVX512_KNM",
    "AVX512_SKX",
    "AVX512_CLX",
    "AVX512_CNL",
    "AVX512_ICL",
)

_before: dict[str, str | None] = {}  # what the variables were that this process has changed
_too_late = False  # whether NumPy was imported before this module could choose


def requested_arithmetic() -> str:
    """Return the choice for this process, "portable" or "native".

    Raises:
        Misuse: the environment names another one.
    """
    choice = os.environ.get(CHOICE) or "portable"
    if choice not in CHOICES:
        raise unknown(f"arithmetic in {CHOICE}", choice, CHOICES)
    return choice


def set_arithmetic(choice: str | None = None) -> None:
    """Choose the arithmetic of this process, as far as NumPy is not yet imported, and of the
    processes it starts.

    Args:
        choice: "portable" or "native"; None: what the environment says, else portable.
    """
    global _too_late
    if choice is not None:
        os.environ[CHOICE] = choice
    variables: Mapping[str, str | None] = {}
    if os.environ.get(CHOICE) == "native":
        variables = dict(_before)
    elif not reason_against():
        variables = portable_variables(_cpu_flags(), _numpy_version(), os.environ)
    changes = {name: value for name, value in variables.items() if os.environ.get(name) != value}
    _too_late |= bool(changes) and "numpy" in sys.modules
    for name, value in changes.items():
        _before.setdefault(name, os.environ.get(name))
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


def portable_variables(
    flags: Collection[str], numpy: str, environment: Mapping[str, str]
) -> dict[str, str | None]:
    """Return the variables of the portable arithmetic; None for one that must not be set.

    What the environment disables in NumPy stays disabled: fewer instructions give the same bits.

    Args:
        flags: of the CPU, as Linux names them.
        numpy: its version.
        environment: the variables that are set.
    """
    variables: dict[str, str | None] = {KERNEL: CORE, **OTHERS}
    if "avx512f" in flags:
        before = environment.get(DISABLED, "").replace(",", " ").split()
        variables[DISABLED] = " ".join(dict.fromkeys([*before, *_names_beyond(numpy)]))
        if ENABLED in environment:
            variables[ENABLED] = None  # NumPy refuses to be imported if both are set
    return variables


def _names_beyond(numpy: str) -> tuple[str, ...]:
    """Return what a version of NumPy, which warns of others, calls instructions beyond AVX2."""
    version = [int(part) for part in re.findall(r"\d+", numpy)[:2]] or BEYOND_FROM
    if version >= BEYOND_FROM:
        return BEYOND
    if version >= [2, 3]:
        return (*BEYOND_BEFORE, *BEYOND[-1:])
    return BEYOND_BEFORE


def _numpy_version() -> str:
    """Return the version of the installed NumPy without importing it; "" if it cannot be told."""
    origin = getattr(find_spec("numpy"), "origin", None) or ""
    with suppress(OSError, ValueError):
        text = Path(origin).with_name("version.py").read_text()
        if match := re.search(r'^version = "([^"]+)"', text, re.MULTILINE):
            return match[1]
    return ""


@cache
def read_cpu(name: str) -> str:
    """Return what Linux says of the first CPU, such as its "flags"; "" where that is unknown."""
    with suppress(OSError), Path("/proc/cpuinfo").open() as lines:  # there may be hundreds of CPUs
        line = next((line for line in lines if line.startswith(name)), "")
        return line.partition(":")[2].strip()
    return ""


def _cpu_flags() -> frozenset[str]:
    return frozenset(read_cpu("flags").split())


def reason_against() -> str:
    """Return why this machine cannot do the portable arithmetic, or ""."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return f"this CPU is {platform.machine()}"
    if not _cpu_flags() >= NEEDED:
        return "this CPU is not known to have AVX2 and FMA"
    return ""


def is_as_requested() -> bool:
    """Return whether this process computes as processes do that it starts: NumPy was not imported
    too early.
    """
    return not _too_late or (requested_arithmetic() == "portable" and arithmetic_kind() == PORTABLE)


@cache
def arithmetic_kind() -> str:
    """Return the arithmetic of this process, which has imported NumPy: `PORTABLE`, or what BLAS and
    NumPy use.
    """
    kernels = [name.removeprefix("openblas ") for name in blas_kernels()]
    features = widest_features()
    if not reason_against() and kernels == [CORE] and features in ("X86_V3", "AVX2"):
        return PORTABLE
    machine = platform.machine().lower()
    kind = "native" if machine in ("x86_64", "amd64") else machine
    return f"{kind}: {', '.join(filter(None, (*kernels, features)))}"


def blas_kernels() -> list[str]:
    """Return the kernels of NumPy's own BLAS or, if it uses the system's, of all that are
    loaded.
    """
    from threadpoolctl import threadpool_info

    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    places = {"numpy", "numpy.libs"}
    of_numpy = [one for one in libraries if places & {*Path(one["filepath"]).parts}]
    names = {
        f"{library['internal_api']} {library.get('architecture') or ''}".strip()
        for library in of_numpy or libraries
    }
    return sorted(names)


def widest_features() -> str:
    """Return the last of NumPy's targets that this process uses; `numpy.show_runtime` only prints
    it.
    """
    core = sys.modules.get("numpy._core._multiarray_umath")
    targets = (*getattr(core, "__cpu_baseline__", ()), *getattr(core, "__cpu_dispatch__", ()))
    features = getattr(core, "__cpu_features__", {})
    return next((name for name in reversed(targets) if features.get(name)), "")


def describe_arithmetic(fresh: bool = False) -> list[str]:
    """Return lines for the user on settings that were replaced, and on an arithmetic that is not
    the portable one.

    Args:
        fresh: whether processes play that have yet to import NumPy, and not this one.
    """
    if requested_arithmetic() == "native":
        return []
    replaced = sorted(
        f"{name}={value}" for name, value in _before.items() if value and name != DISABLED
    )
    lines = []
    if replaced:
        names = ", ".join(replaced)
        lines.append(f"replaced {names}: plays are portable; --arithmetic native keeps it")
    if not fresh and (kind := arithmetic_kind()) != PORTABLE:
        lines.append(
            f"plays here are not {PORTABLE} but {kind} ({_reason()}): elsewhere a seed may be "
            "another play"
        )
    return lines


def _reason() -> str:
    """Return why this process does not compute portably."""
    if reason := reason_against():
        return reason
    if _too_late:
        return "NumPy was imported before cbobench; import cbobench first, or let workers play"
    if not any(name.startswith("openblas") for name in blas_kernels()):
        return "NumPy's BLAS is not OpenBLAS"
    return "the environment or NumPy's build holds other instructions"
