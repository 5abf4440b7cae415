# SPDX-License-Identifier: Apache-2.0
"""The API as a daemon's server reflection tells it, in lines: every service, method, message, field and number."""
from google.protobuf import descriptor_pb2

import wire

REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
# What a parent asks of a keeper is no service of a node's socket, but its numbers must not change either.
FILES = ("runtime.proto", "nacre.proto", "instance.proto", "cri.proto")
FIELD = descriptor_pb2.FieldDescriptorProto
TYPES = {v: k[len("TYPE_"):].lower() for k, v in FIELD.Type.items()}


def ask(channel, *fields):
    """The answer to one question."""
    return next(iter(wire.both(channel, REFLECTION, [b"".join(wire.field(n, v) for n, v in fields)])))


def services(channel):
    return sorted(n.decode() for n in wire.get(ask(channel, (7, "")), 6, 1, 1))


def files(channel):
    """The descriptors of our own files."""
    for name in FILES:
        for raw in wire.get(ask(channel, (3, name)), 4, 1):
            f = descriptor_pb2.FileDescriptorProto.FromString(raw)
            if f.name == name:
                yield f


def enum_lines(e, indent):
    yield f"{indent}enum {e.name}"
    for v in e.value:
        yield f"{indent}  {v.number} {v.name}"


def message_lines(m, indent):
    yield f"{indent}message {m.name}"
    for f in sorted(m.field, key=lambda f: f.number):
        kind = f.type_name.lstrip(".") if f.type_name else TYPES[f.type]
        yield f"{indent}  {f.number} {'repeated ' if f.label == FIELD.LABEL_REPEATED else ''}{kind} {f.name}"
    for r in m.reserved_range:
        yield f"{indent}  reserved {r.start} to {r.end - 1}"
    for name in m.reserved_name:
        yield f"{indent}  reserved {name}"
    for inner in m.nested_type:
        yield from message_lines(inner, indent + "  ")
    for e in m.enum_type:
        yield from enum_lines(e, indent + "  ")


def file_lines(f):
    yield f"package {f.package}"
    for s in f.service:
        yield f"  service {s.name}"
        for m in s.method:
            way = {True: "stream ", False: ""}
            yield (f"    {m.name}({way[m.client_streaming]}{m.input_type.lstrip('.')}) returns "
                   f"({way[m.server_streaming]}{m.output_type.lstrip('.')})")
    for m in f.message_type:
        yield from message_lines(m, "  ")
    for e in f.enum_type:
        yield from enum_lines(e, "  ")


def dump(channel):
    lines = ["services of a node's socket"] + [f"  {s}" for s in services(channel)]
    for f in files(channel):
        lines += ["", *file_lines(f)]
    return "\n".join(lines) + "\n"
