"""λ as a number is the noise variance in the problem's units; `lam: true` is each function's
own.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from cbobench.algorithms import ALGORITHMS
from cbobench.errors import Misuse
from cbobench.gp.thompson import ThompsonModel
from cbobench.params import resolve
from tests.algorithms.easy import bowl
from tests.helpers import actions, long_cases, make, play, problem

ALIKE = partial(problem, "feasible-pocket", noise_f=0.2, noise_g=0.2)
APART = partial(problem, "gramacy", grid=8)
DELAYED = partial(problem, "feasible-pocket-delayed", grid=9, delay=3.0)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("cei", {"kernel": "given"}),
        *long_cases(("scbo", {"kernel": "fit"})),
        ("admmbo", {"kernel": "fit"}),
    ],
)
def test_it_is_the_number_where_all_noise_is_alike(name, settings):
    by_problem, number = ({**settings, "lam": lam} for lam in ("true", 0.2**2))
    with_true, with_number, third = (
        actions(play(ALIKE(), make(name, **values), seeds=2, horizon=15)[1])
        for values in (by_problem, number, {**settings, "lam": 2.0})
    )
    np.testing.assert_array_equal(with_true, with_number)
    assert not np.array_equal(with_true, third)


def test_yaml_says_true_for_the_word():
    for name in ("ckb-ucb", "cei", "scbo"):
        assert resolve(ALGORITHMS.get(name), {"lam": True})["lam"] == "true"
    assert resolve(ALGORITHMS.get("ckb-ucb"), {"R": True})["R"] == "true"
    with pytest.raises(Misuse, match="lam is False"):
        resolve(ALGORITHMS.get("cei"), {"lam": False})


@pytest.mark.parametrize(
    ("name", "settings", "task"),
    [
        ("ckb-ucb", {"kernel": "given"}, APART),
        ("rpol-sw", {}, APART),
        ("ckb-ucb", {}, DELAYED),
    ],
)
def test_where_models_share_a_covariance_it_is_refused(name, settings, task):
    with pytest.raises(Misuse, match="lam is true.*kernel share one; allowed: theory, or a number"):
        make(name, lam="true", **settings).check(task())


def test_a_fitted_model_of_each_has_its_own():
    make("ckb-ucb", lam="true").check(APART())


SCALED = ["admmbo", "cei", "scbo"]
GIVEN = {"kernel": "given", "bilog": False}
FEW = {
    "admmbo": {"kernel": "given", "first_f": 3, "first_g": 3, "candidates": 40},
    "scbo": {"initial": 4, "candidates": 32} | GIVEN,
    "cei": GIVEN,
}


def believed(algorithm, s, played):
    """What a method believes of (f, g) at the actions it played: means and deviations (2, T), and
    amplitudes (2,).
    """
    if hasattr(algorithm, "runs"):
        model = algorithm.runs[s].model
        amplitude = model.scale.amplitude[0]
        if isinstance(model, ThompsonModel):
            mean, variance, *_ = model.at(model.played)
            return mean, np.sqrt(variance) * amplitude[:, None], amplitude
        return *model.at_played(), amplitude
    if algorithm.box is not None:
        mean, variance, _ = algorithm.posterior.at_observations()
    else:
        mean, variance = algorithm.posterior.at(played.T)
    belief = algorithm.view(mean, variance, None)
    means, deviations = (
        [getattr(part, name)[s] for part in (belief.f, belief.g)] for name in ("mean", "deviation")
    )
    return np.vstack(means), np.vstack(deviations), algorithm.running.amplitude[s]


def truth(kernel, values, amplitude, centre, lam):
    """A GP of amplitude s and noise variance λ, at the actions it was told of: means and
    deviations.
    """
    gram = amplitude**2 * kernel
    gain = np.linalg.solve(gram + lam * np.eye(len(gram)), gram).T
    return centre + gain @ (values - centre), np.sqrt(np.maximum(np.diag(gram - gain @ gram), 0))


@pytest.mark.parametrize(("grid", "lam"), [(None, 0.04), (9, 1.0)])
@pytest.mark.parametrize("name", SCALED)
def test_a_number_is_the_noise_variance(name, grid, lam):
    """Against a plain solve with the kernel's own gram matrix, s² K + λ I, for f and g of different
    amplitudes.
    """
    task = bowl(grid=grid, candidates=32)
    algorithm = make(name, lam=lam, **FEW.get(name, {}))
    _, chunks = play(task, algorithm, seeds=2, horizon=25)
    played = actions(chunks)
    for s in range(2):
        values = np.stack([chunks[0].observed_f[:, s], chunks[0].observed_g[:, s, 0]])
        if grid is None:
            units = task.actions.unit(played[:, s])
            gram = task.actions.kernel(units, units)
        else:
            gram = task.actions.covariance[np.ix_(played[:, s], played[:, s])]
        mean, deviation, amplitude = believed(algorithm, s, played)
        centres = (values[0].min() + values[0].max()) / 2, 0.0
        assert amplitude.max() > 1.3 * amplitude.min()
        for j, centre in enumerate(centres):
            expected = truth(gram, values[j], amplitude[j], centre, lam)
            np.testing.assert_allclose(mean[j], expected[0], atol=1e-7)
            np.testing.assert_allclose(deviation[j], expected[1], atol=1e-6)
