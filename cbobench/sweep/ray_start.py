"""Start Ray on this machine, or join a cluster: tokens, a private folder, no module found where
none should be, and the code that the nodes of a cluster play with.

`--ship` sends cbobench, and the user's modules that the cells depend on, as they are here. Ray
packs whole packages, without what `EXCLUDED` names, and single files. What is installed from
elsewhere (NumPy, say) does not go.

Whatever is sent, a worker with another folder or other code than the driver's refuses its first
task, which ends the run (`play.task.play_task_on_worker`).
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cbobench.arithmetic import CHOICE
from cbobench.errors import CbobenchError, Misuse, show
from cbobench.registry import search_path
from cbobench.results.source import PACKAGE, closure, find_code
from cbobench.results.store import first_line
from cbobench.sweep.programs import run_apart
from cbobench.threads import address_space_limit, pin_threads

OBJECT_STORE = 256 * 2**20  # problems are small; results do not pass through it

LEAST_SPACE = 4_000_000  # kB; with less its processes die as they start, or wait for each other

# Milliseconds for which the driver hands a worker one task after the other. Then it asks for a
# worker anew, which takes some hundredths of a second, and other drivers have their turn. Ray's own
# 500 are less than most tasks take.
LEASE = 10_000

# of a package, as in .gitignore; the folder itself is "."
EXCLUDED = ["__pycache__", ".?*", "runs", "figures", "venv", "node_modules"]


@dataclass(frozen=True)
class Code:
    """Where the code lies that the workers of a cluster need.

    Attributes:
        sent: packages and single modules that are sent.
        folders: of the user's modules that are not sent, but found by the same path there.
    """

    sent: Collection[str] = ()
    folders: Collection[str] = ()


def prepare_worker(folders: Collection[str], place: str | None) -> None:
    """Look for modules in some folders, too, after all else; work in a place."""
    sys.path += [folder for folder in folders if folder not in sys.path]
    if place is not None:
        os.chdir(place)


def collect_code(pairs: Iterable[tuple[str, str]], ship: bool) -> Code:
    """Return what workers need to play some pairs.

    Args:
        pairs: names of problem and algorithm.
        ship: whether it is sent.

    Raises:
        Misuse: it cannot be sent, because it lies in an archive.
    """
    # Top-level modules: what lies in a package is found with it.
    needed: set[str] = set()
    for names in pairs:
        modules = closure(*names).keys()
        for name in names:
            module, _, attribute = name.partition(":")
            if ship and attribute and module not in modules:
                raise Misuse(
                    f"--ship cannot send {show(module)}: it is no file here; install it on every "
                    "machine"
                )
        needed |= {module.partition(".")[0] for module in modules}

    # Workers have a cbobench of their own, unless this one is sent.
    needed = needed | {PACKAGE} if ship else needed - {PACKAGE}
    files_and_folders = map(find_code, needed)
    places = {place for file, folders in files_and_folders for place in folders or (file,) if place}
    if ship:
        return Code(sent=sorted(map(str, places)))
    return Code(folders=sorted({str(place.parent) for place in places}))


def import_ray(address: str | None) -> Any:
    """Import Ray; before it reads its settings, turn usage reports off, tokens on, and, for a Ray
    on this machine, every port to loopback.

    A local Ray gets a token of its own: no other user of this machine can send it work, and nothing
    is written to the home folder. A cluster is joined with the token that is found here. Where this
    process has imported Ray before, tokens stay as they were.
    """
    pin_threads()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if address is None:  # where Ray's clusters are off, a node's address is that of loopback
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    os.environ.setdefault("RAY_worker_lease_timeout_milliseconds", str(LEASE))
    # A task that takes too much memory would be played again without end, and never be halved.
    os.environ.setdefault("RAY_task_oom_retries", "0")
    # One notice per worker about a default that does not concern tasks on CPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if (
        "ray" not in sys.modules
        and "RAY_AUTH_MODE" not in os.environ
        and (address is None or _has_token())
    ):
        os.environ["RAY_AUTH_MODE"] = "token"
        if address is None:
            os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(16))
    import ray

    return ray


def _has_token() -> bool:
    """Whether there is a token for clusters, in the places where Ray looks."""
    token = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    try:
        return bool(token) or Path("~/.ray/auth_token").expanduser().is_file()
    except RuntimeError:  # no home folder is known
        return False


def private_folder() -> Path:
    """A folder that is for this user alone, and is removed once this process has ended, however it
    did.

    Ray's own are for everyone to write into. Unix sockets lie in it, whose paths have at most 107
    bytes: Ray adds 68.
    """
    base = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="cbobench-", dir=base if len(base) <= 20 else "/tmp")
    # Ray's daemons take a moment to end once this process has, and write meanwhile.
    run_apart(
        'cat <&3; for i in $(seq 100); do rm -rf "$0"; sleep 0.1; [ -e "$0" ] || exit 0; done',
        folder,
    )
    return Path(folder)


def start_ray(cpus: int | None, address: str | None, code: Code | None = None) -> Any:
    """Start Ray on this machine, or join a cluster; returns the module.

    Args:
        cpus: of a Ray on this machine, None for all.
        address: of a cluster, or None.
        code: what is sent to a cluster.

    Raises:
        Misuse: no cluster answers at the address, or it asks for another token.
        CbobenchError: address space is limited to too little.
    """
    if (limit := address_space_limit()) < LEAST_SPACE:
        raise CbobenchError(
            f"Ray needs {LEAST_SPACE:,} kB of address space, which is limited to {limit:,.0f} kB; "
            "raise the limit (ulimit -v), or play with --engine processes"
        )
    if address is not None:
        _refuse_dead_address(address)
    ray = import_ray(address)
    folder = private_folder()
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        # Workers inherit it, and find what the driver finds: a user's module may lie beside the
        # suite.
        os.environ["PYTHONPATH"] = os.pathsep.join(search_path())
        options |= {"address": "local", "num_cpus": cpus, "include_dashboard": False}
        options |= {"object_store_memory": OBJECT_STORE, "_temp_dir": str(folder / "ray")}
    else:
        options["address"] = address
    runtime: dict[str, Any] = {}
    # as modules, for a job of Ray's may have a working folder of its own
    if code is not None and code.sent:
        runtime |= {"py_modules": list(code.sent), "excludes": EXCLUDED}
    if address is not None:
        runtime["worker_process_setup_hook"] = _arithmetic_hook(os.environ.get(CHOICE))
    if runtime:
        options["runtime_env"] = runtime
    messages = folder / "said"
    empty = folder / "empty"
    empty.mkdir()
    sys.argv[:1] = [str(empty / "cbobench")]
    try:
        # Ray's workers look for modules first in the driver's folder, and in that of its script.
        with chdir(empty), _stderr_to(messages):
            ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        location = address or "this machine"
        if (
            "Unauthenticated" in messages.read_text(errors="replace")
            or type(error).__name__ == "AuthenticationError"
        ):
            raise Misuse(
                f"Ray at {location} asks for another token than this machine's; copy "
                "~/.ray/auth_token from its head, "
                "or set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN to what they are there"
            ) from error
        raise Misuse(
            f"cannot start on Ray at {location}: {first_line(error)}; is the cluster up?"
        ) from error
    return ray


def _arithmetic_hook(choice: str | None) -> Callable[[], None]:
    """Return what a node's workers run first: Ray imports NumPy before they import cbobench.

    Each node itself finds the variables that its CPU needs. It travels whole, as the node may have
    another cbobench, or none, which is refused in one line later.
    """

    def choose() -> None:
        with suppress(ImportError):
            from cbobench.arithmetic import set_arithmetic

            set_arithmetic(choice)

    return choose


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """Keep what Ray's libraries write to standard error: why a head refuses is said nowhere
    else.
    """
    before = os.dup(2)
    with file.open("wb") as to:
        os.dup2(to.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _refuse_dead_address(address: str) -> None:
    """Refuse an address that nothing listens at: Ray would end this process after a minute of
    trying.
    """
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator:
        return  # "auto" and "local" are Ray's own words
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise Misuse(
            f"no Ray cluster answers at {address} ({error}); start one, or leave --address out"
        ) from error
