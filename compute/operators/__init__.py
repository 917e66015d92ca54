"""Operators: what the nodes of LIR do to updates, incrementally.

    base        Port, Operator, Graph, Arranged, Collection: how updates move; rounds; the time of a loop
    linear      negate, union, consolidate, constant          mfp        map, filter, project in one step
    flatmap     table functions                               temporal   mz_now() bounds: changes held by time
    arrange     a stream kept as an arrangement               lookup     literal keys of an arrangement
    matching    rows against a view by key, in pieces         join       linear and delta joins
    points      the law of grouped operators: F re-evaluated where a group was touched
      accumulate  sums as vector diffs    chunks  summing a chunk before it meets the trace
      ordered     first rows of a group without reading it    front   first rows kept in hand
      rows        whole groups            reduce, threshold, topk, window   the operators
    letrec      WITH MUTUALLY RECURSIVE: iterations as time   nested     recursion inside recursion
    exchange    rows to the worker that owns their key

Read base, then join, then points and reduce, then letrec.

Invariant of all: for every time t, accumulate(op(input), t) == op(accumulate(input, t)), whatever the rounds
(`tests/property/test_engine_law.py`).
"""
