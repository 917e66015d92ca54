"""Plans as JSON: every node an object with one member named for its kind; expressions as in the text form.

{"plans": [{"id": "Explained Query", "plan": {"Filter": {"input": …, "predicates": ["(#0 > 1)"]}}}], "sources": [], …}
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from adapter.explain.explained import Explained
from adapter.explain.names import Names
from adapter.explain.options import ExplainOptions
from adapter.explain.physical import physical_lir
from adapter.explain.usage import usages
from adapter.sequencer.fast_path import ConstantPath, PeekExisting, PeekPersist
from mzlite.expr import relation as r
from mzlite.expr import scalar as s
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.text.print import print_aggregate, print_literal, print_scalar, print_window_call
from mzlite.repr.errors import decode_error
from mzlite.repr.types import RelationType

_SCALARS = (s.Ref, s.Literal, s.Call, s.If, s.Unmaterializable)


def explain_json(stage: str, explained: Explained, options: ExplainOptions, names: Names) -> str:
    value: dict[str, Any]
    if stage in ("decorrelated", "locally_optimized"):
        value = {"plan": _value(explained.mir)}
        if explained.finishing is not None:
            value["finishing"] = _value(explained.finishing)
        return json.dumps(value, indent=2)
    path = None if options.no_fast_path else explained.fast_path
    if path is not None:
        plan: Any = _fast_path(path)
        used: dict[Any, list[str]] = {}
    elif stage == "optimized":
        assert explained.mir is not None
        plan = _value(explained.mir)
        used = dict(usages((explained.mir,), explained.imports).words)
    else:
        assert explained.mir is not None
        plan = _value(physical_lir(explained.mir, explained))
        used = {}
    value = {"plans": [{"id": explained.heading, "plan": plan}]}
    value["plans"] += [{"id": name, "plan": _value(mir)} for _, name, mir in explained.objects]
    if explained.finishing is not None:
        value["finishing"] = _value(explained.finishing)
    sources = () if explained.imports is None else explained.imports.sources
    value["sources"] = [{"id": names.full_name(id)} for id in sources]
    value["used_indexes"] = [{"index": names.full_name(id), "usage": words} for id, words in used.items()]
    if explained.cluster is not None:
        value["target_cluster"] = explained.cluster
    return json.dumps(value, indent=2)


def _fast_path(path: object) -> Any:
    match path:
        case ConstantPath(plan):
            return _value(plan)
        case PeekExisting(on, index, literals, mfp):
            return {
                "PeekExisting": {
                    "on": on,
                    "index": index,
                    "lookups": None if literals is None else len(literals),
                    "mfp": _value(mfp),
                }
            }
        case PeekPersist(on, mfp):
            return {"PeekPersist": {"on": on, "mfp": _value(mfp)}}
    raise AssertionError(path)


def _value(x: object) -> Any:
    if isinstance(x, _SCALARS):
        return print_scalar(x)
    match x:
        case None | bool() | int() | str():
            return x
        case r.Constant(rows, typ, error) if error is None:
            return {"Constant": {"rows": [[_row(row, typ), diff] for row, diff in rows], "typ": _value(typ)}}
        case s.Aggregate():
            return print_aggregate(x)
        case s.WindowCall():
            return print_window_call(x)
        case s.TableFunc(func, _):
            return func
        case RelationType(columns, keys):
            return {
                "columns": [{"type": c.scalar.kind, "nullable": c.nullable} for c in columns],
                "keys": [list(k) for k in keys],
            }
        case s.ColumnOrder() | r.RowSetFinishing() | MapFilterProject():
            return _fields(x)
        case bytes():
            return decode_error(x).message
        case tuple() | list():
            return [_value(v) if not isinstance(v, bytes) else v.hex() for v in x]
        case msgspec.Struct():
            return {type(x).__name__.removeprefix("Lir"): _fields(x)}
    raise AssertionError(x)


def _fields(x: msgspec.Struct) -> dict[str, Any]:
    return {f: _value(getattr(x, f)) for f in x.__struct_fields__}


def _row(row: r.Datums, typ: RelationType) -> list[str]:
    return [print_literal(d, c.scalar) for d, c in zip(row, typ.columns)]
