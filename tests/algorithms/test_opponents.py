"""Opponents from other libraries: what is said where one is missing, and that what is played is the
library's doing.

PyTorch is too large for CI: tests of methods that need it are skipped where it is not installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import CellFailure, Misuse
from cbobench.gp.box_actions import scrambled_sobol
from cbobench.opponents.library import LibraryMethod
from cbobench.problems.simulators.simulator import Simulator
from cbobench.problems.tables.table import UserTable
from cbobench.registry import tell_install
from cbobench.results.provenance import DISTRIBUTIONS
from tests.algorithms.easy import bowl, on_box, started
from tests.conftest import ROOT
from tests.helpers import actions, entry, load, long, make, play, prepare_class, problem

OPPONENTS = [n for n in ALGORITHMS.names() if issubclass(ALGORITHMS.get(n), LibraryMethod)]
LIGHT = ["optuna-tpe", "pymoo-ga", "pymoo-de", "cma-es"]
BOTORCH = ["botorch-cei", "botorch-nei", "botorch-scbo"]
TORCH = [*BOTORCH, "optuna-gp"]
# the second is the best: the first violates g
DESIGN = np.array([[0.7, 0.2], [0.45, 0.5], [0.2, 0.9]])


def observed(x):
    """f and g of a smooth problem on the unit square, feasible on half of it."""
    return -((x - 0.4) ** 2).sum(), np.array([x[0] - x[1]])


def steps(run, rounds):
    """The points that one run asks for, (rounds, d)."""
    points = []
    for t in range(1, rounds + 1):
        points.append(np.array(run.ask_one(t)))
        run.tell_one(t, points[-1], *observed(points[-1]))
    return np.array(points)


def test_they_are_found_and_each_names_an_extra_of_the_project():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(OPPONENTS) == {*LIGHT, *TORCH, "egobox", "nomad", "smt-optim"}
    for name in OPPONENTS:
        cls = ALGORITHMS.get(name)
        installed = {word.split(">=")[0] for word in extras.get(cls.extra, [])}
        assert {DISTRIBUTIONS.get(module, module) for module in cls.libraries} == installed, name


@pytest.mark.parametrize("name", ["optuna-tpe", "botorch-scbo"])
def test_a_missing_library_is_named_with_its_extra_before_anything_is_written(
    name, monkeypatch, tmp_path, clean_tree
):
    monkeypatch.setattr("cbobench.opponents.library.find_spec", lambda library: None)
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        f"suite: s\nhorizon: 5\nseeds: 1\nproblems: [gramacy]\nalgorithms: [sobol, {name}]\n"
    )
    before = clean_tree()
    with pytest.raises(Misuse) as raised:
        load(suite)
    extra, refusal = ALGORITHMS.get(name).extra, str(raised.value)
    assert (
        f"{name} cannot play gramacy: it needs {' and '.join(ALGORITHMS.get(name).libraries)}"
        in refusal
    )
    assert f"; to install: {tell_install(extra)}" in refusal
    assert "\n" not in refusal
    assert clean_tree() == before
    assert [pair.title for pair in load(suite, only="sobol").grid.pairs] == ["gramacy/sobol"]
    suite.write_text(suite.read_text() + "skip: unplayable\n")
    ((left_out, why),) = load(suite).grid.unplayable
    assert (left_out.title, f"cbobench[{extra}]" in why) == (f"gramacy/{name}", True)


def test_sobol_is_spread_evenly_and_another_scrambling_for_each_seed():
    _, chunks = play(problem("gardner-1"), make("sobol"), seeds=2, horizon=64)
    points = actions(chunks) / 6
    for s in (0, 1):
        cells = (np.floor(points[:, s] * 8) @ [8, 1]).astype(int)
        assert len(set(cells.tolist())) == 64, "a net: one point in each of 64 squares"
    assert not np.array_equal(points[:, 0], points[:, 1])


@pytest.mark.parametrize(
    ("name", "sampler"), [entry("optuna-tpe", "TPESampler"), entry("optuna-gp", "GPSampler")]
)
def test_optuna_plays_what_it_plays_alone(name, sampler):
    import optuna

    run = started(name, on_box(2), startup=5)
    plays = steps(run, 25)
    alone = getattr(optuna.samplers, sampler)(n_startup_trials=5, seed=run.given.seed)
    study = optuna.create_study(direction="maximize", sampler=alone)

    def objective(trial):
        x = np.array([trial.suggest_float("a", 0, 1), trial.suggest_float("b", 0, 1)])
        f, g = observed(x)
        trial.set_constraint("g", float(g[0]))
        return f

    study.optimize(objective, n_trials=25)
    np.testing.assert_array_equal(plays, [[*trial.params.values()] for trial in study.trials])


@pytest.mark.parametrize("name", ["pymoo-ga", "pymoo-de"])
def test_pymoo_plays_what_it_plays_alone(name):
    pytest.importorskip("pymoo", reason="pip install 'cbobench[pymoo]'")
    from pymoo.algorithms.soo.nonconvex.de import DE
    from pymoo.algorithms.soo.nonconvex.ga import GA
    from pymoo.core.problem import ElementwiseProblem
    from pymoo.optimize import minimize

    evaluated = []

    class Plain(ElementwiseProblem):
        def __init__(self):
            super().__init__(n_var=2, n_obj=1, n_ieq_constr=1, xl=0.0, xu=1.0)

        def _evaluate(self, x, out, *args, **options):
            evaluated.append(x.copy())
            f, g = observed(x)
            out["F"], out["G"] = [-f], g

    settings, plain = {
        "pymoo-ga": ({"offspring": 4}, GA(pop_size=8, n_offsprings=4)),
        "pymoo-de": ({}, DE(pop_size=8)),
    }[name]
    run = started(name, on_box(2), population=8, **settings)
    plays = steps(run, 48)
    minimize(Plain(), plain, ("n_eval", 48), seed=run.given.seed)
    np.testing.assert_array_equal(plays, evaluated)


def test_pycma_plays_what_it_plays_alone():
    cma = pytest.importorskip("cma", reason="pip install 'cbobench[cma]'")
    run = started("cma-es", on_box(2))
    plays = steps(run, 30)
    generator = run.given.setting.streams.role("ask and tell")[0]
    options = {
        "bounds": [0, 1],
        "randn": lambda *n: generator.standard_normal(n),
        "seed": np.nan,
        "verbose": -9,
    }
    strategy = cma.CMAEvolutionStrategy(generator.random(2), 0.3, options)
    fitness = cma.ConstrainedFitnessAL(
        lambda x: -observed(x)[0], lambda x: observed(x)[1], archives=False
    )
    asked_points = []
    while len(asked_points) < 30:
        generation = strategy.ask()
        asked_points += generation
        strategy.tell(generation, [fitness(x) for x in generation])
        fitness.update(strategy)
    np.testing.assert_array_equal(plays, asked_points[:30])


def egobox_alone(seeds, x, y):
    """The point after the data x (n, 2), y (n, 2), from egobox's documentation alone."""
    import egobox

    optimiser = egobox.Egor([[0, 1], [0, 1]], cstr_specs=[egobox.CstrSpec.leq(0.0, tol=0.0)])
    return optimiser.suggest(x, y, seed=int(seeds.integers(2**31)))[0]


