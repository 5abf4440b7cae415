# SPDX-License-Identifier: Apache-2.0
"""matrix.tsv as objects."""
import collections
import os
import shlex

import builder

HERE = os.path.dirname(os.path.abspath(__file__))
Row = collections.namedtuple("Row", "name packages options command signal status log shows keeps vm")


def rows():
    """{name: Row}; packages, options, command and status as lists, the rest as text, '' for nothing."""
    with open(os.path.join(HERE, "matrix.tsv"), encoding="utf-8") as f:
        lines = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    found = {}
    for fields in lines:
        row = Row(*("" if field == "-" else field for field in fields))
        found[row.name] = row._replace(packages=row.packages.split(), options=shlex.split(row.options.replace("NAME", row.name)),
                                       command=shlex.split(row.command), status=[int(s) for s in row.status.split("|")])
    return found


# Users of images whose program does not change its user by itself.
USERS = {"postgresql": "postgres", "gcc": "builder", "rabbitmq": "rabbitmq"}


def settings(row):
    wanted = {"Cmd": row.command, "StopSignal": row.signal, "User": USERS.get(row.name, ""),
              "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]}
    return {key: value for key, value in wanted.items() if value}


def build(row, base):
    """The image of a row, as the path of an OCI layout."""
    return builder.image(base, row.name, row.packages, settings(row))
