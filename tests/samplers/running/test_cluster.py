"""Real schedulers and workers of dask, on the loopback address: killed, out of date, gone."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from equifinal.errors import DataError, SamplingError
from equifinal.samplers.running import cluster as clusters
from equifinal.samplers.running.cluster import OtherWorkerError, as_executor, cluster
from equifinal.samplers.running.run import Draws, RunSettings, run
from equifinal.samplers.running.under_way import Update
from equifinal.studies.calibrate.replicates import calibrate
from tests.support.clusters import ROOT, Machines, machines, until
from tests.support.problems import decay
from tests.support.running import assert_same_draws

SETTINGS = RunSettings(chains=3, warmup=100, draws=400, seed=7)


@pytest.fixture(scope="module")
def plain() -> Draws:
    return run(decay(), SETTINGS)


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equifinal.samplers.running.under_way.SEGMENT_SECONDS", 0.02)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Machines]:
    with machines(tmp_path, workers=2) as made:
        yield made


# --- addresses and files ---


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "is not a scheduler file: that is JSON"),
        ('{"address": 3}', "is not a scheduler file"),
        ('{"address": "file:///etc/passwd"}', "is not a scheduler file"),
        ('{"id": "tcp://127.0.0.1:1"}', "is not a scheduler file"),
        ('{"address": "tcp://127.0.0.1:1"}', r"no scheduler answers at tcp://127.0.0.1:1 \(Connection refused\)"),
        ("[" * 100_000, "is not a scheduler file"),
    ],
)
def test_scheduler_files_that_lead_nowhere(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(text)
    with pytest.raises(DataError, match=words), cluster(str(file)):
        pass


@pytest.mark.parametrize(
    ("where", "words"),
    [
        (
            "127.0.0.1:1",
            r"no scheduler answers at tcp://127.0.0.1:1 \(Connection refused\); 'dask scheduler' starts one",
        ),
        (
            "scheduler.jsn",
            r"'scheduler.jsn' is neither the address of a scheduler \(such as tcp://host:8786\) nor a file",
        ),
        ("ftp://host:8786", "neither the address"),
        ("tcp://", "neither the address"),
        ("tcp://127.0.0.1:port", "no scheduler answers"),
        ("/dev/zero", "not a regular file"),
    ],
)
def test_addresses_that_lead_nowhere(where: str, words: str) -> None:
    with pytest.raises(DataError, match=words), cluster(where):
        pass


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.0 400 Bad Request\r\n\r\n"])
def test_somebody_else_listens(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONNECTING", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def serve() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                    kept[-1].sendall(answer)
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(DataError, match="no scheduler answers"), cluster(f"127.0.0.1:{server.getsockname()[1]}"):
            pass
        server.shutdown(socket.SHUT_RDWR)


def test_dask_may_not_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(DataError, match=r"`cluster` needs dask: install equifinal\[cluster\]"), cluster("host:8786"):
        pass


def test_other_executors_are_left_alone() -> None:
    assert as_executor(None) is None
    with clusters_of_threads() as threads:
        assert as_executor(threads) is threads


def clusters_of_threads():
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1)


# --- the same draws ---


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 4])
def test_killed_workers_change_no_draw(plain: Draws, two: Machines, short_segments: None, kills: int) -> None:
    killed = 0

    def kill(update: Update) -> None:
        nonlocal killed
        if update.iteration > 20 * killed and killed < kills:
            two.add_worker()
            two.kill_worker()  # while it may be at work on nothing: the next segment finds it gone
            killed += 1
            if killed == kills:  # and one in the midst of a segment
                threading.Timer(0.05, lambda: (two.add_worker(), two.kill_worker())).start()

    with cluster(two.address) as executor:
        found = run(decay(), SETTINGS, executor=executor, progress=kill)
    assert killed == kills
    assert_same_draws(found, plain)


@pytest.mark.slow
def test_models_are_made_once_on_each_worker(plain: Draws, tmp_path: Path, short_segments: None) -> None:
    """Although a worker has two threads that get the same work at the same time, again and again."""
    with machines(tmp_path, workers=1, threads=2) as made, cluster(made.address) as executor:
        executor.client.run(_count_posteriors)
        assert_same_draws(run(decay(), SETTINGS, executor=executor), plain)
        assert list(executor.client.run(_counted).values()) == [1]


def _count_posteriors() -> None:
    from equifinal.posterior.posterior import Posterior

    Posterior.made = 0  # type: ignore[attr-defined]
    make = Posterior.__init__

    def counted(self, problem) -> None:
        Posterior.made += 1  # type: ignore[attr-defined]
        make(self, problem)

    Posterior.__init__ = counted  # type: ignore[method-assign]


def _counted() -> int:
    from equifinal.posterior.posterior import Posterior

    return Posterior.made  # type: ignore[attr-defined]


CLIENT = """
import sys
from equifinal.samplers.running import under_way
from equifinal.samplers.running.cluster import cluster
from equifinal.samplers.running.run import run
from tests.samplers.running.test_cluster import SETTINGS
from tests.support.problems import decay
under_way.CHECKPOINT_SECONDS, under_way.SEGMENT_SECONDS = 0.0, 0.02
with cluster(sys.argv[1]) as executor:
    run(decay(), SETTINGS, executor=executor, checkpoint=sys.argv[2], progress=lambda update: print(update.iteration))