@pytest.mark.parametrize("name", [entry("egobox")])
def test_egobox_plays_what_it_plays_alone(name):
    """It minimises, and values of a constraint are feasible up to 0."""
    run = started(name, on_box(2), initial=6)
    for t, x in enumerate(DESIGN[:2], start=1):
        run.observe_one(t, x, *observed(x))
    plays = steps(run, 15)
    seeds = run.given.setting.streams.role("ask and tell")[0]
    np.testing.assert_array_equal(plays[:4], scrambled_sobol(2, seeds).random(4))
    x = np.array([*DESIGN[:2], *plays])
    y = np.array([[-f, *g] for f, g in map(observed, x)])
    alone = [egobox_alone(seeds, x[:n], y[:n]) for n in range(6, 17)]
    np.testing.assert_array_equal(plays[4:], alone)


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry("egobox")])
def test_egobox_plays_the_same_with_any_number_of_threads(name):
    code = (
        "from tests.algorithms.test_opponents import *; "
        f"print(steps(started({name!r}, on_box(2), initial=5), 12).tobytes().hex())"
    )
    one_thread = os.environ | {"RAYON_NUM_THREADS": "1"}
    alone = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=one_thread, capture_output=True, text=True
    )
    plays = steps(started(name, on_box(2), initial=5), 12)
    assert alone.stdout.strip() == plays.tobytes().hex()


