"""What one statement's planning carries along: the catalog, the session, parameters, dependencies, fresh numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adapter.sql import hir
from adapter.sql.catalog_view import CatalogItem, CatalogView, SessionView
from mzlite.expr.scalar import Literal, Unmaterializable
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.typenames import type_name
from mzlite.repr.types import UNKNOWN, ScalarType

if TYPE_CHECKING:
    from adapter.sql.plan.scope import CteBinding


class PlanContext:
    """Mutable state of planning one statement.

    param_types: known types by index, filled in as parameters meet their contexts. params: values, when planning at bind time.
    depends_on: every catalog item that was resolved. used_unmaterializable: names of functions whose value is the session's or the clock's.
    """

    def __init__(
        self,
        catalog: CatalogView,
        session: SessionView,
        param_types: Sequence[ScalarType | None] = (),
        params: Sequence[Literal] | None = None,
    ) -> None:
        self.catalog = catalog
        self.session = session
        self.param_types: list[ScalarType | None] = list(param_types)
        self.params = params
        self.depends_on: dict[GlobalId, None] = {}
        self.used_unmaterializable: set[str] = set()
        self.parameters_in_limits = False
        self.ctes: list[dict[str, CteBinding]] = []
        self.in_view = False
        self._next_local = 0

    def fresh(self) -> int:
        """A number for a Let binding."""
        self._next_local += 1
        return self._next_local

    # ---- catalog

    def resolve(self, parts: tuple[str, ...], pos: int | None = None) -> CatalogItem:
        """The item of that name; in Materialize's words when there is none."""
        if len(parts) > 3:
            raise SqlError("42601", f"qualified name did not have between 1 and 3 components: {'.'.join(parts)}")
        session = self.session
        item = self.catalog.resolve_item(parts, session.database, session.search_path)
        if item is None:
            raise self.missing_item(parts, pos)
        self.depends_on[item.id] = None
        return item

    def missing_item(self, parts: tuple[str, ...], pos: int | None) -> SqlError:
        """Which part of the name is wrong."""
        position = None if pos is None else pos + 1
        if len(parts) == 3 and self.catalog.resolve_database(parts[0]) is None:
            return SqlError("3D000", f"unknown database '{parts[0]}'", position=position)
        if len(parts) > 1 and self.catalog.resolve_schema(parts[:-1], self.session.database) is None:
            return SqlError("3F000", f"unknown schema '{'.'.join(parts[:-1])}'", position=position)
        return SqlError("42P01", f"unknown catalog item '{'.'.join(parts)}'", position=position)

    def relation(self, parts: tuple[str, ...], pos: int | None = None) -> CatalogItem:
        item = self.resolve(parts, pos)
        if item.desc is None:
            raise SqlError(
                "42809", f"catalog item '{item.name}' is {_article(item.kind)} and so cannot be depended upon"
            )
        return item

    # ---- parameters

    def parameter(self, number: int) -> hir.Scalar:
        """$n: its value if we have it, else a placeholder typed as far as known."""
        while len(self.param_types) < number:
            self.param_types.append(None)
        if self.params is not None and number <= len(self.params):
            return self.params[number - 1]
        return Unmaterializable(f"${number}", self.param_types[number - 1] or UNKNOWN)

    def type_parameter(self, placeholder: Unmaterializable, typ: ScalarType) -> Unmaterializable:
        """A parameter of unknown type met a context that wants `typ`."""
        index = int(placeholder.func[1:]) - 1
        known = self.param_types[index]
        if known is not None and known.base() != typ.base():
            raise SqlError(
                "42P08",
                f"there are contradicting constraints for the type of parameter ${index + 1}: should be both "
                f"{type_name(known)} and {type_name(typ)}",
            )
        self.param_types[index] = typ.base()
        return Unmaterializable(placeholder.func, typ.base())


def _article(kind: str) -> str:
    words = kind.replace("-", " ")
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"
