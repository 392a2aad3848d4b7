"""A store that fails: asked again for as long as it may be away, then one line; no cell is played
for it twice.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import random
import resource
import shutil
import tempfile
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

import cbobench
from cbobench.call import Call
from cbobench.cli import main
from cbobench.errors import Misuse
from cbobench.play import task
from cbobench.results import folder as folders
from cbobench.results import store
from cbobench.results.folder import RunFolder, open_run
from cbobench.results.query import read_published
from cbobench.results.store import StoreFailure
from cbobench.results.verify import verify
from cbobench.sweep import children
from cbobench.sweep.plan import plan
from cbobench.sweep.run import execute
from tests.helpers import Listener, assert_same_rows


def passed_on(name):
    """A method that asks whether it may, and then asks the disk."""

    def method(self, *args, **options):
        self._ask(name)
        return getattr(self.disk, name.removesuffix("_selector"))(*args, **options)

    return method


class Failing(pafs.FileSystemHandler):
    """A bucket on a local disk, whose calls fail when told to.

    Args:
        fails: takes the number of a call and its name, and says what it raises, or None.
    """

    def __init__(self, fails):
        self.disk, self.fails, self.count = pafs.LocalFileSystem(), fails, 0

    def _ask(self, name):
        self.count += 1
        error = self.fails(self.count, name)
        if error is not None:
            raise error

    def get_type_name(self):
        return "bucket"

    def normalize_path(self, path):
        return path

    def create_dir(self, path, recursive):
        self._ask("create_dir")
        self.disk.create_dir(path, recursive=recursive)

    def open_input_file(self, path):
        self._ask("open")
        return pa.PythonFile(_Read(self, self.disk.open_input_file(path)), mode="r")

    open_input_stream = open_input_file
    get_file_info, get_file_info_selector = (
        passed_on("get_file_info"),
        passed_on("get_file_info_selector"),
    )
    move, delete_file = passed_on("move"), passed_on("delete_file")
    copy_file = delete_dir = delete_dir_contents = delete_root_dir_contents = open_append_stream = (
        None
    )

    def open_output_stream(self, path, metadata):
        self._ask("upload")
        return pa.PythonFile(_Write(self, self.disk.open_output_stream(path)), mode="w")


class _Read:
    def __init__(self, bucket, file):
        self.bucket, self.file = bucket, file

    def __getattr__(self, name):
        return getattr(self.file, name)

    def read(self, size=-1):
        self.bucket._ask("read")
        return self.file.read(size if size >= 0 else None)


class _Write(_Read):
    """An upload that breaks off has stored its beginning."""

    def write(self, data):
        data = bytes(data)
        try:
            self.bucket._ask("write")
        except OSError:
            self.file.write(data[: len(data) // 2])
            raise
        return self.file.write(data)


AWAY = OSError(
    "When uploading key 'x': AWS Error SERVICE_UNAVAILABLE during PutObject operation: HTTP "
    "status 503"
)


@pytest.fixture
def bucket(monkeypatch):
    """Makes every run folder lie in a bucket that fails as it is told; pauses are short."""
    monkeypatch.setattr(store, "FIRST_PAUSE", 1e-4)
    monkeypatch.setattr(store, "LONGEST_PAUSE", 1e-3)

    def make(fails):
        handler = Failing(fails)
        place = cached_property(lambda self: (pafs.PyFileSystem(handler), self.uri))
        place.__set_name__(RunFolder, "_place")
        monkeypatch.setattr(RunFolder, "_place", place)
        return handler

    return make


@pytest.fixture
def starts(monkeypatch):
    """How many blocks began to be played."""
    count = []
    begin = task.start
    monkeypatch.setattr(task, "start", lambda *args: count.append(1) or begin(*args))
    return count


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_fifth_of_all_calls_may_fail(small_suite, tmp_path, bucket, starts, seed):
    suite = small_suite(horizon=20)
    cbobench.run(suite, out=tmp_path / "disk", cpus=0)
    rng = random.Random(seed)
    starts.clear()
    failing = bucket(lambda count, name: AWAY if rng.random() < 0.2 else None)
    outcome = cbobench.run(suite, out=tmp_path / "run", cpus=0, block=2)
    assert (outcome.played, outcome.failed, outcome.absent) == (12, 0, ())
    assert len(starts) == 6, "no block was played twice"
    assert failing.count > 60
    assert_same_rows(tmp_path / "disk", tmp_path / "run")
    assert verify(open_run(tmp_path / "run")).damaged == []


@pytest.mark.parametrize(
    "name",
    ["write", *(pytest.param(name, marks=pytest.mark.long) for name in ("read", "upload", "open"))],
)
def test_a_store_that_stays_away_ends_the_run_in_one_line(
    small_suite, tmp_path, bucket, starts, monkeypatch, name
):
    """Away from the middle on; what is complete stays, and the same call resumes."""
    suite, run = small_suite(horizon=20), tmp_path / "run"
    todo = plan(Call(suite, out=run, cpus=0, block=1))
    listener = Listener()
    monkeypatch.setenv(store.RETRY_VARIABLE, "0.02")
    bucket(
        lambda count, operation: AWAY if len(listener.receipts) >= 3 and operation == name else None
    )

    def play_and_read():
        execute(todo, listener)
        cbobench.load_cells(run)

    with pytest.raises(StoreFailure, match="when that is mended the same command resumes") as error:
        play_and_read()
    assert "\n" not in str(error.value)
    assert "SERVICE_UNAVAILABLE" in str(error.value)
    bucket(lambda count, operation: None)
    complete = len(read_published(open_run(run)))
    assert complete >= 3
    assert len(starts) <= complete + 1, (
        "a store's failure is no cell's: nothing is played again one by one"
    )
    assert cbobench.run(suite, out=run, cpus=0, block=1).played == 12 - complete
    assert len(cbobench.load_cells(run)) == 12


def test_a_complete_run_is_shown_where_nothing_can_be_written(tmp_path, bucket, capsys):
    command = ["run", "first", "--seeds", "1", "--cpus", "0", "--out", str(tmp_path / "run")]
    assert main(command) == 0
    table = capsys.readouterr().out
    read_only = PermissionError(errno.EROFS, "Read-only file system")
    bucket(lambda count, name: read_only if name in ("upload", "create_dir") else None)
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out == table
    assert f"this call is not recorded: cannot write to {tmp_path / 'run'}: Read-only" in err


def never(count, name):
    """A bucket that another process can have."""


DEAF = """
import time
from cbobench.algorithms.references import Random