@pytest.mark.parametrize("name", [entry("egobox")])
def test_egobox_plays_no_point_twice_and_names_a_model_that_fails(name, capfd):
    run = started(name, on_box(2), initial=2)
    steps(run, 3)
    optimiser = run.run_optimiser
    optimiser.optimiser = SimpleNamespace(suggest=lambda x, y, seed: x[:1])
    assert list(run.ask_one(4)) not in np.array(optimiser.x).tolist()
    run = started(name, on_box(2), initial=2)
    for t in (1, 2):
        run.tell_one(t, run.ask_one(t), 1e200 * t, np.array([-1.0]))
    with pytest.raises(CellFailure, match="^egobox: GP training failure"):
        run.ask_one(3)
    assert "panicked" in capfd.readouterr().err


@pytest.mark.parametrize("name", [entry("egobox"), entry("smt-optim")])
def test_a_margin_is_of_the_spread_of_what_was_observed(name):
    run = started(name, on_box(2), initial=4, margin=0.5)
    points = steps(run, 4)
    told = []
    run.run_optimiser.suggest = lambda x, y: told.append(y) or x[0] / 2
    run.ask_one(5)
    f, g = np.array([[f, *g] for f, g in map(observed, points)]).T
    np.testing.assert_array_equal(told, [np.transpose([-f, g + 0.5 * g.std()])])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [entry("smt-optim")])
def test_smt_optim_plays_what_its_minimize_plays_alone(name):
    from smt_optim import minimize

    run = started(name, on_box(2), initial=5, tolerance=1e-7)
    plays = steps(run, 12)
    initial = scrambled_sobol(2, run.given.setting.streams.role("ask and tell")[0]).random(5)
    state = minimize(
        [lambda x: float(-observed(x)[0])],
        np.array([[0.0, 1.0]] * 2),
        max_iter=7,
        constraints=[{"fun": [lambda x: float(observed(x)[1][0])], "upper": 0.0}],
        driver_kwargs={"xt_init": [initial]},
        strategy_kwargs={"sp_tol": 1e-7},
        verbose=False,
    )
    np.testing.assert_array_equal(plays, [sample.x for sample in state.dataset.samples])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [entry("smt-optim")])
@pytest.mark.parametrize(("f", "g"), [(1.0, -1.0), (0.0, 1.0)])
def test_smt_optim_plays_its_design_on_where_a_value_is_constant(name, f, g):
    run = started(name, on_box(2), initial=3)
    plays = []
    for t in range(1, 8):
        x = run.ask_one(t)
        plays.append(x)
        run.tell_one(t, x, f * x.sum(), np.array([g]))
    initial = scrambled_sobol(2, run.given.setting.streams.role("ask and tell")[0]).random(8)
    np.testing.assert_array_equal(plays, initial[:7])


def nomad_alone(start, seed, evaluations):
    """The points of one run of NOMAD's own loop, from its documentation."""
    import PyNomad

    points = []

    def evaluate(point):
        points.append([point.get_coord(i) for i in range(2)])
        f, g = observed(np.array(points[-1]))
        point.setBBO(f"{float(-f)!r} {float(g[0])!r}".encode())
        return 1

    PyNomad.setSeed(seed)
    PyNomad.resetRandomNumberGenerator()
    settings = ["BB_OUTPUT_TYPE OBJ PB", f"MAX_BB_EVAL {evaluations}", "DISPLAY_DEGREE 0"]
    PyNomad.optimize(evaluate, [*start], [0, 0], [1, 1], [*settings, f"SEED {seed}"])
    return points


@pytest.mark.parametrize("name", [entry("nomad")])
def test_nomad_plays_what_it_plays_alone(name):
    """From the best point of the design, and from a Sobol point where there is none; two runs that
    take turns do not meet, though NOMAD's state is the process's.
    """
    runs = [started(name, on_box(2)) for _ in range(2)]
    for t, x in enumerate(DESIGN, start=1):
        runs[0].observe_one(t, x, *observed(x))
    plays = [[], []]
    for t in range(1, 13):
        for run, points in zip(runs, plays, strict=True):
            points.append(np.array(run.ask_one(t)))
            run.tell_one(t, points[-1], *observed(points[-1]))
    seed = runs[0].given.seed % 100_000
    first = scrambled_sobol(2, runs[1].given.setting.streams.role("ask and tell")[0]).random(1)[0]
    np.testing.assert_array_equal(plays[0], nomad_alone(DESIGN[1], seed, 13)[1:])
    np.testing.assert_array_equal(plays[1], nomad_alone(first, seed, 12))


