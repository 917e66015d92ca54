"""Tables and views of the demonstration, in SQL that DuckDB understands too (it recomputes the views under --verify)."""

from __future__ import annotations

from dataclasses import dataclass

TABLES = {
    "airlines": "carrier text, name text",
    "airports": (
        "faa text, name text, lat double precision, lon double precision, alt int, tz int, dst text, tzone text"
    ),
    "planes": (
        "tailnum text, year int, type text, manufacturer text, model text, engines int, seats int, speed int, engine text"
    ),
    "weather": (
        "origin text, year int, month int, day int, hour int, temp double precision, dewp double precision, "
        "humid double precision, wind_dir int, wind_speed double precision, wind_gust double precision, "
        "precip double precision, pressure double precision, visib double precision, time_hour timestamp"
    ),
    "flights": (
        "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, "
        "sched_arr_time int, arr_delay int, carrier text, flight int, tailnum text, origin text, dest text, "
        "air_time int, distance int, hour int, minute int, time_hour timestamp"
    ),
}


@dataclass(frozen=True, slots=True)
class View:
    """key: the index's columns. order: how the screen shows it. point: a WHERE clause that reads one row by the key."""

    name: str
    title: str
    query: str
    key: tuple[str, ...]
    order: str
    point: str


VIEWS = (
    View(
        "delay_by_carrier_day",
        "departure delay by carrier and day",
        """
        SELECT f.carrier, a.name, f.month, f.day, count(*) AS flights, sum(f.dep_delay) AS total_delay,
               max(f.dep_delay) AS worst_delay, count(f.dep_delay) AS departed
        FROM flights f JOIN airlines a ON a.carrier = f.carrier
        GROUP BY f.carrier, a.name, f.month, f.day
        """,
        ("carrier", "month", "day"),
        "month DESC, day DESC, flights DESC, carrier",
        "carrier = 'UA' AND month = 12 AND day = 24",
    ),
    View(
        "worst_routes",
        "the ten routes with the worst arrival delay",
        """
        SELECT f.origin, f.dest, p.name AS destination, count(*) AS flights,
               sum(f.arr_delay) AS total_delay, CAST(sum(f.arr_delay) AS double precision) / count(f.arr_delay) AS mean_delay
        FROM flights f JOIN airports p ON p.faa = f.dest
        WHERE f.arr_delay IS NOT NULL
        GROUP BY f.origin, f.dest, p.name
        HAVING count(*) >= 100
        ORDER BY mean_delay DESC, total_delay DESC, f.origin, f.dest
        LIMIT 10
        """,
        ("origin", "dest"),
        "mean_delay DESC, total_delay DESC, origin, dest",
        "origin = 'EWR' AND dest = 'TYS'",
    ),
    View(
        "delay_by_wind",
        "departure delay against the wind at the origin",
        """
        SELECT f.origin, CAST(floor(w.wind_speed / 5.0) AS int) * 5 AS wind_from,
               count(*) AS flights, sum(f.dep_delay) AS total_delay, min(w.visib) AS worst_visibility
        FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
        WHERE f.dep_delay IS NOT NULL AND w.wind_speed IS NOT NULL
        GROUP BY f.origin, CAST(floor(w.wind_speed / 5.0) AS int) * 5
        """,
        ("origin", "wind_from"),
        "origin, wind_from",
        "origin = 'JFK' AND wind_from = 10",
    ),
    View(
        "delay_by_maker",
        "arrival delay by the plane's manufacturer",
        """
        SELECT COALESCE(p.manufacturer, 'unknown') AS manufacturer, count(*) AS flights,
               sum(f.arr_delay) AS total_delay, min(p.year) AS oldest
        FROM flights f LEFT JOIN planes p ON p.tailnum = f.tailnum
        GROUP BY COALESCE(p.manufacturer, 'unknown')
        """,
        ("manufacturer",),
        "flights DESC, manufacturer",
        "manufacturer = 'BOEING'",
    ),
)

# Built and dropped again and again while reads are timed: a join of the largest table with two others.
CHURN = """
    SELECT f.tailnum, f.origin, f.dest, w.wind_dir, count(*) AS n, sum(f.distance) AS distance, max(f.air_time) AS longest
    FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
    GROUP BY f.tailnum, f.origin, f.dest, w.wind_dir
"""
