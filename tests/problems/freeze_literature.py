"""Freezes values of the published problems as other people's packages compute them
(`literature_values.npz`).

Run in an environment of its own, never by pytest; nothing of cbobench is imported:

    pip install "numpy==1.26.0" "scipy" "pymoo==0.6.2" "enoppy==0.1.1" "opfunu==1.0.4"
    pip install --no-deps "botorch==0.18.1"
    python tests/problems/freeze_literature.py

BoTorch's formulas are run on NumPy in place of torch: they are read from its source, and a small
array class has the few methods that they call. The packages differ from the publications here and
there (see `SKIPPED`), so each function is taken from a package that has it right. No package on
PyPI has `gardner-1`.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

HERE = Path(__file__).parent
SEED, POINTS = 20140601, 1000
BOXES = {
    "gramacy": ([0, 0], [1, 1]),
    "hartmann-4": ([0] * 4, [1] * 4),
    "pressure-vessel": ([0.0625, 0.0625, 10, 10], [6.1875, 6.1875, 200, 200]),
    "welded-beam": ([0.1] * 4, [2, 10, 10, 2]),
    "tension-spring": ([0.05, 0.25, 2], [2, 1.3, 15]),
    "speed-reducer": ([2.6, 0.7, 17, 7.3, 7.8, 2.9, 5], [3.6, 0.8, 28, 8.3, 8.3, 3.9, 5.5]),
}
SKIPPED = """
botorch 0.18.1 WeldedBeamSO: buckling load times 6 where the source divides by 6; PressureVessel rounds thicknesses
enoppy 0.1.1 pdo_2022: polar moment of the welded beam; pressure vessel (g_2, g_3); spring (g_2); speed reducer (g_3 to
    g_5)
