"""Figures of Zhou & Ji (2022), "On Kernelized Multi-Armed Bandits with Constraints".

Figure 1a: regret on synthetic data (one per constraint form); 1b, 1c: regret and V⁺ on the light
sensors;
2a, 2b, 2c: regret, average regret and V⁺ on the stocks. V⁺ is shown for the three CKB algorithms,
as in the paper. With independent g regret is that against the best policy, R₊ (eq. 2): against the
best feasible action it is negative wherever the constraint binds.

cbobench figures RUN --recipe zhou_ji_2022 [--out OUT]
"""

from cbobench.report.figures.figures import Figure, Panel, numbered, problems_named
from cbobench.report.load import Run

CKB = ("ckb-ucb", "ckb-ts", "ckb-rand")
COMPARED = (*CKB, "stageopt", "sgp-ucb")
PAPER = "Zhou & Ji (2022)"


def figures(run: Run) -> list[Figure]:
    """Those of the six figures whose problem the run holds together with a method that CKB is
    compared with.
    """
    if not run.named("algorithm", COMPARED[len(CKB) :]):
        return []
    ckb = run.named("algorithm", CKB)
    compared = run.named("algorithm", COMPARED)
    result = []

    def add(number: str, problem: tuple[str, str], quantity: str, panel: Panel) -> None:
        title, label = problem
        several = len(problems_named(run, run.record.variants("problems")[title].name)) > 1
        result.append(Figure(*numbered(run, PAPER, number, quantity, label, several), [panel]))

    for problem in problems_named(run, "rkhs-1d"):
        mixed = run.record.variants("problems")[problem[0]].settings["constraint"] == "independent"
        metric, quantity = (
            ("regret_plus", "regret against the best policy") if mixed else ("regret", "regret")
        )
        add("1a", problem, quantity, Panel(metric, problem[0], compared))
    for problem in problems_named(run, "light-sensors"):
        add("1b", problem, "regret", Panel("regret", problem[0], compared))
        add("1c", problem, "stronger violation", Panel("violation_hard", problem[0], ckb))
    for problem in problems_named(run, "stocks"):
        add("2a", problem, "regret", Panel("regret", problem[0], compared))
        add("2b", problem, "average regret", Panel("regret", problem[0], compared, average=True))
        add("2c", problem, "stronger violation", Panel("violation_hard", problem[0], ckb))
    return result
