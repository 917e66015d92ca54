"""What is explained, as far as its stage has got."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.sequencer.dataflows import Imports
from adapter.sequencer.fast_path import FastPath
from mzlite.expr.relation import Mir, RowSetFinishing
from mzlite.repr.ids import GlobalId


@dataclass(frozen=True, slots=True)
class Explained:
    """A query or a catalog object.

    mir: the plan at the stage asked for. raw_text: the HIR's print, for the raw stage. heading: of a catalog object its
    full name. finishing: of a SELECT. fast_path: the peek that answers without a dataflow. imports: what the dataflow
    reads. single_time: a one-shot read. objects: what else the dataflow computes, by id and full name; `mir` reads it.
    """

    mir: Mir | None = None
    raw_text: str | None = None
    heading: str = "Explained Query"
    finishing: RowSetFinishing | None = None
    fast_path: FastPath | None = None
    imports: Imports | None = None
    single_time: bool = True
    cluster: str | None = None
    notices: tuple[str, ...] = ()
    objects: tuple[tuple[GlobalId, str, Mir], ...] = ()
