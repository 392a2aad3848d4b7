"""An example for every public class without one in its docstring: docs/api.md shows the part below
a name, and a test plays all from top to bottom in an empty folder.
"""

# ruff: noqa: E402
# mypy: ignore-errors

# --- Outcome
import cbobench

suite = {
    "suite": "api",
    "horizon": 10,
    "seeds": 2,
    "problems": ["gramacy"],
    "algorithms": ["random"],
}
outcome = cbobench.run(suite, out="runs/api", cpus=0)
print(outcome.absent, outcome.spent)  # nothing is missing, no budget was spent

# --- Comparison
comparison = cbobench.compare("runs/api", metric="r")
print(comparison.render("markdown"))
numbers = comparison.frame["simple_regret_median"]

# --- load_cells
cells = cbobench.load_cells("runs/api", status="ok")
print(cells[["algorithm", "seed", "regret"]])

# --- load_rounds
rounds = cbobench.load_rounds("runs/api", "regret", algorithm="random")

# --- AskTell
from dataclasses import dataclass

from cbobench import AskTell, Given


class Corner:
    def __init__(self, given: Given):
        self.given = given

    def ask(self):
        return self.given.low

    def tell(self, x, f, g):
        pass


@dataclass(kw_only=True)
class Corners(AskTell):
    """Plays a corner for ever."""

    source, about = "mine", "the lower corner"

    def optimiser(self, given: Given) -> Corner:
        return Corner(given)


# --- Given
def first_point(given: Given):
    """A point of the box by the run's own generator."""
    return given.generator.uniform(given.low, given.high)


# --- Optimiser
from cbobench import Optimiser


def play_round(optimiser: Optimiser, evaluate):
    x = optimiser.ask()
    optimiser.tell(x, *evaluate(x))


# --- Optimistic
from cbobench import Belief, Optimistic, Parts


@dataclass(kw_only=True)
class Penalty(Optimistic):
    """UCB of f less the violation that even the optimist expects."""

    source, about, knows = "mine", "exact penalty", ("kernel", "λ", "B", "G", "R")

    def parts(self, belief: Belief) -> Parts:
        g = self.explore_g(belief.constraint)
        return Parts(self.explore_f(belief.f), g, np.ones(g.shape[:2]))


# --- OptimisticReward
import numpy as np

from cbobench import OptimisticReward


@dataclass(kw_only=True)
class Ucb(OptimisticReward):
    """UCB of f, whatever g is."""

    source, about, knows = "mine", "unconstrained UCB", ("kernel", "λ", "B", "R")

    def score(self, belief: Belief):
        return self.explore_f(belief.f)


# --- SafeSet
from cbobench import SafeSet


@dataclass(kw_only=True)
class CarefulUcb(SafeSet):
    """UCB of f among the actions that are safe."""

    source, about = "mine", "UCB in a safe set"

    def score(self, belief: Belief):
        return np.where(self.safe, self.explore_f(belief.f), -np.inf)


# --- ScoreAlgorithm
from cbobench import ScoreAlgorithm


@dataclass(kw_only=True)
class LikelyFeasible(ScoreAlgorithm):
    """The mean of f less two deviations of every g_j above 0."""

    source, about, knows = "mine", "mean and margin", ("kernel", "λ")

    def lam_for(self, horizon):
        return 0.01

    def parts(self, belief: Belief) -> Parts:
        g = belief.constraint
        return Parts(belief.f.mean, g.mean + 2 * g.deviation, np.ones(g.mean.shape[:2]))


# --- FunctionBelief
from cbobench import FunctionBelief

of_f = FunctionBelief(mean=np.array([[0.0, 1.0]]), deviation=np.array([[1.0, 0.5]]))
upper = of_f.mean + of_f.width * of_f.deviation  # (S, k) = (1, 2)

# --- Belief
of_g = FunctionBelief(mean=np.array([[[-1.0, 1.0]]]), deviation=np.array([[[1.0, 1.0]]]))
belief = Belief(of_f, of_g)
print(belief.constraint.mean.shape)  # (S, m, k) = (1, 1, 2)

# --- Parts
score = Parts(of_f.mean, of_g.mean, np.array([[10.0]]))  # f - 10 [g]⁺
print(score.total())  # [[0, -9]]

# --- Truncated
from cbobench import Truncated

clipped = Truncated(of_f.mean, np.array([[0.5]])).minus(
    np.array([[2.0]]), of_g.mean, np.array([[[1.0]]])
)
print(clipped.total())  # f up to 0.5, less 2 g between -1 and 1

# --- OneRun
from cbobench import OneRun


@dataclass(kw_only=True)
class RoundRobin(OneRun):
    """Every action in turn."""

    source, about = "mine", "one action after the other"
    needs = frozenset({"a finite action set"})

    def start_one(self, setting):
        self.n = setting.finite.n

    def ask_one(self, t):
        return t % self.n

    def tell_one(self, t, action, f, g):
        pass


