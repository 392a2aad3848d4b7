"""User tables, and original data: wrong files, wrong hashes, and fetching from a loopback
server.
"""

from __future__ import annotations

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

from cbobench.errors import CbobenchError, Misuse
from cbobench.problems import data
from cbobench.problems.data import DataFolder, DataSet, fetch
from cbobench.problems.tables.table import UserTable
from tests.helpers import prepare_class

ROWS = pd.DataFrame(
    np.random.default_rng(0).normal([1, 2, 3], 0.5, (40, 3)), columns=["a", "b", "c"]
)


def table(base, **settings):
    return prepare_class(UserTable, base, **settings)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_as_csv_or_parquet(tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    frame = ROWS.assign(day="monday")
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    task = table(tmp_path, rows=path.name, threshold=1.5, ignore=["day"])
    np.testing.assert_allclose(task.played.table.mean, ROWS.to_numpy().mean(axis=0))
    np.testing.assert_allclose(task.actions.covariance, np.corrcoef(ROWS.to_numpy(), rowvar=False))
    assert task.actions.names == ("a", "b", "c")
    drawn = task.draw([np.random.default_rng(0)])
    assert (drawn.g <= 0)[0, 0].tolist() == [False, True, True]
    np.testing.assert_allclose(
        drawn.noise[0, 0], np.abs(ROWS.to_numpy() - ROWS.to_numpy().mean(axis=0)).max()
    )
    assert task.identity() == {"rows": hashlib.sha256(path.read_bytes()).hexdigest()}


def test_mean_and_covariance(tmp_path):
    pd.DataFrame({"mean": [1.0, 2.0]}).to_csv(tmp_path / "mean.csv", index=False)
    pd.DataFrame([[1.0, 0.3], [0.3, 1.0]]).to_csv(tmp_path / "cov.csv", index=False)
    task = table(tmp_path, mean="mean.csv", covariance="cov.csv", R=0.1, threshold=1.5)
    assert task.actions.covariance[0, 1] == 0.3
    drawn = task.draw([np.random.default_rng(0)])
    np.testing.assert_allclose(
        drawn.norm[0, 0] ** 2, np.array([1, 2]) @ np.linalg.solve([[1, 0.3], [0.3, 1]], [1, 2])
    )


WRONG = {
    "missing": (lambda p: None, "does not exist"),
    "nan": (lambda p: ROWS.mask(ROWS > 2.9).to_csv(p, index=False), "missing or infinite entries"),
    "huge": (lambda p: (ROWS * 1e200).to_csv(p, index=False), "beyond 1e100"),
    "one row": (lambda p: ROWS[:1].to_csv(p, index=False), "at least 2"),
    "constant": (lambda p: ROWS.assign(a=1.0).to_csv(p, index=False), "column 0 never changes"),
    "infeasible": (
        lambda p: (ROWS - 10).to_csv(p, index=False),
        "no feasible action: the best mean is -",
    ),
}


@pytest.mark.parametrize(("write", "message"), WRONG.values(), ids=WRONG)
def test_wrong_tables_are_refused(tmp_path, write, message):
    write(tmp_path / "rows.csv")
    with pytest.raises(Misuse, match=message):
        table(tmp_path, rows="rows.csv", threshold=1.5)


def test_other_wrong_tables(tmp_path):
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "rows.xls").write_text("")
    pd.DataFrame([[1.0, 2.0], [2.0, 1.0]]).to_csv(tmp_path / "cov.csv", index=False)
    pd.DataFrame(np.eye(2)).to_csv(tmp_path / "two.csv", index=False)
    for settings, message in (
        ({"rows": "rows.xls"}, "allowed: .csv, .parquet"),
        ({}, "needs either rows: FILE, or mean: FILE"),
        ({"mean": "rows.csv"}, "also needs covariance: FILE and R"),
        ({"rows": "rows.csv", "covariance": "cov.csv"}, "not positive semi-definite"),
        ({"rows": "rows.csv", "covariance": "two.csv"}, "shape .2, 2., but there are 3 arms"),
    ):
        with pytest.raises(Misuse, match=message):
            table(tmp_path, layout="readings", **settings)


@pytest.fixture
def server(tmp_path):
    """A loopback server of a folder that holds a small file in the place of fin.csv."""
    served = tmp_path / "served"
    served.mkdir()
    (served / "fin.csv").write_text("prices")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_port}/"
    http.shutdown()
    http.server_close()
    thread.join()


def test_fetch_checks_the_hash_and_keeps_nothing_wrong(tmp_path, server, monkeypatch):
    target = tmp_path / "cache"
    monkeypatch.setattr(data, "REPOSITORY", server)
    with pytest.raises(CbobenchError, match="could not fetch fin.csv: .*nothing was kept"):
        fetch("stocks", target)
    assert list(target.iterdir()) == []
    right = DataSet("fin.csv", hashlib.sha256(b"prices").hexdigest(), "")
    monkeypatch.setitem(data.DATA_SETS, "stocks", right)
    assert fetch("stocks", target).read_text() == "prices"
    assert DataFolder(target).find("stocks") == target / "fin.csv"
    monkeypatch.setitem(data.DATA_SETS, "stocks", DataSet("other.csv", right.sha256, ""))
    with pytest.raises(CbobenchError, match="404"):
        fetch("stocks", target)