LOCAL = [
    ("cobyla", "COBYLA", {"rhobeg": 0.2}),
    ("cobyqa", "COBYQA", {"initial_tr_radius": 0.2}),
    ("slsqp", "SLSQP", {}),
]


@pytest.mark.parametrize("settings", [{}, {"margin": 1e-3, "tolerance": 1e-6}])
@pytest.mark.parametrize(("name", "solver", "options"), LOCAL)
def test_scipy_plays_what_it_plays_alone(name, solver, options, settings):
    """From the best point of the design, whose value is known, then from Sobol points."""
    from scipy.optimize import minimize

    run = started(name, on_box(2), **settings)
    margin = settings.get("margin", 0.0) * np.std([observed(x)[1] for x in DESIGN], axis=0)
    for t, x in enumerate(DESIGN, start=1):
        run.observe_one(t, x, *observed(x))
    plays = steps(run, 48)
    starts = [
        DESIGN[1],
        *scrambled_sobol(2, run.given.setting.streams.role("ask and tell")[0]).random(8),
    ]
    evaluated, runs = [], 0
    while len(evaluated) < 48:
        points = [starts[0]] if runs == 0 else []

        def look(x, points=points):
            if not any(np.array_equal(x, point) for point in points):
                points.append(x.copy())
            return observed(np.clip(x, 0, 1))

        feasible = {"type": "ineq", "fun": lambda x: -(look(x)[1] + margin)}
        minimize(
            lambda x: -look(x)[0],
            starts[runs],
            method=solver,
            bounds=[(0, 1)] * 2,
            constraints=feasible,
            tol=settings.get("tolerance"),
            options=options,
        )
        evaluated += points[1:] if runs == 0 else points
        runs += 1
    assert runs >= 2
    np.testing.assert_array_equal(plays, np.clip(evaluated[:48], 0, 1))
    if name == "slsqp":  # its gradients of f and g together take d evaluations
        np.testing.assert_allclose(plays[:2] - DESIGN[1], 2.0**-26 * np.eye(2), atol=1e-15)


@pytest.mark.parametrize(
    ("settings", "allowed"), [({}, False), ({"margin": 1e-9, "tolerance": 1e-14}, True)]
)
def test_a_margin_has_runs_end_inside_a_curved_wall(settings, allowed):
    """At the best point of a disc, from outside of which SLSQP comes; the gap is the margin's."""
    run = started("slsqp", on_box(2), **settings)

    def tell(told, t, x):
        told(t, x, x.sum(), np.array([x @ x - 0.5]))
        return x

    for t, x in enumerate(DESIGN, start=1):
        tell(run.observe_one, t, x)
    plays = np.array([tell(run.tell_one, t, np.array(run.ask_one(t))) for t in range(1, 21)])
    inside = (plays**2).sum(axis=1) <= 0.5
    gap = 1 - plays.sum(axis=1)[inside].max(initial=0)
    assert (gap < 1e-8) == allowed
    assert np.abs(1 - plays.sum(axis=1)).min() < 1e-8


def test_what_was_observed_before_is_used():
    """TPE has it as trials, pymoo as individuals, CMA-ES begins at the best of it."""
    pytest.importorskip("cma", reason="pip install 'cbobench[cma]'")
    runs = {}
    for name in LIGHT:
        run = runs[name] = started(name, on_box(2))
        for t, x in enumerate(DESIGN, start=1):
            run.observe_one(t, x, *observed(x))
    trials = runs["optuna-tpe"].run_optimiser.study.trials
    np.testing.assert_array_equal([[*trial.params.values()] for trial in trials], DESIGN)
    assert [trial.constraints["g1"] <= 0 for trial in trials] == [False, True, True]
    for name in ("pymoo-ga", "pymoo-de"):
        population = runs[name].run_optimiser
        np.testing.assert_array_equal(
            [individual.X for individual in population.population[:3]], DESIGN
        )
        assert population.evaluated == 3
    np.testing.assert_allclose(runs["cma-es"].run_optimiser.strategy.mean, DESIGN[1], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*map(entry, BOTORCH)])
