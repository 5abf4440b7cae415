# SPDX-License-Identifier: Apache-2.0
"""Protocol buffers by hand, for messages that no generated code would write, and for services that we have no stubs of."""
VARINT, FIXED64, LEN, GROUP, END_GROUP, FIXED32 = range(6)


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number, wire_type):
    return varint(number << 3 | wire_type)


def field(number, value):
    """A field: an int as a varint, text and bytes with their length."""
    if isinstance(value, int):
        return tag(number, VARINT) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return tag(number, LEN) + varint(len(data)) + data


def take_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def parse(data):
    """The fields of a message of varints and lengths: [(number, int or bytes)]."""
    found, at = [], 0
    while at < len(data):
        key, at = take_varint(data, at)
        value, at = take_varint(data, at)
        if key & 7 == LEN:
            value, at = data[at:at + value], at + value
        elif key & 7 != VARINT:
            raise ValueError(f"wire type {key & 7}")
        found.append((key >> 3, value))
    return found


def get(data, *path):
    """All values at the end of a path of field numbers."""
    values = [data]
    for number in path:
        values = [v for message in values for n, v in parse(message) if n == number]
    return values


def call(channel, method, request, **kwargs):
    """A unary call of bytes."""
    return channel.unary_unary(method)(request, **kwargs)


def stream(channel, method, request, **kwargs):
    """A call of bytes with a stream of answers."""
    return channel.unary_stream(method)(request, **kwargs)


def both(channel, method, requests, **kwargs):
    """A call of bytes with streams in both directions."""
    return channel.stream_stream(method)(iter(requests), **kwargs)
