"""One worker: a process with one run loop. A runtime is N workers, a replica one or two runtimes.

fork_server   forks workers that have the engine loaded already
spawn         what the orchestrator asks of it
process       sockets and the run loop: the only place here that does I/O
worker        the state machine: handle a command, run a slice          <- start here
hosted        one dataflow on this worker, from creation to drop
peeks         pending reads, walked in slices
rounds        with several workers: which round comes next
reconcile     keep what a new connection still wants
storage_link  shards in, sink writes out
"""