def test_botorch_solves_an_easy_problem_and_leaves_pytorch_as_it_was(name):
    import torch

    torch.manual_seed(3)
    before = (
        torch.get_rng_state().clone(),
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
    )
    cells, _ = play(bowl(noise_f=0.0, noise_g=0.0), make(name, initial=5), seeds=1, horizon=20)
    assert cells.metrics.final["simple_regret"][0] < 0.01
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before[1:]


def plain_loop(name, seeds, x, f, g):
    """The point after the data x (n, 2), f (n,), g (n, 1), from BoTorch's documentation and
    tutorials alone.
    """
    import torch
    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(int(seeds.integers(2**31)))
    torch.set_num_threads(1)
    train_x, train_f, train_g = torch.tensor(x), torch.tensor(f)[:, None], torch.tensor(g)
    train_y = torch.cat([train_f, train_g.sign() * train_g.abs().log1p()], dim=1)
    model = SingleTaskGP(train_x, train_y, outcome_transform=Standardize(m=2))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    if name == "botorch-cei":
        best = train_f[train_g <= 0].max()
        acquisition = LogConstrainedExpectedImprovement(
            model, best, objective_index=0, constraints={1: [None, 0.0]}
        )
    else:
        acquisition = qLogNoisyExpectedImprovement(
            model=model,
            X_baseline=train_x,
            sampler=SobolQMCNormalSampler(torch.Size([128]), seed=0),
            objective=GenericMCObjective(lambda Z, X=None: Z[..., 0]),
            constraints=[lambda Z: Z[..., 1]],
        )
    cube = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    point, _ = optimize_acqf(
        acquisition, bounds=cube, q=1, num_restarts=10, raw_samples=512, options={"maxiter": 200}
    )  # fmt: skip
    return point.detach().numpy()[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [entry("botorch-cei"), entry("botorch-nei")])
def test_botorch_plays_what_it_plays_alone(name):
    run = started(name, on_box(2), initial=4)
    plays = steps(run, 10)
    seeds = run.given.setting.streams.role("ask and tell")[0]
    np.testing.assert_array_equal(plays[:4], scrambled_sobol(2, seeds).random(4))
    values = [observed(x) for x in plays]
    f, g = np.array([v[0] for v in values]), np.array([v[1] for v in values])
    alone = [plain_loop(name, seeds, plays[:t], f[:t], g[:t]) for t in range(4, 10)]
    np.testing.assert_array_equal(plays[4:], alone)


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry("botorch-cei"), entry("botorch-nei")])
def test_a_batch_of_botorch_counts_the_points_under_way(name):
    """The second point of a batch is far from the first, which it would be next to without
    feedback.
    """
    run = started(name, on_box(2), initial=6)
    steps(run, 8)
    batch = np.array([run.ask_one(t) for t in range(9, 12)])
    assert [list(x) for x in run.run_optimiser.under_way] == batch.tolist()
    apart = np.linalg.norm(batch[:, None] - batch, axis=2)[np.triu_indices(3, 1)]
    blind_run = started(name, on_box(2), initial=6)
    steps(blind_run, 8)
    blind = []
    for _ in range(3):
        blind.append(np.array(blind_run.run_optimiser.ask()))
        blind_run.run_optimiser.under_way.clear()
    assert apart.min() > 10 * np.linalg.norm(blind[1] - blind[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        entry("botorch-cei", {}),
        entry("botorch-cei", {"noise": "tiny"}),
        entry("botorch-nei", {"models": "turbo"}),
        entry("botorch-scbo", {}),
    ],
)
def test_botorch_recommends_by_the_last_models_given_all_data(name, settings):
    """Posterior means and deviations by plain algebra, with the models' covariances."""
    import torch

    run = started(name, on_box(2), initial=4, **settings)
    assert np.isnan(run.recommend_one(0)).all(), "nothing before there is a model"
    points = steps(run, 8)
    optimiser = run.run_optimiser
    recommended = run.recommend_one(8)
    np.testing.assert_array_equal(recommended, run.recommend_one(8))
    every = np.concatenate([points, [recommended], np.random.default_rng(0).random((200, 2))])
    x, y = torch.tensor(points), torch.tensor(np.array([y for _, y in optimiser.every]))
    y, moments = optimiser.transform(torch, y).numpy(), []
    with torch.no_grad():
        for model in optimiser.fitted:
            p = model.num_outputs
            gram = model.covar_module(torch.tensor(every)).to_dense().reshape(p, 209, 209).numpy()
            noise = model.likelihood.noise.reshape(p, -1)[:, 0].numpy()
            centre = model.mean_module.constant.reshape(p).numpy()
            shift = model.outcome_transform.means.reshape(p).numpy()
            spread = model.outcome_transform.stdvs.reshape(p).numpy()
            for j in range(p):
                values, y = (y[:, 0] - shift[j]) / spread[j] - centre[j], y[:, 1:]
                gain = np.linalg.solve(gram[j, :8, :8] + noise[j] * np.eye(8), gram[j, :8])
                variance = gram[j].diagonal() - (gain * gram[j, :8]).sum(axis=0)
                mean = shift[j] + spread[j] * (centre[j] + values @ gain)
                moments.append((mean, spread[j] * np.sqrt(np.maximum(variance, 0.0))))
    (f, _), (g, deviation) = moments
    likely = g + 1.6448536 * deviation <= 1e-6
    assert len(x) == 8
    assert likely[8]
    assert f[8] >= f[likely].max() - 1e-6, "of points anywhere, and of those played"


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry("botorch-cei")])
def test_fits_that_fail_are_counted(name, monkeypatch):
    import botorch.fit
    from botorch.exceptions import ModelFittingError

    def fail(mll):
        raise ModelFittingError("no")

    monkeypatch.setattr(botorch.fit, "fit_gpytorch_mll", fail)
    cells, _ = play(bowl(), make(name, initial=4), seeds=2, horizon=6)
    assert cells.algorithm.failed_fits.tolist() == [2, 2]


