"""Kernels: the work on whole columns. numpy for fixed widths, pyarrow for text, one value at a time only in `adapt`.

adapt                               functions over arrays, or over single values, as kernels
integers floats numerics decimals   arithmetic
compare booleans                    order and truth
patterns                            LIKE and regular expressions
calendar_math time_units time_format
json_values
lanes lanes_float lanes_numeric lanes_spread    states of accumulable aggregates
collect                             aggregates recomputed from the whole group
frames                              window frames
table_rows                          table functions
"""
