# SPDX-License-Identifier: Apache-2.0
"""JSON Schema, as much of it as doc/output.schema.json uses; any other keyword is an error.

    schema.check(document, "ps", value)      raises schema.Mismatch with the place
"""
import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
KNOWN = {"type", "properties", "required", "additionalProperties", "items", "enum", "pattern", "minimum", "$ref", "description"}


class Mismatch(AssertionError):
    pass


def load():
    with open(os.path.join(ROOT, "doc", "output.schema.json"), encoding="utf-8") as file:
        return json.load(file)


def is_a(value, name):
    if name == "integer" and isinstance(value, bool):
        return False
    return isinstance(value, TYPES[name])


def match(document, schema, value, where="$"):
    def fail(why):
        raise Mismatch(f"{where}: {why}: {json.dumps(value)[:200]}")

    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"{where}: keywords that are not known: {unknown}")
    if "$ref" in schema:
        match(document, document["$defs"][schema["$ref"].rpartition("/")[2]], value, where)
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(is_a(value, name) for name in names):
            fail(f"not of type {schema['type']}")
    if "enum" in schema and value not in schema["enum"]:
        fail(f"none of {schema['enum']}")
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        fail(f"not of the form {schema['pattern']}")
    if "minimum" in schema and is_a(value, "integer") and value < schema["minimum"]:
        fail(f"less than {schema['minimum']}")
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                fail(f"no {name}")
        for name, member in value.items():
            if name in schema.get("properties", {}):
                match(document, schema["properties"][name], member, f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                fail(f"{name} is not described")
    if isinstance(value, list) and "items" in schema:
        for i, element in enumerate(value):
            match(document, schema["items"], element, f"{where}[{i}]")


def check(document, command, value):
    match(document, document["commands"][command], value, command)