@pytest.mark.parametrize("name", [entry("botorch-scbo")])
def test_the_trust_region_follows_the_tutorial(name):
    """By hand: the initial points do not count, ten successes double the side, max(4, d) failures
    halve it.
    """
    run = started(name, on_box(2), initial=2)
    region = run.run_optimiser

    def tell_values(*values):
        for f, g in values:
            region.tell(np.full(2, 0.5), f, np.array([g]))
        return region.side, region.succeeded, region.failed

    assert tell_values((9.0, -1.0), (8.0, -1.0)) == (0.8, 0, 0)
    assert tell_values((0.0, 2.0), (0.0, 1.0), (-5.0, -1.0)) == (0.8, 3, 0), (
        "less violation, then none, then more reward"
    )
    assert tell_values((-4.999, -1.0)) == (0.8, 0, 1), "no success: not better by a thousandth"
    assert tell_values((5.0, 1.0), (-6.0, -1.0), (-5.0, -1.0)) == (0.4, 0, 0)
    assert tell_values(*((k, -1.0) for k in range(1, 11))) == (0.8, 0, 0)
    assert tell_values(*[(0.0, -1.0)] * 27) == (0.8 / 2**6, 0, 3)
    assert tell_values((0.0, -1.0)) == (0.8, 0, 0), "under the least side it begins anew"
    assert region.x == []


# Small spaces -------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Tiny(Simulator):
    """Sixteen configurations, noise-free; wide ones are infeasible."""

    source, about, noisy = "a test", "few configurations", False
    inputs = {"width": {"int": [1, 8]}, "kind": {"choice": ["a", "b"]}}  # noqa: RUF012

    def simulate(self, x, gen):
        return [x["width"] + (x["kind"] == "a"), x["width"] - 6.0]


class TwoNumbers(Tiny):
    """Two configurations of a whole number."""

    inputs = {"width": {"int": [1, 2]}, "kind": {"choice": ["a", "b"]}}  # noqa: RUF012


def make_small_task(kind, folder):
    """A problem of which a run plays more rounds than it has configurations."""
    if kind in ("simulator", "four"):
        return prepare_class({"simulator": Tiny, "four": TwoNumbers}[kind])
    rows = [f"{w},{k},{w + (k == 'a')},{w - 6}" for w in range(1, 9) for k in "ab"]
    (folder / "c.csv").write_text("\n".join(["width,kind,f,g", *rows]))
    types = {"width": {"int": [1, 8]}, "kind": {"choice": ["a", "b"]}}
    inputs = {"inputs": types} if kind == "types" else {"inputs": [*types], "one_hot": ["kind"]}
    roles = {"rows": "c.csv", "objective": "f", "constraints": {"g": {"at_most": 0}}}
    return prepare_class(UserTable, folder, **roles, **inputs)


