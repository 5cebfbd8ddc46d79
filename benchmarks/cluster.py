"""What a cluster of dask costs: for each task, and for a calibration, with workers on this machine.

    python benchmarks/cluster.py [--replicates 200] [--workers 2] [--problem si] [--tasks 1000]

A scheduler and workers are started on the loopback address. Wall time says little on a machine that does something else
as well, so CPU seconds are counted, of each process by itself: with a core for each, a calibration takes as long as the
busiest of them, and no number of workers makes it shorter than what client and scheduler do.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

import equifinal
from equifinal.samplers.running.cluster import Cluster, cluster

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.clusters import Machines, machines, until

SETTINGS: dict[str, Any] = {"draws": 500, "chains": 2, "seed": 1, "progress": False}
MANY = 1000


def cpu(pid: int | None = None) -> float:
    """CPU seconds that a process has used so far."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def spent(made: Machines) -> list[float]:
    """CPU seconds of client, scheduler and each worker."""
    return [cpu(), cpu(made.scheduler.pid), *(cpu(worker.pid) for worker in made.workers)]


def measured(made: Machines, work) -> tuple[float, list[float], Any]:
    before, began = spent(made), time.perf_counter()
    answer = work()
    after = spent(made)
    return time.perf_counter() - began, [b - a for a, b in zip(before, after, strict=True)], answer


def show(what: str, number: int, wall: float, used: list[float]) -> None:
    client, scheduler, *workers = used
    print(f"\n{what} ({number}): {wall:.1f} s wall")
    print(f"  CPU of the client     {client:8.2f} s, {1e3 * client / number:8.2f} ms each")
    print(f"  CPU of the scheduler  {scheduler:8.2f} s, {1e3 * scheduler / number:8.2f} ms each")
    for worker in workers:
        print(f"  CPU of a worker       {worker:8.2f} s")
    print(f"  CPU of all workers    {sum(workers):8.2f} s, {1e3 * sum(workers) / number:8.2f} ms each", flush=True)


def empty_tasks(executor: Cluster, number: int) -> None:
    for task in [executor.submit(abs, -1) for _ in range(number)]:
        task.result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--problem", default="si")
    parser.add_argument("--home", type=int, default=40, help="replicates at home, for comparison")
    asked = parser.parse_args()
    problem = equifinal.load(asked.problem)
    equifinal.calibrate(problem, replicates=2, **SETTINGS)  # compiles
    before, began = cpu(), time.perf_counter()
    home = equifinal.calibrate(problem, replicates=asked.home, **SETTINGS)
    each = (cpu() - before) / asked.home
    print(f"at home: {asked.home} replicates, {time.perf_counter() - began:.1f} s wall, {1e3 * each:.0f} ms CPU each")
    with (
        tempfile.TemporaryDirectory() as folder,
        machines(Path(folder), workers=asked.workers) as made,
        cluster(made.address) as executor,
    ):
        until(lambda: len(executor.client.nthreads()) == asked.workers)
        empty_tasks(executor, 20)
        wall, used, _ = measured(made, lambda: empty_tasks(executor, asked.tasks))
        show("tasks that do nothing", asked.tasks, wall, used)
        own = SETTINGS | {"executor": executor}
        wall, first, _ = measured(made, lambda: equifinal.calibrate(problem, replicates=2, **own))
        show("the first replicates, with everything compiled or loaded", 2, wall, first)
        wall, used, found = measured(made, lambda: equifinal.calibrate(problem, replicates=asked.replicates, **own))
        show("replicates", asked.replicates, wall, used)
    same = (found.ranks[: len(home.ranks)] == home.ranks).all()
    client, scheduler, *workers = used
    busiest = max(workers)
    print(f"\nranks as at home: {bool(same)}")
    print(
        f"speed-up over one process, a core for each: {asked.replicates * each / max(busiest, client, scheduler):.2f}"
    )
    per_task = max(client, scheduler) / asked.replicates
    one = sum(workers) / asked.replicates
    for number in (10, 100, MANY):
        rate = min(number / one, 1 / per_task)
        print(f"on paper, {number:5} workers: {rate:8.1f} replicates a second, {rate * each:6.0f} times one process")
    print(f"on paper, tasks of which {MANY} workers are all kept busy: at least {MANY * per_task:.1f} s each")


if __name__ == "__main__":
    main()
