"""Traces: the memory of a dataflow, as sorted immutable batches.

    Batch         updates sorted by (key hash, row hash, time) with a Description(lower, upper, since); flat buffers
    sorting       what a batch promises is made true here: sealing = sorting and consolidating
    BatchBuilder  chunks of updates in, one Batch out, in slices
    Merge         sorted runs into one batch, in slices, times advanced to since; `append` lays the result out
    Spine         a short chain of batches of geometric sizes
    KeyLayout     where a key of expressions lies beside the row
    View          a chain as a reader sees it: look up keys, or scan, up to a time
    Arrangement   an oks Spine and an errs Spine under one key, with holds; what an index is
    peek          answer a read off two chains

Read batch, sorting, merge, spine, view, arrangement in that order. What the runtimes use:

    Arrangement.key: tuple[Scalar, ...]; .layout: KeyLayout; .oks, .errs: Spine
    Arrangement.upper -> Frontier                         meet of both halves; {MIN} until the first round ended
    Arrangement.since -> Timestamp
    Arrangement.chains() -> (oks, errs)                   two tuples of Batch, oldest first; immutable, safe to keep
    Arrangement.version -> int                            grows whenever chains, upper or since changed (publish again)
    Arrangement.hold(at) -> Hold                          .time, .downgrade(t), .release(); since = meet of holds
    Arrangement.maintain() -> Iterator[None]              merges in slices; run it when idle
    Arrangement.nbytes, .row_count
    Batch.uid -> int                                      unique in the process; a published batch is known by it
    Batch.size_encoded, Batch.write_into(memoryview)      one contiguous segment; Batch.read_from(memoryview) maps it back
    Spine.replace(old_batch, same_batch)                  swap the private copy of a batch for the mapped segment
    TraceSource (protocol)                                key, upper, since, chains(): what an import reads; an Arrangement
                                                          is one, a reader of the registry's publication point is another
    peek_arrangement(chains, layout, timestamp, mfp, finishing, literals)   sliced generator, see `peek`
"""