@pytest.mark.parametrize("kind", ["four", "types", *long("simulator", "names")])
@pytest.mark.parametrize(
    "name",
    [
        *(entry(name, long=name == "smt-optim") for name in sorted({*OPPONENTS} - {"nomad"})),
        "cobyla",
        *long("cobyqa", "slsqp"),
    ],
)
def test_every_opponent_plays_on_where_nothing_new_is_left(tmp_path, name, kind):
    """NOMAD, to which all points are new, stays longer at one action."""
    task = make_small_task(kind, tmp_path)
    horizon = task.actions.n + 8
    _, chunks = play(task, make(name), seeds=2, horizon=horizon)
    played = actions(chunks)
    assert played.shape == (horizon, 2)
    assert min(len({*run}) for run in played.T.tolist()) > task.actions.n / 3


# Inputs of several kinds --------------------------------------------------------------------------


@dataclass(kw_only=True)
class Mix(Simulator):
    """Every kind of input, two of them scaled by logarithms; wide ones are infeasible."""

    source, about, noisy = "a test", "every kind of input", False
    inputs = {  # noqa: RUF012
        "width": {"int": [1, 8]},
        "kind": {"choice": ["a", "b", "c"]},
        "rate": {"float": [0.1, 10], "log": True},
        "steps": {"int": [1, 100], "log": True},
        "angle": {"float": [-1, 1]},
    }

    def simulate(self, x, gen):
        bonus = {"a": 0.0, "b": 1.0, "c": 0.5}[x["kind"]]
        f = x["width"] + bonus - np.log(x["rate"]) ** 2 - x["angle"] ** 2 + np.log(x["steps"])
        return [f, x["width"] - 6.0]


class KnownMix(Mix):
    known = ("width + steps <= 20",)


def make_mixed(cls=Mix, **settings):
    return prepare_class(cls, **settings)


def on_mixed(name, **settings):
    """One run on all of its actions, begun."""
    return started(name, replace(on_box(2), actions=make_mixed().actions), **settings)


def tell_mixed(run, t, x):
    run.tell_one(t, x, float(x[0] - x[4] ** 2), np.array([x[0] - 6.0]))


CLIMBED = {"initial": 4, "restarts": 2, "raw": 16}
MIXED = [
    entry("optuna-tpe", {"startup": 3}),
    entry("pymoo-ga", {"population": 4, "offspring": 2}),
    entry("pymoo-de", {"population": 4}),
    entry("cma-es", {"population": 4}),
    entry("egobox", {"initial": 4}, long=True),
    entry("smt-optim", {"initial": 4}, long=True),
    entry("nomad", {}),
    *(
        pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow])
        for case in (
            entry("optuna-gp", {"startup": 4}),
            entry("botorch-cei", CLIMBED),
            entry("botorch-cei", CLIMBED | {"models": "turbo", "noise": "tiny"}),
            entry("botorch-nei", CLIMBED | {"samples": 16}),
            entry("botorch-scbo", {"initial": 4, "candidates": 50}),
        )
    ),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "settings"), MIXED)
def test_every_opponent_plays_floats_whole_numbers_and_choices(name, settings):
    task = make_mixed()
    played = [actions(play(task, make(name, **settings), seeds=2, horizon=8)[1]) for _ in "ab"]
    np.testing.assert_array_equal(*played)
    points = played[0]
    assert points.shape == (8, 2, 5)
    box = task.actions
    np.testing.assert_array_equal(points, np.clip(box.round(points), box.low, box.high))
    assert len(np.unique(points[:, :, 2])) > 5, "floats lie anywhere"
    assert not np.array_equal(points[:, 0], points[:, 1])


