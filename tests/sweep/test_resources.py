"""What a task takes of a machine, as a suite says it: refused where it is wrong or too much, kept
to where not.
"""

from __future__ import annotations

from queue import SimpleQueue
from types import SimpleNamespace

import pytest

from cbobench.errors import Misuse
from cbobench.play.isolation import Company
from cbobench.suite.call import Call
from cbobench.sweep.executors import ProcessExecutor
from cbobench.sweep.plan import plan
from cbobench.sweep.ray_executor import Join, RayClient
from tests.helpers import play_here
from tests.sweep.helpers import scheduler_of

SUITE = """\
suite: t
horizon: 20
seeds: 4
problems: [rkhs-1d]
algorithms:
  - ckb-ucb: {beta_scale: {sweep: [0.5, 1.0]}, label: mine, RESOURCES}
  - random
"""


@pytest.fixture
def make(write_suite):
    def write_with(resources):
        return write_suite(
            SUITE.replace("RESOURCES", f"resources: {resources}" if resources else "V: 1.0")
        )

    return write_with


def test_resources_are_no_part_of_a_cell(write_suite, make, tmp_path):
    plain = write_suite(SUITE.replace(", RESOURCES", ""))
    play_here(plain, tmp_path / "plain")
    done = plan(Call(make("{cpus: 2, memory: 10MB}"), out=tmp_path / "plain", cpus=2))
    assert (done.done, done.stale, len(done.tasks)) == (12, 0, 0)
    with_them = plan(Call(make("{cpus: 2, memory: 10MB}"), out=tmp_path / "r", cpus=2))
    demands = {
        cell.pair.title: (task.demand.cpus, task.demand.memory)
        for task in with_them.tasks
        for cell in task.cells
    }
    assert sorted(demands.values()) == [(1, 0), (2, 10**7), (2, 10**7)]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (
            "2",
            r"suite.yaml:6: resources is 2; allowed: \{cpus: a whole number, memory: as in 8GB\}",
        ),
        ("{cpu: 2}", "resources is {'cpu': 2}; allowed: "),
        ("{cpus: 0}", "cpus is 0; allowed: a whole number from 1"),
        ("{cpus: 1.5}", "cpus is 1.5; allowed: "),
        ("{memory: 8}", "memory is 8; allowed: a number above 0 with its unit: MB, GB"),
        ("{memory: 8 TB}", "memory is '8 TB'"),
        ("{cpus: 3}", r"ckb-ucb\[beta_scale=0.5\] wants 3 CPUs per task; this run has 2 CPUs and"),
        ("{memory: 900000GB}", "wants 1 CPU and 900000 GB per task; this run has 2 CPUs and"),
    ],
)
def test_wrong_resources_are_refused_before_anything_is_played(make, tmp_path, wrong, why):
    with pytest.raises(Misuse, match=why) as refused:
        plan(Call(make(wrong), out=tmp_path / "r", cpus=2))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "r").exists()


def test_resources_of_a_problem_are_refused(write_suite, tmp_path):
    suite = write_suite(
        SUITE.replace("[rkhs-1d]", "[rkhs-1d: {resources: {cpus: 2}}]").replace(", RESOURCES", "")
    )
    with pytest.raises(Misuse, match="rkhs-1d is a problem; resources are those of an algorithm"):
        plan(Call(suite, out=tmp_path / "r", cpus=2))


@pytest.mark.usefixtures("forking")
def test_a_task_of_two_cpus_takes_two_workers(make, tmp_path):
    todo = plan(Call(make("{cpus: 2}"), out=tmp_path / "r", cpus=2, block=1))
    executor = ProcessExecutor(todo.suite.problems, todo.folder, 2, 2)
    together, submit = [], executor.submit

    def submitting(task):
        submit(task)
        together.append([pending_task.demand.cpus for pending_task in executor.pending])

    executor.submit = submitting
    try:
        assert sum(receipt.ok for receipt in scheduler_of(todo, executor).play()) == 12
    finally:
        executor.close()
    assert max(map(sum, together)) == 2
    assert [2] in together


def test_ray_is_told_and_a_cluster_without_such_a_machine_refuses(make, tmp_path):
    todo = plan(Call(make("{cpus: 2, memory: 10MB}"), out=tmp_path / "r", cpus=2))
    ray_options = []
    remote = SimpleNamespace(options=lambda **options: ray_options.append(options))
    demand = next(task.demand for task in todo.tasks if task.demand.cpus == 2)
    machines = [{"Alive": True, "Resources": {"CPU": 2.0, "memory": 1e9}}]
    ray = SimpleNamespace(
        nodes=lambda: machines,
        remote=lambda *play, **options: remote if play else lambda play: remote,
    )
    client = RayClient(ray, Join({}, todo.folder, None, "head:1", None), SimpleQueue())
    client._remote_for(demand, Company())
    assert ray_options == [{"max_retries": 1, "num_cpus": 2, "memory": 10**7}]
    for resources in ({"CPU": 1.0, "memory": 1e9}, {"CPU": 2.0, "memory": 1e6}):
        machines[:] = [{"Alive": True, "Resources": resources}]
        with pytest.raises(
            Misuse, match="wants 2 CPUs and 0.01 GB; no machine of the cluster has so much"
        ):
            client._remote_for(demand, Company())
    machines[:] = [{"Alive": True, "Resources": {"memory": 1e9}}]
    client._remote_for(demand, Company())  # a head without CPUs, whose workers are yet to start
