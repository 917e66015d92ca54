"""Sharing arrangements between the two runtimes of a replica: worker i of maintenance publishes to worker i of interactive.

messages    what travels on the registry socket, both ways
link        frames with descriptors on a non-blocking socket; an unbounded queue, so that nobody blocks
segments    one sealed batch in an anonymous memory file
publisher   maintenance's side: traces out, reader holds in
registry    interactive's side: publication points, peer holds, imports

Arrangement ──▶ Publisher ══ chains, uppers, since ══▶ Registry ──▶ PublicationPoint ──▶ peek, import
    ▲ hold ◀──────────────── holds ◀═══════════════════════╯
"""