class Deaf(Random):
    def ask(self, t):
        while True:
            try:
                time.sleep(1)
            except BaseException:
                pass
"""


def test_a_cell_that_hangs_in_a_run_in_a_bucket_is_a_row_with_its_stack(
    tmp_path, bucket, monkeypatch
):
    (tmp_path / "deaf.py").write_text(DEAF)
    (tmp_path / "temporary").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(children, "can_fork", lambda: True)
    bucket(never)
    suite = {"suite": "s", "horizon": 5, "seeds": 1, "timeout": 1}
    suite |= {"problems": ["rkhs-1d"], "algorithms": ["deaf:Deaf"]}
    cbobench.run(suite, out=tmp_path / "run", cpus=1)
    (cell,) = cbobench.load_cells(tmp_path / "run").itertuples()
    assert cell.error.endswith("and could not be interrupted")
    assert "in ask" in cell.traceback
    assert not [*(tmp_path / "temporary").iterdir()]


def test_what_waiting_does_not_mend_is_said_at_once(small_suite, tmp_path, bucket):
    denied = OSError(
        "When uploading key 'x': AWS Error ACCESS_DENIED during PutObject operation: Access Denied"
    )
    failing = bucket(lambda count, name: denied if name == "upload" else None)
    with pytest.raises(Misuse, match="cannot write to .*ACCESS_DENIED.*; give another --out"):
        cbobench.run(small_suite(), out=tmp_path / "run", cpus=0)
    assert failing.count < 20


def test_patience_is_a_number_of_seconds(monkeypatch):
    for patience in ("a while", "-1", "inf"):
        monkeypatch.setenv(store.RETRY_VARIABLE, patience)
        with pytest.raises(
            Misuse, match="CBOBENCH_STORE_PATIENCE is .*; it must be a number of seconds"
        ):
            store.retry_seconds()


def test_a_run_folder_that_is_removed_is_not_made_again(small_suite, tmp_path):
    class Removing(Listener):
        def played(self, receipt):
            shutil.rmtree(run)

    run = tmp_path / "run"
    todo = plan(Call(small_suite(horizon=20), out=run, cpus=0, block=1))
    with pytest.raises(StoreFailure, match=f"cannot write to {run}: No such file or directory"):
        execute(todo, Removing())
    assert not run.exists()


@contextlib.contextmanager
def short_files():
    """The kernel refuses to write more than 9,000 bytes into a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_ends_the_run_in_one_line(write_suite, tmp_path, capsys):
    """In the middle of a file of rounds; the same command resumes."""
    run = tmp_path / "run"
    suite = write_suite(
        "suite: full\nhorizon: 400\nseeds: 6\nproblems: [rkhs-1d]\nalgorithms: [random]\n"
    )
    cbobench.run(suite, out=run, cpus=0, horizon=5, seeds=1)
    with short_files():
        assert main(["run", str(suite), "--out", str(run), "--cpus", "0"]) == 1
    error = capsys.readouterr().err
    assert (
        f"cbobench: cannot write to {run}: File too large; when that is mended the same command"
        in error
    )
    assert "; what is published stays, to go on: cbobench run" in error
    assert not list(tmp_path.rglob("*.tmp"))
    assert not list((run / "drivers").iterdir())
    assert cbobench.run(suite, out=run, cpus=0).played == 6


