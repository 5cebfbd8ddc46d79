"""Work on a cluster of dask, with the draws of this machine: workers that could draw others are refused by name."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from equifinal.errors import DataError, EquifinalError, SamplingError
from equifinal.files import quoted, read_text
from equifinal.samplers.running.environment import PACKAGES, PYTHON, Environment, environment, versions

if TYPE_CHECKING:
    from distributed import Client

CONNECTING = 10.0  # seconds in which a scheduler must answer
WAITING = 120.0  # seconds without any worker before one gives up
LOOKING = 1.0  # seconds between two looks at the workers
SCHEMES, DEFAULT_PORT = ("tcp", "tls", "ws", "wss", "ucx"), 8786
MOST_NAMED = 5
SCHEDULER_FILE_BYTES = 100_000_000

Answer = TypeVar("Answer")


class OtherWorkerError(SamplingError):
    """A worker is not what the machine is that asks it."""


@contextmanager
def cluster(where: str) -> Iterator[Cluster]:
    """The cluster whose scheduler is at an address, as ``tcp://host:8786``, or whose scheduler file it is."""
    try:
        from distributed import Client
    except ImportError:
        raise DataError("`cluster` needs dask: install equifinal[cluster]") from None
    address = _address(where)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said in an error or a warning
    try:
        _knock(address)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions: they are compared below
            client = Client(address, timeout=CONNECTING, set_as_default=False)
    except Exception as error:  # of somebody who is no scheduler, nearly anything can be read
        ours = isinstance(error, OSError | ValueError | ImportError)
        reason = (
            getattr(error, "strerror", None) or (str(error).split("\n")[0] if ours else "") or "no answer of dask's"
        )
        raise DataError(
            f"`cluster`: no scheduler answers at {address} ({reason}); 'dask scheduler' starts one, and 'dask worker "
            f"{address}' a worker"
        ) from None
    try:
        made = Cluster(client)
        try:
            yield made
        finally:
            made.shutdown(wait=False)
    finally:
        with suppress(Exception):  # a scheduler that is gone cannot be told that we go
            client.close(timeout=5)


def as_executor(executor: Any) -> Executor | None:
    """An executor as it is, and a client of dask as one."""
    return Cluster(executor) if hasattr(executor, "get_versions") and hasattr(executor, "submit") else executor


def _address(where: str) -> str:
    if re.match(rf"({'|'.join(SCHEMES)})://.", where):
        return where
    if "://" not in where and Path(where).exists():
        return _in_scheduler_file(Path(where))
    if re.fullmatch(r"[\w.-]+:\d{1,5}", where):
        return f"tcp://{where}"
    raise DataError(
        f"`cluster`: {quoted(where)} is neither the address of a scheduler (such as tcp://host:8786) nor a file"
    )


async def _greet(address: str) -> None:
    """Raise soon where nobody listens, or somebody who is no scheduler: a client of dask would try again and again."""
    from distributed.comm import connect
    from distributed.security import Security

    comm = await connect(address, timeout=CONNECTING, **Security().get_connection_args("client"))
    comm.abort()


def _knock(address: str) -> None:
    from distributed.comm.addressing import parse_host_port

    scheme, place = address.split("://", 1)
    if scheme in ("tcp", "tls"):  # refused at once, if at all
        socket.create_connection(parse_host_port(place, DEFAULT_PORT), timeout=CONNECTING).close()
    asyncio.run(asyncio.wait_for(_greet(address), CONNECTING))


def _in_scheduler_file(path: Path) -> str:
    try:
        address = json.loads(read_text(path, SCHEDULER_FILE_BYTES))["address"]
    except (ValueError, KeyError, TypeError, RecursionError):
        address = None
    if not isinstance(address, str) or not address.startswith(tuple(f"{scheme}://" for scheme in SCHEMES)):
        raise DataError(
            f'`cluster`: {path} is not a scheduler file: that is JSON with the "address" of a scheduler, as '
            "dask's scheduler writes it"
        )
    return address


