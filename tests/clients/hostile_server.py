#!/usr/bin/env python3
"""A server that misbehaves as it is told, for the tests of the clients in every language.

It prints one line of JSON with its ports: {"http": ..., "other": ..., "https": ..., "reset": ...}.
"other" is the same server under another origin, "https" the same over TLS (--certificate, --key), and
"reset" resets each connection as soon as it is accepted. It ends when its standard input does.

    POST /script    {"name": "x", "steps": [...], "skew_s": 0}: what requests to /x... are answered
                    with, one step each, the last one again and again; forgets what was logged
    GET /log/x      the requests to /x... so far: [{method, target, headers, body, at_ms, connection}]

A step is an object:
    reply      what is sent, verbatim but for \\n, which becomes CR LF in the head, and for
               @fixed(30) @rfc850(30) @asctime(30) @epoch(30): that many seconds from now, on a clock that is skew_s ahead,
               and @other @http: the origins of these listeners
    drip_ms    time between one byte and the next
    chunks     "endless": the reply goes on with blocks of 16 KiB for as long as the client takes them
    interim    "endless": 103 answers for as long as the client takes them, and never the reply
    gzip       true: the reply's body is compressed; its head has neither Content-Length nor Content-Encoding yet
    end        keep (default: the connection stays open), close, reset, or stall (open, but silent)
    unread     true: the connection is reset with the request's body unread
"""

import argparse
import email.utils
import gzip
import json
import re
import socket
import ssl
import struct
import sys
import threading
import time

HEAD_BYTES, BODY_BYTES = 64 * 1024, 4 * 1024 * 1024
STALL_SECONDS, ENDLESS_BYTES = 120, 256 * 1024 * 1024


class Scripts:
    def __init__(self):
        self.lock = threading.Lock()
        self.steps, self.skew, self.logs, self.ports = {}, {}, {}, {}

    def write(self, given):
        with self.lock:
            name = given["name"]
            self.steps[name], self.skew[name], self.logs[name] = list(given["steps"]), given.get("skew_s", 0), []

    def log(self, name):
        with self.lock:
            return list(self.logs.get(name, []))

    def take(self, name, entry):
        """The step for this request, with its holes filled."""
        with self.lock:
            self.logs.setdefault(name, []).append(entry)
            steps = self.steps.get(name) or [{"reply": "HTTP/1.1 404 Not Found\nContent-Length: 0\n\n"}]
            step = dict(steps.pop(0) if len(steps) > 1 else steps[0])
            now = time.time() + self.skew.get(name, 0)
        step["reply"] = self.filled(step.get("reply", ""), now)
        return step

    def filled(self, text, now):
        forms = {"fixed": lambda at: email.utils.formatdate(at, usegmt=True),
                 "rfc850": lambda at: time.strftime("%A, %d-%b-%y %H:%M:%S GMT", time.gmtime(at)),
                 "asctime": lambda at: time.asctime(time.gmtime(at)),
                 "epoch": lambda at: str(int(at))}
        text = re.sub(r"@(fixed|rfc850|asctime|epoch)\((-?\d+)\)",
                      lambda match: forms[match[1]](int(now) + int(match[2])), text)
        for name in ("other", "https", "http"):
            text = text.replace(f"@{name}", f"{'https' if name == 'https' else 'http'}://localhost:{self.ports.get(name)}")
        return text


SCRIPTS = Scripts()
_connections = 0


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def read_until(connection, buffer, end):
    while end not in buffer and len(buffer) < HEAD_BYTES:
        block = connection.recv(65536)
        if not block:
            return None
        buffer += block
    return buffer.partition(end)


def read_request(connection, buffer):
    """(method, target, headers, body, rest), or None when the client is gone."""
    parts = read_until(connection, buffer, b"\r\n\r\n")
    if not parts or not parts[1]:
        return None
    first, *lines = parts[0].decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = [line.split(":", 1) for line in lines]
    headers = [[name, value.strip()] for name, value in headers]
    return method, target, headers, parts[2]


