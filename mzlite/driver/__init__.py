"""The driver: runs text specs against one replica, over the compute protocol alone.

spec        the file format
schema      typed rows as text
dataflows   the body of create-dataflow
shards      storage for the specs
replica     one replica and everything it said
runner      the commands
command     `mzlite specs`
"""

from mzlite.driver.command import main

__all__ = ["main"]
