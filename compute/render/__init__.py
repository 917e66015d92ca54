"""Rendering: a DataflowDescription becomes a graph of operators that runs in rounds.

    context         RenderContext: what a dataflow takes from its worker (trace sources, sinks' hooks, exchange)
    dataflow        Dataflow: the graph, its inputs and its exports; rounds
    build           Builder: one method for each LIR node
    inputs          SourceInput, TraceInput: where updates enter
    exports         IndexExport, SubscribeExport, MaterializedViewExport: where results leave

What the runtimes use:

    dataflow = Dataflow(description, context)             raises SqlError for a plan that cannot be rendered
    dataflow.inputs: dict[GlobalId, SourceInput | TraceInput]
    dataflow.exports: dict[GlobalId, Export]              IndexExport | SubscribeExport | MaterializedViewExport
    dataflow.can_step() -> bool                           inputs allow a further round (or one is under way)
    dataflow.step() -> bool                               run one slice (~5 ms); False: nothing left to do
    dataflow.frontier -> Frontier                         exports are complete before this time (starts at as_of)
    dataflow.hydrated -> bool                             frontier is beyond as_of
    dataflow.maintain(budget_s) -> bool                   merge traces while idle; True: more to do
    dataflow.drop()                                       stop at once, release holds and memory

    SourceInput.push(updates, upper)                      updates (may be None) with times < upper and >= the last upper;
                                                          the snapshot is pushed like any other updates, in parts:
                                                          push(part, None-advancing) = push(part, input.upper); times below
                                                          as_of are advanced to it, times at or beyond until are dropped
    SourceInput.upper -> Frontier                         SourceInput.push_errors(updates) for failed sources
    with N workers every worker is pushed everything; SourceInput keeps the rows whose hash is its worker's

    IndexExport.source: TraceSource                       its own Arrangement, or the imported source itself (re-export)
    IndexExport.arrangement: Arrangement | None           the owned one
    Export.frontier -> Frontier                           upper of this export
    IndexExport.allow_compaction(frontier)                moves the export's own hold; other holds (importers, peeks) count too

Hooks that RenderContext carries: `trace(id, IndexImport) -> TraceSource`,
`subscribe(id, lower, upper, updates, error)`, `append(id, shard, lower, upper, updates, errs)`, `exchange`.
"""