def test_an_upload_that_ends_short_is_tried_again(small_suite, tmp_path, bucket):
    """The store says nothing, and keeps the beginning."""
    short = []
    handler = bucket(lambda count, name: None)

    class Short(_Write):
        def write(self, data):
            short.append(len(data))
            return (
                self.file.write(bytes(data)[: len(data) // 2])
                if len(short) == 4
                else self.file.write(bytes(data))
            )

    handler.open_output_stream = lambda path, metadata: pa.PythonFile(
        Short(handler, handler.disk.open_output_stream(path)), mode="w"
    )
    assert cbobench.run(small_suite(horizon=20), out=tmp_path / "run", cpus=0).played == 12
    assert len(short) > 4
    assert verify(open_run(tmp_path / "run")).damaged == []


def test_a_file_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done, fsync, file = [], os.fsync, tmp_path / "run" / "run.json"
    monkeypatch.setattr(
        os,
        "fsync",
        lambda number: done.append("there" if file.exists() else "fsync") or fsync(number),
    )
    replace = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda self, target: done.append("replace") or replace(self, target)
    )
    open_run(tmp_path / "run").write_json("run.json", {})
    assert done == ["fsync", "replace"]


# A network file system, mounted: the calls of a local disk ----------------------------------------


@pytest.fixture
def waits(monkeypatch):
    """The pauses between tries, which pass at once."""
    clock, pauses = [0.0], []
    monkeypatch.setattr(store.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(
        store.time,
        "sleep",
        lambda seconds: (pauses.append(seconds), clock.append(clock.pop() + seconds)),
    )
    return pauses


def failing(call, errors):
    """A call that raises some errors, one each time, and then is what it was."""
    left = [*errors]

    def tried(*args, **options):
        if left:
            number = left.pop(0)
            raise OSError(number, os.strerror(number))
        return call(*args, **options)

    return tried


CALLS = [(os, "fsync"), (Path, "replace"), (Path, "mkdir"), (store, "_PatientFile")]


@pytest.mark.parametrize("number", [errno.ESTALE, errno.ETIMEDOUT, errno.EBUSY])
@pytest.mark.parametrize(("owner", "name"), CALLS)
def test_a_mounted_disk_that_is_away_is_waited_for(
    tmp_path, monkeypatch, waits, owner, name, number
):
    """Where a file is made, brought to the disk and named, by the rule that holds where it is
    read.
    """
    monkeypatch.setattr(owner, name, failing(getattr(owner, name), [number] * 9))
    run = open_run(tmp_path / "run")
    run.write_json("run.json", {"of": "the run"})
    assert run.read_json("run.json") == {"of": "the run"}
    assert len(waits) == 9
    assert sum(waits) > 20, "for longer than a moment"


def test_what_a_flush_may_have_dropped_is_written_again(tmp_path, monkeypatch, waits):
    """The first failure of a flush may be the only one that tells: the system then takes the pages
    for clean.
    """
    done, write = [], io.FileIO.write
    flush = failing(os.fsync, [errno.ESTALE, errno.EBUSY])
    monkeypatch.setattr(os, "fsync", lambda number: done.append("flush") or flush(number))

    class Told(store._PatientFile):
        def write(self, data):
            done.append(bytes(data))
            return write(self, data)

    monkeypatch.setattr(store, "_PatientFile", Told)
    open_run(tmp_path / "run").publish("rounds/a.parquet", lambda sink: sink.write(b"rounds"))
    assert done == [b"rounds", "flush"] * 3
    assert (tmp_path / "run" / "rounds" / "a.parquet").read_bytes() == b"rounds"


def test_what_a_flush_lost_is_not_published(tmp_path, monkeypatch, waits):
    """The pages were dropped, and zeros of the same length are read."""
    flush = failing(os.fsync, [errno.ESTALE])

    def drop(number):
        try:
            flush(number)
        except OSError:
            os.pwrite(number, bytes(6), 0)
            raise

    monkeypatch.setattr(os, "fsync", drop)
    run = open_run(tmp_path / "run")
    with pytest.raises(
        StoreFailure, match="the disk lost what was written: Stale file handle; when that is mended"
    ):
        run.publish("rounds/a.parquet", lambda sink: sink.write(b"rounds"))
    assert [path for path in (tmp_path / "run").rglob("*") if path.is_file()] == []


def test_writes_are_waited_for(tmp_path, monkeypatch, waits):
    write = failing(io.FileIO.write, [errno.ESTALE, errno.EBUSY])

    class Flaky(io.FileIO):
        def write(self, data):
            return write(self, data)

    class File(store._PatientFile, Flaky):
        pass

    monkeypatch.setattr(store, "_PatientFile", File)
    content = random.Random(1).randbytes(100_000)

    def in_pieces(sink):
        for i in range(0, len(content), 999):
            sink.write(content[i : i + 999])

    open_run(tmp_path / "run").publish("rounds/a.parquet", in_pieces)
    assert (tmp_path / "run" / "rounds" / "a.parquet").read_bytes() == content, (
        "nothing twice, and nothing lost"
    )
    assert len(waits) == 2


@pytest.mark.parametrize("first", [errno.ENOENT, errno.ETIMEDOUT])
def test_a_rename_whose_answer_is_lost_is_done(tmp_path, monkeypatch, waits, first):
    """The call is sent again, and finds nothing to rename; where there is nothing, nothing was
    renamed.
    """
    replace = Path.replace

    def lost(self, target):
        if not self.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        replace(self, target)
        raise OSError(first, os.strerror(first))

    run = open_run(tmp_path / "run")
    run.write_json("old.json", {"of": "before"})
    monkeypatch.setattr(Path, "replace", lost)
    run.write_json("run.json", {"of": "the run"})
    assert run.read_json("run.json") == {"of": "the run"}

    def removed(self, target):
        self.unlink()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr(Path, "replace", removed)
    with pytest.raises(StoreFailure, match="No such file"):
        run.write_json("old.json", {"of": "after"})
    assert run.read_json("old.json") == {"of": "before"}


def test_a_mounted_disk_that_stays_away_ends_the_run_in_one_line(tmp_path, monkeypatch, waits):
    monkeypatch.setattr(os, "fsync", failing(os.fsync, [errno.ESTALE] * 1000))
    with pytest.raises(
        StoreFailure, match=r"cannot reach .*: Stale file handle; when that is mended"
    ) as error:
        open_run(tmp_path / "run").write_json("run.json", {})
    assert "\n" not in str(error.value)
    assert 295 < sum(waits) < 305, "five minutes"
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_disk_that_is_away_while_a_table_is_read_is_no_damage(small_suite, tmp_path, monkeypatch):
    run = tmp_path / "run"
    cbobench.run(small_suite(horizon=5), out=run, cpus=0)
    monkeypatch.setattr(folders.pq, "ParquetFile", failing(folders.pq.ParquetFile, [errno.ESTALE]))
    with pytest.raises(StoreFailure, match="cannot reach .*: Stale file handle"):
        open_run(run).footer("cells", open_run(run).names("cells")[0])
