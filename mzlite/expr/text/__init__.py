"""MIR as text, and back.

print.py    the form EXPLAIN shows and specs assert
parse.py    reads the same form (types of Gets come from the caller)
"""

from mzlite.expr.text.print import print_mir, print_scalar

__all__ = ["print_mir", "print_scalar"]