# --- Algorithm
from cbobench import Algorithm


@dataclass(kw_only=True)
class First(Algorithm):
    """The first action, in all replicates."""

    source, about = "mine", "the first action"
    needs = frozenset({"a finite action set"})

    def start(self, setting):
        self.actions = np.zeros(setting.replicates, dtype=np.intp)

    def ask(self, t):
        return self.actions

    def tell(self, t, actions, feedback):
        pass


# --- Setting
from cbobench import Setting


def describe(setting: Setting) -> str:
    return f"{setting.replicates} seeds, {setting.constraints} constraints, T = {setting.horizon}"


# --- Reference
from cbobench import Reference

optimum = Reference((0.5, 0.5), -0.5, 1.0, 0.125, 1e-9, "closed form", binds=True)

# --- BoxProblem
from cbobench import BoxProblem


@dataclass(kw_only=True)
class Bowl(BoxProblem):
    """A bowl whose bottom a line cuts off."""

    source, about = "mine", "a bowl and a line"
    low, high, m, reference = (0.0, 0.0), (2.0, 2.0), 1, optimum

    def formula(self, x):
        f = -((x[..., 0] - 1) ** 2) - (x[..., 1] - 1) ** 2
        return np.stack([f, x[..., 0] + x[..., 1] - 1], axis=-1)


print(Bowl().formula(np.array([0.5, 0.5])))  # [-0.5, 0]

# --- pointwise
from cbobench import pointwise


class PointByPoint(Bowl):
    @pointwise
    def formula(self, x):
        return [-((x[0] - 1) ** 2) - (x[1] - 1) ** 2, x[0] + x[1] - 1]


# --- Simulator
from cbobench import Simulator


@dataclass(kw_only=True)
class Queue(Simulator):
    """A faster server costs more, and lets fewer customers wait long."""

    source, about = "mine", "cost of a server, share of long waits"
    low, high, m = (0.5,), (3.0,), 1

    def simulate(self, x, gen):
        late = (gen.exponential(1 / x[0], 100) > 3.0).mean()
        return [-x[0], late - 0.1]  # f is maximised; feasible where g <= 0


# --- Finite
from cbobench import Finite

points = np.linspace(0, 1, 5)[:, None]
actions = Finite(np.exp(-((points - points.T) ** 2)), points)
print(actions.n)  # 5

# --- Box
from cbobench import Box

box = Box(np.array([0.0, 0.0]), np.array([1.0, 10.0]), "matern52", 0.2)
print(box.scale(np.array([0.5, 0.5])))  # of the unit cube: [0.5, 5]

# --- Problem
from cbobench import Problem


def describe_offers(problem: Problem) -> str:
    return ", ".join(sorted(problem.offers()))  # what an algorithm's `needs` are held against


# --- Instances
from cbobench import Instances

ones = np.ones((2, 1 + 1))  # of two seeds, f and one constraint
instances = Instances(
    f=np.zeros((2, 5)),
    g=-np.ones((2, 1, 5)),
    norm=ones,
    noise=0.1 * ones,
    seed_set=np.ones((2, 5), dtype=bool),
    redraws=np.zeros(2, dtype=int),
)

# --- Feedback
from cbobench import Feedback

feedback = Feedback(f=np.array([0.3]), g=np.array([[-0.1, 0.2]]))  # S = 1, m = 2
print((feedback.g <= 0).all(axis=1))  # infeasible

# --- Arrivals
from cbobench import Arrivals

# g_1 of round 3 reaches seed 0:
arrivals = Arrivals(
    replicate=np.array([0]), round=np.array([3]), function=np.array([1]), value=np.array([0.2])
)

# --- param
from cbobench import param


@dataclass(kw_only=True)
class Stepper(First):
    """The action of that number."""

    start_at: int = param(0, "number of the action", at_least=0)


# --- state
from cbobench import state


@dataclass(kw_only=True)
class Counter(First):
    """Counts its rounds."""

    rounds: int = state()  # set in `start`, and no parameter of a suite


# --- ALGORITHMS
from cbobench import ALGORITHMS

print(ALGORITHMS.get("cei").about)

# --- PROBLEMS
from cbobench import PROBLEMS

gramacy = PROBLEMS.get("gramacy")()
print(gramacy.m)  # two constraints

# --- CbobenchError
from cbobench import CbobenchError

try:
    cbobench.compare("runs/nothing")
except CbobenchError as error:
    print(error)  # one line

# --- Misuse
from cbobench import Misuse

try:
    ALGORITHMS.get("ceii")
except Misuse as error:
    print(error)  # did you mean 'cei'?

# --- CellFailure
from cbobench import CellFailure


def check_positive(value: float) -> float:
    if value <= 0:
        raise CellFailure(f"the value is {value}; it must be above 0")
    return value
