"""Plans: LIR, the lowering from MIR to it, and the DataflowDescription that carries it to a replica.

lir           the nodes: every arrangement, join stage and reduce kind explicit
lower         MIR to LIR; lower_join: an order of lookups becomes stages; mfp_builder: fused row-wise steps
description   DataflowDescription: imports, objects, exports, as_of, until
"""