def test_optuna_knows_what_was_played_by_its_own_types():
    run = on_mixed("optuna-tpe", startup=3)
    box = run.given.setting.actions
    plays = [box.scale(np.linspace(0.1, 0.9, 5))]
    run.observe_one(1, plays[0], 1.0, np.array([-1.0]))
    for t in range(1, 9):
        plays.append(np.array(run.ask_one(t)))
        tell_mixed(run, t, plays[-1])
    trials = run.run_optimiser.study.trials
    assert [trial.params for trial in trials] == [box.code(x) for x in plays]
    assert {trial.state.name for trial in trials} == {"COMPLETE"}
    assert {type(v) for t in trials for v in t.params.values()} == {int, float}


def test_pycma_has_whole_numbers_and_choices_as_integers():
    cma = pytest.importorskip("cma", reason="pip install 'cbobench[cma]'")
    run = on_mixed("cma-es")
    box = run.given.setting.actions
    plays = []
    before = np.random.get_state()[1]  # noqa: NPY002
    for t in range(1, 25):
        plays.append(np.array(run.ask_one(t)))
        run.tell_one(t, plays[-1], float(plays[-1][0] - plays[-1][4] ** 2), np.array([]))
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    generator = run.given.setting.streams.role("ask and tell")[0]
    low, high = np.array([0.5, -0.5, 0, 0, 0]), np.array([8.5, 2.5, 1, 1, 1])
    start = generator.random(5)
    start[:2] = box.scale(start)[:2]
    options = {
        "bounds": [low, high],
        "integer_variables": [0, 1],
        "CMA_stds": high - low,
        "randn": lambda *n: generator.standard_normal(n),
        "seed": np.nan,
        "verbose": -9,
    }
    strategy = cma.CMAEvolutionStrategy(start, 0.3, options)
    asked = []
    while len(asked) < 24:
        generation = strategy.ask()
        points = [box.scale((x - low) / (high - low)) for x in generation]
        asked += points
        np.random.seed(generator.integers(2**31))  # noqa: NPY002
        strategy.tell(generation, [-(x[0] - x[4] ** 2) for x in points])
    np.testing.assert_array_equal(plays, asked[:24])


@pytest.mark.parametrize("name", [entry("egobox")])
def test_egobox_has_whole_numbers_and_choices_as_its_own_types(name):
    from egobox import CstrSpec, Egor, XSpec, XType

    run = on_mixed(name, initial=6)
    box = run.given.setting.actions
    plays = []
    for t in range(1, 10):
        plays.append(np.array(run.ask_one(t)))
        tell_mixed(run, t, plays[-1])
    seeds = run.given.setting.streams.role("ask and tell")[0]
    scrambled_sobol(5, seeds).random(1)
    x = box.unit(np.array(plays))
    x[:, :2] = np.array(plays)[:, :2]
    y = np.array([[-(p[0] - p[4] ** 2), p[0] - 6.0] for p in plays])
    side = XSpec(XType.FLOAT, [0, 1])
    specs = [XSpec(XType.INT, [1, 8]), XSpec(XType.ENUM, [3]), side, side, side]
    for n in range(6, 9):
        optimiser = Egor(specs, cstr_specs=[CstrSpec.leq(0.0, tol=0.0)])
        point = optimiser.suggest(x[:n], y[:n], seed=int(seeds.integers(2**31)))[0]
        np.testing.assert_array_equal(point[:2], plays[n][:2])
        np.testing.assert_allclose(box.scale(point)[2:], plays[n][2:])


@pytest.mark.parametrize("name", ["cobyla", "cobyqa", "slsqp"])
def test_scipy_refuses_whole_numbers_and_choices_in_a_line(name):
    with pytest.raises(Misuse) as raised:
        make(name).check(make_mixed())
    assert str(raised.value) == (
        "it takes floats alone; the problem has whole numbers or choices; allowed: "
        "configurations: 2048 of the problem, a sample of them; or cei or scbo"
    )
    make(name).check(make_mixed(configurations=300))


def test_a_last_radius_above_the_first_is_refused_in_a_line():
    assert make("cobyqa", tolerance=0.2)
    with pytest.raises(Misuse, match=r"^tolerance 0.3 is above step 0.2; allowed: a last radius"):
        make("cobyla", tolerance=0.3)


@pytest.mark.parametrize("name", [entry("botorch-cei"), entry("botorch-nei")])
def test_botorch_refuses_what_it_cannot_climb(name):
    with pytest.raises(Misuse, match="^BoTorch climbs whole numbers and choices without known"):
        make(name).check(make_mixed(KnownMix))
    make(name).check(make_mixed())
