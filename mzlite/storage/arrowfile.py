"""Batches as Arrow IPC files: what large parts are on disk, readable by anything that reads Arrow.

Fixed-width values, text and offsets map without a copy; only validity masks (bits there, bytes here) are unpacked.
Intervals are 16-byte binaries, wide numerics canonical bytes, narrow ones int64 with the scale in the schema.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from mzlite.repr.column import Column
from mzlite.repr.fixed import DTYPES, FixedColumn
from mzlite.repr.interval import INTERVAL_DTYPE, IntervalColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import Layout
from mzlite.repr.updates import Updates
from mzlite.repr.var import VarColumn

_KEY = b"mzlite"
_ARROW_TYPES = {
    Layout.I16: pa.int16(), Layout.I32: pa.int32(), Layout.I64: pa.int64(), Layout.U16: pa.uint16(),
    Layout.U32: pa.uint32(), Layout.U64: pa.uint64(), Layout.F32: pa.float32(), Layout.F64: pa.float64(),
    Layout.DATE: pa.date32(), Layout.TIME: pa.time64("us"), Layout.TIMESTAMP: pa.timestamp("us"),
    Layout.INTERVAL: pa.binary(16),
}  # fmt: skip


def write_arrow(updates: Updates, sink: Any) -> None:
    """Write one record batch to `sink` (a path or a binary file object)."""
    headers: list[Any] = []
    arrays: list[Any] = []
    for col in updates.columns:
        headers.append(_header(col))
        arrays.append(_to_arrow(col))
    arrays += [pa.array(np.ascontiguousarray(updates.time)), pa.array(np.ascontiguousarray(updates.diff))]
    names = [*(f"c{i}" for i in range(len(headers))), "time", "diff"]
    fields = [pa.field(name, array.type) for name, array in zip(names, arrays)]
    schema = pa.schema(fields, metadata={_KEY: msgspec.msgpack.encode(headers)})
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))


def read_arrow(buffer: Any) -> Updates:
    """Updates over the memory of `buffer` (a mapping or bytes of a file that `write_arrow` wrote)."""
    batch = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(buffer))).get_batch(0)
    headers = msgspec.msgpack.decode(batch.schema.metadata[_KEY])
    columns = tuple(_from_arrow(header, batch.column(i)) for i, header in enumerate(headers))
    k = len(headers)
    n = batch.num_rows
    time = np.frombuffer(batch.column(k).buffers()[1], np.uint64, n) if n else np.zeros(0, np.uint64)
    diff = np.frombuffer(batch.column(k + 1).buffers()[1], np.int64, n) if n else np.zeros(0, np.int64)
    return Updates(columns, time, diff)


def _header(col: Column) -> Any:
    if isinstance(col, NumericColumn):
        return ("numeric", None if col.wide is not None else col.scale)
    return (col.layout.value,)


def _to_arrow(col: Column) -> Any:
    if isinstance(col, VarColumn):
        return col.compact().to_arrow()
    if isinstance(col, NumericColumn):
        if col.wide is not None:
            return col.wide.compact().to_arrow()
        values, kind = col.values, pa.int64()
    else:
        assert isinstance(col, FixedColumn), col
        values = col.values
        if col.layout is Layout.BOOL:
            return pa.array(values, mask=None if col.valid is None else ~col.valid)
        kind = _ARROW_TYPES[col.layout]
    n = len(values)
    mask = None if col.valid is None else pa.py_buffer(np.packbits(col.valid, bitorder="little"))
    return pa.Array.from_buffers(kind, n, [mask, pa.py_buffer(np.ascontiguousarray(values).view(np.uint8))])


def _from_arrow(header: Any, array: Any) -> Column:
    n = len(array)
    name = header[0]
    valid = None
    if array.null_count:
        bits = np.frombuffer(array.buffers()[0], np.uint8)
        valid = np.unpackbits(bits, count=n, bitorder="little").view(np.bool_)
    if name == "var" or (name == "numeric" and header[1] is None):
        var = VarColumn.from_arrow(array)
        var.valid = valid
        return NumericColumn.from_wide(var) if name == "numeric" else var
    if name == "bool":
        return FixedColumn(array.fill_null(False).to_numpy(zero_copy_only=False), valid, Layout.BOOL)
    data = array.buffers()[1]
    if name == "numeric":
        return NumericColumn(_values(data, np.dtype(np.int64), n), header[1], valid)
    layout = Layout(name)
    if layout is Layout.INTERVAL:
        return IntervalColumn(_values(data, INTERVAL_DTYPE, n), valid)
    return FixedColumn(_values(data, DTYPES[layout], n), valid, layout)


def _values(data: Any, dtype: np.dtype[Any], n: int) -> Any:
    return np.frombuffer(data, dtype, n) if n else np.zeros(0, dtype)
