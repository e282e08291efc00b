"""An HTTP/2 client that can write arbitrary frames, for tests with hostile clients."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS = 0, 1, 3, 4
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value, index=False):
    """Literal HPACK header field; index: the receiver adds it to its dynamic table."""
    line = b"\x40" if index else b"\x00"
    for text in (name, value):
        if len(text) < 127:
            line += bytes([len(text)])
        else:
            line += b"\x7f"
            rest = len(text) - 127
            while rest >= 128:
                line += bytes([rest % 128 + 128])
                rest //= 128
            line += bytes([rest])
        line += text
    return line


class Calls:
    """Many calls of one path on one connection. The first call sends the path as a literal; the
    others refer to its index in the HPACK table, so that each takes 14 bytes."""

    def __init__(self, path):
        self.block = (b"\x83\x86" + literal(b":authority", b"x", index=True)
                      + literal(b":path", path, index=True)
                      + literal(b"content-type", b"application/grpc", index=True))
        self.stream = -1

    def begin(self, flags=END_HEADERS):
        self.stream += 2
        begun = frame(HEADERS, flags, self.stream, self.block)
        self.block = b"\x83\x86\xc0\xbf\xbe"
        return begun

    def reset(self):
        return frame(RESET, 0, self.stream, struct.pack(">I", 8))


def connect(address, receive_bytes=None, tls=None):
    """A connection after the HTTP/2 preface; with a small receive buffer, or over TLS."""
    host, port = address.split(":")
    raw = socket.socket()
    if receive_bytes:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    raw.settimeout(10)
    raw.connect((host, int(port)))
    if tls:
        raw = tls.wrap_socket(raw)
    raw.sendall(PREFACE + frame(SETTINGS, 0, 0))
    return raw