"""


@pytest.mark.slow
def test_a_client_that_was_killed_goes_on_with_the_same_draws(plain: Draws, two: Machines, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint.npz"
    arguments = [sys.executable, "-u", "-c", CLIENT, two.address, str(file)]
    client = subprocess.Popen(arguments, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    until(lambda: int(client.stdout.readline()) > 120)
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdout.close()
    with cluster(str(two.file)) as executor:
        found = run(decay(), SETTINGS, executor=executor, checkpoint=file)
    assert found.resumed_at
    assert_same_draws(found, plain)


@pytest.mark.slow
def test_calibration_has_the_same_ranks(two: Machines) -> None:
    settings = {"replicates": 12, "sampler": "random-walk", "draws": 100, "chains": 2, "ranked": 9, "progress": False}
    problem = decay().problem
    with cluster(two.address) as executor:
        threading.Timer(1.0, lambda: (two.add_worker(), two.kill_worker())).start()
        found = calibrate(problem, executor=executor, **settings)
    np.testing.assert_array_equal(found.ranks, calibrate(problem, **settings).ranks)


# --- workers that would draw something else, or are gone ---


@pytest.mark.slow
def test_workers_with_other_software_are_refused_by_name(two: Machines, tmp_path: Path) -> None:
    """Another version, other source code under the same version; at the start, and when they come later."""
    newer = tmp_path / "newer"
    (newer / "equifinal-9.9.dist-info").mkdir(parents=True)
    (newer / "equifinal-9.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: equifinal\nVersion: 9.9\n"
    )
    edited = tmp_path / "edited"
    shutil.copytree(ROOT / "src" / "equifinal", edited / "equifinal", ignore=shutil.ignore_patterns("__pycache__"))
    with open(edited / "equifinal" / "errors.py", "a") as file:
        file.write("\n# another line\n")
    with cluster(two.address) as executor:
        executor.submit(abs, -1).result()
        two.add_worker("late", PYTHONPATH=f"{edited}{os.pathsep}{ROOT}")
        until(lambda: len(executor.client.nthreads()) == 3)
        with pytest.raises(OtherWorkerError, match=r"worker late \(tcp://127.0.0.1:\d+\) has other source code"):
            [task.result() for task in [executor.submit(pow, i, 2) for i in range(60)]]
    with (
        pytest.raises(OtherWorkerError, match=r"worker late \(tcp.*\) has other source code of equifinal \d"),
        cluster(two.address),
    ):
        pass
    two.workers.pop().kill()
    two.add_worker("newer", PYTHONPATH=f"{newer}{os.pathsep}{ROOT}")
    with pytest.raises(OtherWorkerError, match=r"worker newer \(tcp.*\) has equifinal 9.9 \(here \d"):
        until(lambda: _is_refused(two.address))


def _is_refused(address: str) -> bool:
    """Raise as soon as the worker is there."""
    with cluster(address):
        return False


@pytest.mark.slow
def test_nobody_waits_forever_for_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "CONNECTING", 3.0)
    monkeypatch.setattr(clusters, "WAITING", 2.0)
    with machines(tmp_path, workers=0) as made:
        with (
            pytest.raises(DataError, match=r"has no worker; start some with 'dask worker tcp://127.0.0.1:\d+'"),
            cluster(made.address),
        ):
            pass
        monkeypatch.setattr(clusters, "CONNECTING", 60.0)
        made.add_worker()
        with cluster(made.address) as executor:
            executor.submit(abs, -1).result()
            made.kill_worker()
            with (
                pytest.warns(UserWarning, match="has no worker left"),
                pytest.raises(SamplingError, match="has had no worker for 2 s"),
            ):
                executor.submit(abs, -1).result()


@pytest.mark.slow
def test_a_scheduler_that_is_killed_ends_the_run_and_keeps_its_checkpoint(
    plain: Draws, two: Machines, tmp_path: Path, short_segments: None
) -> None:
    file = tmp_path / "checkpoint.npz"

    def kill(update: Update) -> None:
        two.scheduler.kill()

    with cluster(two.address) as executor, pytest.raises(SamplingError, match=r"the connection to tcp.* was lost"):
        run(decay(), SETTINGS, executor=executor, progress=kill, checkpoint=file)
    found = run(decay(), SETTINGS, checkpoint=file)
    assert found.resumed_at
    assert_same_draws(found, plain)
