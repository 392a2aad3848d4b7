"""Tables, files and bundles that are changed by hand, so that all but the change agrees."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

from cbobench.results.bundle import FILES
from cbobench.results.manifest import content_digest
from cbobench.results.schema import FOOTER, TableWriter


def set_column(table, name, values):
    """A table with other values in a column, of its type."""
    field = table.schema.field(name)
    return table.set_column(table.column_names.index(name), field, pa.array(values, field.type))


def change_column(name, change):
    """A change of a table: of a column, by a function of the row."""
    return lambda table: set_column(table, name, [change(row) for row in table.to_pylist()])


def all_are(name, value):
    """A change of a table that gives all rows one value."""
    return change_column(name, lambda row: value)


def files(run, kind="rounds"):
    """The files of a kind, in order."""
    return sorted((run / kind).glob("*.parquet"))


def rewrite(file, change=lambda table: table, **footer):
    """Write a file of a run again with other rows, its checksums and digest in order, and maybe
    another footer.
    """
    table = change(pq.read_table(file))
    content = json.loads(table.schema.metadata[FOOTER]) | {"rows": len(table)} | footer
    columns = table.schema.remove_metadata()
    with (
        file.open("wb") as sink,
        TableWriter(sink, columns, {FOOTER: json.dumps(content).encode()}) as writer,
    ):
        writer.write_table(table)


def rewrite_bundle(bundle, out, changes, records=None):
    """A bundle with other tables and records whose hashes agree with them.

    Args:
        changes: of tables, by kind.
        records: changes of the content of bundle.json and run.json, by name.
    """
    with zipfile.ZipFile(bundle) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for kind, change in changes.items():
        sink = io.BytesIO()
        pq.write_table(
            change(pq.read_table(io.BytesIO(content[FILES[kind]]))), sink, store_schema=False
        )
        content[FILES[kind]] = sink.getvalue()
    run, about = (json.loads(content[name]) for name in ("run.json", "bundle.json"))
    for name, change in (records or {}).items():
        change(run if name == "run.json" else about)
    run["digest"] = content_digest(run)
    content["run.json"] = json.dumps(run).encode()
    if isinstance(about.get("files"), dict):
        about["files"] |= {
            name: hashlib.sha256(content[name]).hexdigest() for name in about["files"]
        }
    content["bundle.json"] = json.dumps(about).encode()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return out
