"""Rows in bulk: Arrow tables to the database and back."""

from __future__ import annotations

import io
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import sqlalchemy as sa

from tracker.schema import SCHEMA, Base, UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHUNK_ROWS = 20_000
TIMESTAMP = pa.timestamp("us", tz="UTC")


def table(name: str) -> sa.Table:
    """The SQLAlchemy table of a name."""
    return Base.metadata.tables[f"{SCHEMA}.{name}"]


def arrow_schema(table_name: str) -> pa.Schema:
    """Arrow types of a table's columns; JSON is its text."""
    return pa.schema(
        [pa.field(column.name, _arrow_type(column.type), nullable=bool(column.nullable)) for column in table(table_name).columns]
    )


def insert(connection: sa.Connection, table_name: str, rows: pa.Table | pa.RecordBatch) -> int:
    """Insert rows, matched by column name; returns how many. A column that is missing, or null throughout, stays null."""
    if rows.num_rows == 0:
        return 0
    names = [name for name in rows.schema.names if rows.column(name).null_count < rows.num_rows]
    columns = rows.select(names)
    if connection.dialect.name == "sqlite":
        _insert_sqlite(connection, table_name, columns)
    else:
        _copy_postgresql(connection, table_name, columns)
    return int(rows.num_rows)


def new_ids(connection: sa.Connection, table_name: str, count: int) -> list[int]:
    """Ids for rows that this transaction inserts, in ascending order; none was ever given before.

    An INSERT that returns its ids in order goes row by row on SQLite; with ids at hand it goes in one piece.
    """
    if connection.dialect.name == "sqlite":
        last = connection.execute(sa.text("SELECT seq FROM sqlite_sequence WHERE name = :name"), {"name": table_name}).scalar() or 0
        return list(range(last + 1, last + 1 + count))
    query = sa.text("SELECT nextval(pg_get_serial_sequence(:name, 'id')) FROM generate_series(1, :count)")
    return sorted(connection.execute(query, {"name": f"{SCHEMA}.{table_name}", "count": count}).scalars())


def read_runs(connection: sa.Connection, table_name: str, run_ids: Sequence[int]) -> Iterator[pa.Table]:
    """Rows of some runs in pieces of bounded size, ordered by run and primary key."""
    source = table(table_name)
    # PostgreSQL sorts text by the database's collation; the pieces are only ordered by what is numeric.
    order = [column for column in source.primary_key.columns if not isinstance(column.type, sa.Text)]
    for start in range(0, len(run_ids), 500):
        chosen = [int(run_id) for run_id in run_ids[start : start + 500]]
        query = sa.select(*_readable(connection, source)).where(source.c.run_id.in_(chosen)).order_by(*order)
        yield from _stream(connection, query, arrow_schema(table_name))


def read_table(connection: sa.Connection, table_name: str) -> pa.Table:
    """A small table whole, in the order of its key."""
    source = table(table_name)
    pieces = list(
        _stream(connection, sa.select(*_readable(connection, source)).order_by(*source.primary_key.columns), arrow_schema(table_name))
    )
    return pa.concat_tables(pieces) if pieces else arrow_schema(table_name).empty_table()


def _arrow_type(kind: sa.types.TypeEngine[Any]) -> pa.DataType:
    if isinstance(kind, UtcDateTime):
        return TIMESTAMP
    if isinstance(kind, sa.Boolean):
        return pa.bool_()
    if isinstance(kind, sa.Integer):
        return pa.int64()
    if isinstance(kind, sa.Float):
        return pa.float64()
    return pa.string()


def _insert_sqlite(connection: sa.Connection, table_name: str, columns: pa.Table) -> None:
    names = ", ".join(f'"{name}"' for name in columns.schema.names)
    marks = ", ".join(["?"] * columns.num_columns)
    cursor = connection.connection.driver_connection.cursor()  # type: ignore[union-attr]
    for start in range(0, columns.num_rows, CHUNK_ROWS):
        piece = columns.slice(start, CHUNK_ROWS)
        values = [_sqlite_values(piece.column(index)) for index in range(piece.num_columns)]
        cursor.executemany(f'INSERT INTO "{table_name}" ({names}) VALUES ({marks})', islice(zip(*values, strict=False), piece.num_rows))
    cursor.close()


def _sqlite_values(column: pa.ChunkedArray) -> Any:
    """Python values of a column; a constant is repeated instead of built."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.string())
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count == 0 and len(column) > 1 and _constant(column):
        return repeat(column[0].as_py(), len(column))
    return column.to_pylist()


def _constant(column: pa.ChunkedArray) -> bool:
    if column[0].as_py() != column[-1].as_py():
        return False
    return bool(pc.all(pc.equal(column, column[0])).as_py())


def _copy_postgresql(connection: sa.Connection, table_name: str, columns: pa.Table) -> None:
    names = ", ".join(f'"{name}"' for name in columns.schema.names)
    cursor = connection.connection.driver_connection.cursor()  # type: ignore[union-attr]
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid", batch_size=CHUNK_ROWS)
    with cursor.copy(f'COPY {SCHEMA}."{table_name}" ({names}) FROM STDIN (FORMAT csv)') as copy:
        for start in range(0, columns.num_rows, CHUNK_ROWS):
            text = io.BytesIO()
            pyarrow.csv.write_csv(columns.slice(start, CHUNK_ROWS), text, options)
            copy.write(text.getvalue())
    cursor.close()


def _readable(connection: sa.Connection, source: sa.Table) -> list[sa.ColumnElement[Any]]:
    """Columns as the drivers should give them: JSON as its text, times without a detour through the ORM."""
    sqlite = connection.dialect.name == "sqlite"
    return [_readable_column(column, sqlite=sqlite) for column in source.columns]


def _readable_column(column: sa.Column[Any], *, sqlite: bool) -> sa.ColumnElement[Any]:
    if isinstance(column.type, sa.JSON):
        return sa.cast(column, sa.Text()).label(column.name)
    if isinstance(column.type, UtcDateTime) and sqlite:
        return sa.type_coerce(column, sa.Text()).label(column.name)
    return column


def _stream(connection: sa.Connection, query: sa.Select[Any], schema: pa.Schema) -> Iterator[pa.Table]:
    result = connection.execute(query, execution_options={"stream_results": True, "max_row_buffer": CHUNK_ROWS})
    while rows := result.fetchmany(CHUNK_ROWS):
        values = list(zip(*rows, strict=True))
        yield pa.table([_arrow_column(column, field.type) for column, field in zip(values, schema, strict=True)], schema=schema)


def _arrow_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        first = next((value for value in values if value is not None), None)
        if isinstance(first, str):
            return pc.assume_timezone(pa.array(values, pa.string()).cast(pa.timestamp("us")), "UTC")
    return pa.array(values, kind)
