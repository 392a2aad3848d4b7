"""Bundles that no cbobench exported, though their digests agree: a line each."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cbobench
from cbobench.errors import DamagedRun
from cbobench.report.curves import curves
from cbobench.report.load import Run
from cbobench.results.bundle import FILES
from cbobench.results.export import export

SUITE = {
    "suite": "mine", "horizon": 20, "seeds": 3, "algorithms": ["random"],
    "problems": ["rkhs-1d", {"rkhs-1d": {"constraint": "independent", "label": "free"}}],
}  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forged")
    cbobench.run(SUITE, out=folder / "run", cpus=0)
    return export(folder / "run", folder / "mine.zip").file


def forged(bundle, out, kind, change):
    """A bundle whose digests agree with a table that was changed."""
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    about, table = json.loads(files["bundle.json"]), files[FILES[kind]]
    sink = io.BytesIO()
    pq.write_table(change(pq.read_table(io.BytesIO(table))), sink, store_schema=False)
    about["files"][FILES[kind]] = hashlib.sha256(sink.getvalue()).hexdigest()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in (files | {FILES[kind]: sink.getvalue(), "bundle.json": json.dumps(about).encode()}).items():
            archive.writestr(name, data)
    return out


def all_are(column, value):
    """A change of a table that gives all rows one value."""

    def change(table):
        at = table.column_names.index(column)
        return table.set_column(at, column, pa.array([value] * len(table), table.schema.field(column).type))

    return change


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("cells", lambda table: table.drop_columns(["cell"]), "damaged bundle"),
        ("cells", lambda table: pa.concat_tables([table, table]), "has a cell twice"),
        ("cells", all_are("status", "odd"), "a status other than ok and failed"),
        ("cells", all_are("seed", None), "a row without seed"),
        ("rounds", all_are("cell", None), "a row without cell"),
        ("rounds", all_are("regret", float("inf")), "an infinite regret"),
        ("rounds", all_are("t", 0), "a round before the first"),
        ("rounds", all_are("t", 10**12), "does not hold the same rounds"),
        ("rounds", lambda table: table.slice(0, len(table) - 3), "does not hold the same rounds"),
    ],
)
def test_a_forged_bundle_is_a_line(bundle, tmp_path, kind, change, said):
    def use(one):
        opened = Run(one)
        curves(opened, "regret", opened.titles("problem", "free")[0])

    use(forged(bundle, tmp_path / "same.zip", kind, lambda table: table))
    with pytest.raises(DamagedRun, match=said):
        use(forged(bundle, tmp_path / "forged.zip", kind, change))


def test_a_bundle_without_rounds_has_none_to_load(bundle, tmp_path):
    none = forged(bundle, tmp_path / "none.zip", "rounds", lambda table: table.slice(0, 0))
    assert cbobench.load_rounds(none, ["regret"]).empty
