"""MIR as text, and back.

print.py    the form EXPLAIN shows and specs assert
parse.py    reads the same form (types of Gets come from the caller)
"""

from mzlite.expr.text.parse import MirSyntaxError, parse_mir
from mzlite.expr.text.print import print_mir, print_scalar

__all__ = ["MirSyntaxError", "parse_mir", "print_mir", "print_scalar"]
