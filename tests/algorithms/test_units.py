"""λ as a number is the noise variance in the problem's units, for every method that takes one."""

from __future__ import annotations

import numpy as np
import pytest

from cbobench.errors import Misuse
from cbobench.gp.thompson import ThompsonModel
from tests.algorithms.easy import bowl
from tests.helpers import actions, make, play

SCALED = ["admmbo", "cei", "scbo"]
GIVEN = {"kernel": "given", "bilog": False}
FEW = {
    "admmbo": {"first_f": 3, "first_g": 3, "candidates": 40},
    "scbo": {"initial": 4, "candidates": 32} | GIVEN,
    "cei": GIVEN,
}


def believed(algorithm, s, played):
    """What a method believes of (f, g) at the actions it played: means and deviations (2, T), and amplitudes (2,)."""
    if hasattr(algorithm, "runs"):
        model = algorithm.runs[s].model
        amplitude = model.scale.amplitude[0]
        if isinstance(model, ThompsonModel):
            mean, variance, _ = model.at(model.played)
            return mean, np.sqrt(variance) * amplitude[:, None], amplitude
        return *model.at_played(), amplitude
    if algorithm.box is not None:
        mean, variance, _ = algorithm.posterior.at_observations()
    else:
        mean, variance = algorithm.posterior.at(played.T)
    belief = algorithm.view(mean, variance, None)
    means, deviations = ([getattr(part, name)[s] for part in (belief.f, belief.g)] for name in ("mean", "deviation"))
    return np.vstack(means), np.vstack(deviations), algorithm.running.amplitude[s]


def truth(kernel, values, amplitude, centre, lam):
    """A GP of amplitude s and noise variance λ, at the actions it was told of: means and deviations."""
    gram = amplitude**2 * kernel
    gain = np.linalg.solve(gram + lam * np.eye(len(gram)), gram).T
    return centre + gain @ (values - centre), np.sqrt(np.maximum(np.diag(gram - gain @ gram), 0))


@pytest.mark.parametrize("lam", [0.04, 1.0])
@pytest.mark.parametrize("grid", [None, 9])
@pytest.mark.parametrize("name", SCALED)
def test_a_number_is_the_noise_variance(name, grid, lam):
    """Against a plain solve with the kernel's own gram matrix, s² K + λ I, for f and g of different amplitudes."""
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


@pytest.mark.parametrize("grid", [None, 9])
@pytest.mark.parametrize("name", SCALED)
def test_a_known_noise_does_not_depend_on_the_block(name, grid):
    """Posteriors are computed again when a range moves: in each replicate when its own does."""
    settings = {"lam": 0.04, **FEW.get(name, {})}
    task = bowl(grid=grid, candidates=32)
    whole = actions(play(task, make(name, **settings), seeds=4, horizon=25)[1])
    alone = actions(play(task, make(name, **settings), seeds=[3], horizon=25)[1])
    np.testing.assert_array_equal(whole[:, 3:4], alone)


@pytest.mark.parametrize("name", [*SCALED, "ckb-ucb", "igp-ucb"])
def test_other_words_are_refused(name):
    with pytest.raises(Misuse, match="lam is 'relative'"):
        make(name, lam="relative")
    make(name, lam="theory")