def read_body(connection, headers, rest):
    fields = {name.lower(): value for name, value in headers}
    if fields.get("transfer-encoding", "").lower() == "chunked":
        return read_chunks(connection, rest)
    length = min(int(fields.get("content-length", 0)), BODY_BYTES)
    while len(rest) < length:
        block = connection.recv(65536)
        if not block:
            return None
        rest += block
    return rest[:length], rest[length:]


def read_chunks(connection, rest):
    body = b""
    while True:
        parts = read_until(connection, rest, b"\r\n")
        if not parts or not parts[1]:
            return None
        size, rest = int(parts[0].split(b";")[0], 16), parts[2]
        while len(rest) < size + 2:
            block = connection.recv(65536)
            if not block:
                return None
            rest += block
        body, rest = body + rest[:size], rest[size + 2:]
        if size == 0:
            return body, rest


def serve(connection, number):
    """Requests of one connection, until a step or the client ends it."""
    rest = b""
    with connection:
        try:
            while request := read_request(connection, rest):
                method, target, headers, rest = request
                name = re.split(r"[/?]", target.lstrip("/"))[0]
                entry = {"method": method, "target": target, "headers": headers, "body": "",
                         "at_ms": time.time() * 1000, "connection": number}
                with SCRIPTS.lock:
                    unread = bool(SCRIPTS.steps.get(name)) and SCRIPTS.steps[name][0].get("unread")
                if unread:
                    SCRIPTS.take(name, entry)
                    return reset(connection)
                read = read_body(connection, headers, rest)
                if read is None:
                    return None
                entry["body"], rest = read[0].decode("latin-1"), read[1]
                if name in ("script", "log"):
                    connection.sendall(control(name, target, entry["body"]))
                elif not answer(connection, SCRIPTS.take(name, entry)):
                    return None
        except (OSError, ValueError):
            return None


def control(name, target, body):
    if name == "script":
        SCRIPTS.write(json.loads(body))
    content = json.dumps(SCRIPTS.log(target.rsplit("/", 1)[-1]) if name == "log" else {}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)


def answer(connection, step):
    """True when the connection stays open."""
    head, separator, body = step["reply"].partition("\n\n")
    while separator and re.match(r"HTTP/1\.1 1(?!01)", head.rsplit("\n\n", 1)[-1]):
        further, separator, body = body.partition("\n\n")
        head += "\n\n" + further
    content = body.encode()
    if step.get("gzip"):
        content = gzip.compress(content)
        head += f"\nContent-Encoding: gzip\nContent-Length: {len(content)}"
    data = (head.replace("\n", "\r\n") + ("\r\n\r\n" if separator else "")).encode() + content
    if step.get("interim") == "endless":
        data = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 400
        for _ in range(ENDLESS_BYTES // len(data)):
            connection.sendall(data)
    if step.get("drip_ms"):
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(step["drip_ms"] / 1000)
    else:
        connection.sendall(data)
    if step.get("chunks") == "endless":
        for _ in range(ENDLESS_BYTES // 16384):
            connection.sendall(b"4000\r\n" + b"x" * 16384 + b"\r\n")
    end = step.get("end", "keep")
    if end == "reset":
        reset(connection)
    if end == "stall":
        connection.settimeout(STALL_SECONDS)
        connection.recv(1)
    return end == "keep"


def listen(handle, context=None):
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)

    def accept():
        global _connections
        while True:
            connection, _ = listener.accept()
            with SCRIPTS.lock:
                _connections += 1
                number = _connections
            threading.Thread(target=started, args=(connection, number), daemon=True).start()

    def started(connection, number):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            handle(context.wrap_socket(connection, server_side=True) if context else connection, number)
        except OSError:
            connection.close()
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    options = parser.parse_args()
    ports = {"http": listen(serve), "other": listen(serve), "reset": listen(lambda connection, _: reset(connection))}
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        ports["https"] = listen(serve, context)
    SCRIPTS.ports = ports
    print(json.dumps(ports), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
