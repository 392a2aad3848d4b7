"""Tables, files and bundles that are changed by hand, so that all but the change agrees."""

from __future__ import annotations

import io
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq

from cbobench.results.schema import FOOTER, TableWriter
from cbobench.suite.variants import content_digest


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
    content = written_again(file.read_bytes(), change, **footer)
    file.write_bytes(content)


def written_again(content, change, **footer):
    """The bytes of a Parquet file with other rows, and maybe another footer."""
    table, sink = change(pq.read_table(io.BytesIO(content))), io.BytesIO()
    said = json.loads(table.schema.metadata[FOOTER]) | {"rows": len(table)} | footer
    columns = table.schema.remove_metadata()
    with TableWriter(sink, columns, {FOOTER: json.dumps(said).encode()}) as writer:
        writer.write_table(table)
    return sink.getvalue()


def rewrite_bundle(bundle, out, changes, record=lambda content: None):
    """A bundle with other tables and another record, whose digests agree with them.

    Args:
        changes: of tables, by kind.
        record: changes the content of run.json.
    """
    with zipfile.ZipFile(bundle) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for kind, change in changes.items():
        name = f"{kind}/run.parquet"
        content[name] = written_again(content[name], change)
    run = json.loads(content["run.json"])
    record(run)
    run["digest"] = content_digest(run)
    content["run.json"] = json.dumps(run).encode()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return out
