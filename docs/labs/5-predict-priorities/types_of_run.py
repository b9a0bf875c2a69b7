"""Lab 5: the types that your program gives to the ports of a real run: types_of_run.py FLOWS.csv... MY_TYPES.py

FLOWS.csv: results/lab5-.../flows.csv; of several, the newest. Prints a row per port: its application, flows, median
size, and type.
"""

import csv
import os
import runpy
import statistics
import sys


def flows_of(table):
    """The flows of a run that have ended and have a size, as types_of_ports() gets them, and their application."""
    with open(table, newline="") as rows:
        return [
            {
                "host": row["source"],
                "destination_port": int(row["port"]),
                "bytes": int(row["size_bytes"]),
                "application": row["application"],
            }
            for row in csv.DictReader(rows)
            if row["state"] == "finished" and row["size_bytes"]
        ]


def newest(tables):
    """The table that was written last: results/lab5-*/flows.csv names those of all runs."""
    try:
        return max(tables, key=os.path.getmtime)
    except OSError as error:
        sys.exit(f"{error.filename}: there is no such table: run lab5.yaml first")


def main():
    if len(sys.argv) < 3:
        sys.exit(
            "give a table of flows and your file: types_of_run.py results/lab5-.../flows.csv my_types.py"
        )
    *tables, answer = sys.argv[1:]
    table = newest(tables)
    flows = flows_of(table)
    if not flows:
        sys.exit(f"{table}: no flow in it has finished")
    types = runpy.run_path(answer)["types_of_ports"](
        [{name: flow[name] for name in ("host", "destination_port", "bytes")} for flow in flows]
    )
    print(f"{'port':>6}  {'application':16}{'flows':>6}  {'median, B':>10}  type")
    for port in sorted({flow["destination_port"] for flow in flows}):
        own = [flow for flow in flows if flow["destination_port"] == port]
        median = statistics.median(flow["bytes"] for flow in own)
        print(f"{port:6}  {own[0]['application']:16}{len(own):6}  {median:10.0f}  {types.get(port, '-')}")


if __name__ == "__main__":
    main()