enoppy 0.1.1 ihaoavoa_2022: welded beam; speed reducer's weight (0.7584 for 0.7854) and g_6 (sign); spring's g_2 (no -1)
enoppy 0.1.1 rwco_2020: other versions of the welded beam and the speed reducer
"""  # noqa: E501


class Tensor(np.ndarray):
    """An array with the methods of a torch tensor that BoTorch's formulas call."""

    def pow(self, k: float) -> Any:
        return self**k

    def unbind(self, dim: int) -> list[Any]:
        return list(np.moveaxis(self, dim, 0))

    def split(self, size: int, dim: int) -> list[Any]:
        return np.split(self, self.shape[dim] // size, axis=dim)

    def unsqueeze(self, dim: int) -> Any:
        return np.expand_dims(self, dim)

    def clamp_max(self, most: float) -> Any:
        return np.minimum(self, most)

    def sum(self, dim: int | None = None, **options: Any) -> Any:
        return np.asarray(self).sum(**({"axis": dim} if dim is not None else options)).view(Tensor)

    def norm(self, dim: int, keepdim: bool) -> Any:
        return np.linalg.norm(self, axis=dim, keepdims=keepdim)

    device = None


TORCH = SimpleNamespace(
    sin=np.sin,
    exp=np.exp,
    sqrt=np.sqrt,
    sum=lambda a, dim: np.asarray(a).sum(axis=dim).view(Tensor),
    stack=lambda arrays, dim: np.stack(arrays, axis=dim),
    cat=lambda arrays, dim: np.concatenate(arrays, axis=dim),
)


def botorch(cls: str, method: str, x: np.ndarray, **attributes: Any) -> np.ndarray:
    """A formula of `botorch.test_functions.synthetic`, from its source, at points (n, d)."""
    root = importlib.util.find_spec("botorch")
    assert root is not None
    assert root.submodule_search_locations
    text = (
        Path(root.submodule_search_locations[0]) / "test_functions" / "synthetic.py"
    ).read_text()
    body = next(
        n for n in ast.parse(text).body if isinstance(n, ast.ClassDef) and n.name == cls
    ).body
    function = next(n for n in body if isinstance(n, ast.FunctionDef) and n.name == method)
    names = {"torch": TORCH, "math": math, "Tensor": Tensor}
    exec(compile(ast.Module([function], []), cls, "exec"), names)
    return np.asarray(names[method](SimpleNamespace(**attributes), x.view(Tensor)))


def points(d: int) -> np.ndarray:
    """The 1,000 points of the unit cube, the same for every problem in d dimensions."""
    return np.random.default_rng(SEED).random((POINTS, d))


def gramacy(x: np.ndarray) -> np.ndarray:
    cost = botorch("ConstrainedGramacy", "_evaluate_true", x)
    return np.column_stack([-cost, -botorch("ConstrainedGramacy", "_evaluate_slack_true", x)])


def hartmann(x: np.ndarray) -> np.ndarray:
    """opfunu's constants (of the function in six dimensions) in BoTorch's formula for four."""
    from opfunu.name_based.h_func import Hartmann6

    of = Hartmann6()
    tables = {
        "A": of.a[:, :4],
        "P": 1e4 * of.p[:, :4],
        "ALPHA": of.c,
        "dim": 4,
        "to": lambda **_: None,
    }
    cost = botorch("Hartmann", "_evaluate_true", x, **tables)
    return np.column_stack([-cost, -botorch("ConstrainedHartmann", "_evaluate_slack_true", x)])


def pressure_vessel(x: np.ndarray) -> np.ndarray:
    """pymoo counts thicknesses in 1/16 inch and divides its constraints."""
    from pymoo.problems.single.pressure_vessel import PressureVessel

    answers: dict[str, Any] = {}
    PressureVessel()._evaluate(x * np.array([16, 16, 1, 1]), answers)
    return np.column_stack([-answers["F"], answers["G"] * np.array([3, 3, 1296000, 240])])


def welded_beam(x: np.ndarray) -> np.ndarray:
    """BoTorch, but the least weld and the buckling load from enoppy (pdo_2022)."""
    from enoppy.paper_based.pdo_2022 import WeldedBeamProblem

    cost = botorch("WeldedBeamSO", "_evaluate_true", x)
    shear, bending, weld, price, deflection, _ = -botorch(
        "WeldedBeamSO", "_evaluate_slack_true", x
    ).T
    constraints = np.array([WeldedBeamProblem().get_cons(row) for row in x])
    return np.column_stack(
        [-cost, shear, bending, weld, price, constraints[:, 4], deflection, constraints[:, 6]]
    )


def tension_spring(x: np.ndarray) -> np.ndarray:
    """enoppy (rwco_2020)."""
    from enoppy.paper_based.rwco_2020 import TensionCompressionSpringDesignProblem

    of = TensionCompressionSpringDesignProblem()
    return np.array([[-of.get_objs(row)[0], *of.get_ineq_cons(row)] for row in x])


def speed_reducer(x: np.ndarray) -> np.ndarray:
    """BoTorch's weight; enoppy's constraints (ihaoavoa_2022), but the sixth from pdo_2022."""
    from enoppy.paper_based import ihaoavoa_2022, pdo_2022

    cost = botorch("SpeedReducer", "_evaluate_true", x)
    with np.errstate(invalid="ignore"):  # the square root of a negative number, in the sixth
        g = np.array([ihaoavoa_2022.SpeedReducerProblem().get_cons(row) for row in x])
    g[:, 5] = [pdo_2022.SpeedReducerProblem().get_cons(row)[5] for row in x]
    return np.column_stack([-cost, g])


def main() -> None:
    formulas = [gramacy, hartmann, pressure_vessel, welded_beam, tension_spring, speed_reducer]
    values = {}
    for (name, (low, high)), formula in zip(BOXES.items(), formulas, strict=True):
        corner = np.array(low, dtype=float)
        exact = formula(corner + points(len(low)) * (np.array(high) - corner))
        values[name] = np.array([[float(f"{v:.12g}") for v in row] for row in exact])
    path = HERE / "literature_values.npz"
    np.savez_compressed(path, seed=SEED, **values)
    versions = {
        p: importlib.metadata.version(p) for p in ("botorch", "enoppy", "opfunu", "pymoo", "numpy")
    }
    print(path.name, f"{path.stat().st_size:,} bytes, {POINTS} points, seed {SEED}", versions)
    print("not taken over:", SKIPPED)


if __name__ == "__main__":
    main()