class Cluster(Executor):
    """The workers of a client as an executor: a task runs only on a worker that gives the draws of this machine.

    Work is a pure function of its arguments, so that a scheduler may have it done again where a worker was killed.
    """

    def __init__(self, client: Client):
        self.client = client
        self.address: str = str(getattr(client.scheduler, "address", "")) or "the scheduler"
        self._pending: set[Future] = set()
        self._watch: threading.Thread | None = None
        self._closed = False
        with _said(f"the scheduler at {self.address}"):
            self._wait_for_workers()
            require_same(client)

    def submit(self, work: Callable[..., Answer], /, *args: Any, **kwargs: Any) -> Future[Answer]:
        """Have it done by a worker."""
        if self._closed:
            raise RuntimeError("the cluster was left")
        theirs = self.client.submit(_as_at_home, environment(), work, args, kwargs, pure=False)
        ours: Future[Answer] = Future()
        self._pending.add(ours)
        ours.add_done_callback(self._pending.discard)
        ours.add_done_callback(lambda done: theirs.cancel() if done.cancelled() else None)
        theirs.add_done_callback(lambda done: self._hand_over(done, ours))
        if self._watch is None:
            self._watch = threading.Thread(target=self._look, daemon=True)
            self._watch.start()
        return ours

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._closed = True
        if not wait or cancel_futures:
            for future in list(self._pending):
                future.cancel()

    def _hand_over(self, theirs: Any, ours: Future) -> None:
        if ours.done():
            return
        if theirs.status == "finished":
            with suppress(Exception):  # it was cancelled meanwhile, or could not be fetched, which is told below
                ours.set_result(theirs.result())
                return
        error = self._explained(theirs)
        with suppress(Exception):
            ours.set_exception(error)

    def _explained(self, theirs: Any) -> BaseException:
        from distributed.scheduler import KilledWorker

        if theirs.status == "cancelled" or self.client.status not in ("running", "connecting"):
            return SamplingError(f"the connection to {self.address} was lost")
        error = theirs.exception()
        if isinstance(error, KilledWorker):
            return SamplingError(
                f"{error.allowed_failures + 1} workers died over the same work, the last one "
                f"{getattr(error.last_worker, 'address', error.last_worker)} (out of memory?)"
            )
        if isinstance(error, ImportError | AttributeError) and not isinstance(error, EquifinalError):
            try:
                require_same(self.client)  # one that came later may have another version
            except OtherWorkerError as other:
                return other
        return error if error is not None else SamplingError(f"{self.address} gave no answer")

    def _look(self) -> None:
        """Do not wait forever for workers that are gone."""
        since, told = time.monotonic(), False
        while not self._closed:
            time.sleep(LOOKING)
            try:
                there = bool(self.client.nthreads())
            except Exception:  # the client notices by itself that it lost its scheduler
                there = True
            if there or not self._pending:
                since, told = time.monotonic(), False
            elif not told:
                told = True
                warnings.warn(f"{self.address} has no worker left; waiting {WAITING:.0f} s for one", stacklevel=1)
            elif time.monotonic() - since > WAITING:
                lost = SamplingError(f"{self.address} has had no worker for {WAITING:.0f} s")
                for future in list(self._pending):
                    with suppress(Exception):
                        future.set_exception(lost)

    def _wait_for_workers(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=CONNECTING)
        except TimeoutError:
            raise DataError(f"{self.address} has no worker; start some with 'dask worker {self.address}'") from None


@contextmanager
def _said(who: str) -> Iterator[None]:
    try:
        yield
    except (EquifinalError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise SamplingError(f"{who} failed: {type(error).__name__}: {error}") from error


def require_same(client: Client) -> None:
    """Refuse workers with other versions or other source code; say which have another processor."""
    expected, names = environment(), _names(client)
    found: Any = client.get_versions(packages=list(PACKAGES))
    other = {}
    for address, about in found["workers"].items():
        packages = dict(about["packages"])
        packages[PYTHON] = ".".join(packages[PYTHON].split(".")[:2])
        other[address] = _differing(packages)
    _refuse({names.get(address, address): text for address, text in other.items() if text})
    there: Mapping[str, Any] = client.run(environment, on_error="return")
    source = {address: e for address, e in there.items() if not isinstance(e, tuple) or e[1] != expected.source}
    text = f"other source code of equifinal {dict(expected.versions)['equifinal']}"
    _refuse({names.get(address, address): text for address in source})
    elsewhere = [names.get(address, address) for address, e in there.items() if e[2] != expected.processor]
    if elsewhere:
        warnings.warn(
            f"{_listed(elsewhere)}: another processor or C library than here, so that draws may differ from those of "
            "this machine, and of another run, by what rounding makes of them",
            stacklevel=2,
        )


def _names(client: Client) -> dict[str, str]:
    """Workers by address, as they are called: by name and address, if they have one."""
    known = client.scheduler_info()["workers"]
    return {
        address: f"worker {about['name']} ({address})"
        if str(about.get("name", address)) != address
        else f"worker {address}"
        for address, about in known.items()
    }


def _differing(theirs: Mapping[str, str | None]) -> str:
    here = versions()
    return " and ".join(
        f"{name} {theirs.get(name) or 'not installed'} (here {here[name]})"
        for name in here
        if theirs.get(name) != here[name]
    )


def _refuse(other: Mapping[str, str]) -> None:
    if other:
        what = "; ".join(f"{name} has {text}" for name, text in list(other.items())[:MOST_NAMED])
        more = f"; and {len(other) - MOST_NAMED} more" if len(other) > MOST_NAMED else ""
        raise OtherWorkerError(f"the same draws need the same software everywhere: {what}{more}")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _as_at_home(home: Environment, work: Callable[..., Answer], args: tuple, kwargs: dict) -> Answer:
    """On the worker: the work, if its results can be trusted to be those of the machine that asked."""
    here = environment()
    if here[:2] != home[:2]:
        from distributed import get_worker

        worker = get_worker()
        differing = [
            f"{name} {own} (there {asked})"
            for (name, own), (_, asked) in zip(here[0], home[0], strict=False)
            if own != asked
        ]
        text = " and ".join(differing) or "other source code of equifinal"
        raise OtherWorkerError(
            f"worker {worker.name} ({worker.address}) has {text}; the same draws need the same software"
        )
    return work(*args, **kwargs)
