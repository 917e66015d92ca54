"""The controller's side of compute: what the adapter calls, down to the sockets of a replica's workers.

controller    clusters, collections, read holds, peeks, subscribes     <- start here
instance      one cluster's state
holds         read holds and what their minimum means for `since`
placement     which runtime renders what: a pure function
replica       one replica: history replay, restart, merged responses
multiplexer   stateless broadcast to both runtimes
merge         one response out of the answers of N workers
orchestrator  fork server, processes, socket pairs
connection    frames over a non-blocking socket in an asyncio loop

adapter ─▶ ComputeController ─▶ Instance ─▶ Replica ─▶ Multiplexer ─▶ worker sockets
                                                   ◀─ merge ◀─
"""
