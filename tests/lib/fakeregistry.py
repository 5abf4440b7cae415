# SPDX-License-Identifier: Apache-2.0
"""A registry that answers as it is told: images and artifacts that tests put into it, and scripts that answer in its place.

    with FakeRegistry() as r:
        r.put_image("a/b", "1", layers=[b"..."])
        r.on("GET", r"/blobs/", lambda a: a.reply(503))      # each time; a script that returns False leaves it to the registry
        ... r.host is "127.0.0.1:PORT", r.requests what was asked

Standing answers follow OCI distribution 1.1: manifests by tag and digest, blobs with ranges, tags with pages, referrers, uploads
with chunks and mounts; r.auth is None, "basic" or "bearer" (r.user, r.password, r.identity; tokens are r.tokens).
"""
import base64
import gzip
import hashlib
import http.server
import io
import itertools
import json
import re
import socket
import ssl
import tarfile
import threading
import time
import urllib.parse

OCI = "application/vnd.oci.image."
INDEX, MANIFEST, CONFIG = OCI + "index.v1+json", OCI + "manifest.v1+json", OCI + "config.v1+json"
LAYER = OCI + "layer.v1.tar+gzip"
PAGE = 2


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer_tar(files):
    """A tar of {name: content}, with nothing in it that depends on when it was made."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o644
            t.addfile(info, io.BytesIO(content))
    return out.getvalue()


class Answer(http.server.BaseHTTPRequestHandler):
    """One request; scripts get this."""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def reply(self, status, body=b"", headers=(), length=True):
        """A whole answer; length: False leaves Content-Length out and closes, a number is a lie."""
        headers = dict(headers)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length is True:
            self.send_header("Content-Length", str(len(body)))
        elif length is not False:
            self.send_header("Content-Length", str(length))
        if length is not True:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def part(self, body, n, headers=(), pause=0.0, step=None):
        """The head for the whole body, n bytes of it, then the end of the connection."""
        self.send_response(200)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for at in range(0, n, step or max(n, 1)):
            self.wfile.write(body[at:min(n, at + (step or n))])
            self.wfile.flush()
            time.sleep(pause)
        self.drop()

    def drop(self):
        self.close_connection = True
        try:
            self.connection.shutdown(2)
        except OSError:
            pass

    def errors(self, status, code, message="", headers=()):
        body = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        self.reply(status, body, {"Content-Type": "application/json", **dict(headers)})

    def body(self):
        if self.headers.get("Transfer-Encoding"):
            raise ValueError("chunked")
        if self.sent is None:
            self.sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return self.sent

    def any(self):
        registry = self.server.registry
        self.sent = None
        try:
            with registry.lock:
                registry.requests.append((self.command, self.path, dict(self.headers)))
                scripts = list(registry.scripts)
            for method, pattern, script in scripts:
                if method in (self.command, "*") and re.search(pattern, self.path) and script(self) is not False:
                    return
            registry.answer(self)
        except (OSError, ssl.SSLError):
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = any


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """What it said of the end, an alert of TLS say, must not be lost behind a reset."""
        try:
            request.settimeout(5)
            request.shutdown(socket.SHUT_WR)
            while socket.socket.recv(request, 4096):
                pass
        except OSError:
            pass


class FakeRegistry:
    def __init__(self, tls=None, address="127.0.0.1", context=None, port=0):
        """tls: (certificate, key); or a context with all that a server of TLS can be."""
        self.lock = threading.Lock()
        self.blobs, self.manifests, self.uploads, self.referring = {}, {}, {}, {}
        self.numbers = itertools.count()
        self.requests, self.scripts, self.tokens = [], [], {}
        self.auth, self.user, self.password, self.identity = None, "user", "secret", None
        self.realm = None  # where tokens are had; None: here
        self.token_seconds = 60
        self.server = Server((address, port), Answer)
        self.server.registry = self
        self.tls = tls or context
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.host = f"{address}:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()

    @property
    def url(self):
        return f"http{'s' if self.tls else ''}://{self.host}"

    # ---- contents ----

    def put_blob(self, data):
        self.blobs[digest(data)] = data
        return digest(data)

    def put_manifest(self, repository, data, media_type=MANIFEST, tag=None):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.manifests[repository, digest(data)] = (media_type, data)
        if tag:
            self.manifests[repository, tag] = (media_type, data)
        return digest(data)

    def put_image(self, repository, tag=None, layers=(), architecture="amd64", plain=False, **config):
        """Layers are tars; returns the digest of the manifest. What was made is in self.last."""
        packed = [data if plain else gzip.compress(data, 1, mtime=0) for data in layers]
        document = {"os": "linux", "architecture": architecture, "config": {"Cmd": ["/x"], **config},
                    "rootfs": {"type": "layers", "diff_ids": [digest(d) for d in layers]}}
        config = json.dumps(document).encode()
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST,
                    "config": {"mediaType": CONFIG, "digest": self.put_blob(config), "size": len(config)},
                    "layers": [{"mediaType": OCI + "layer.v1.tar" if plain else LAYER, "digest": self.put_blob(p), "size": len(p)}
                               for p in packed]}
        self.last = {"config": config, "layers": packed, "manifest": manifest}
        return self.put_manifest(repository, manifest, tag=tag)

    def descriptor(self, repository, reference, **more):
        media_type, data = self.manifests[repository, reference]
        return {"mediaType": media_type, "digest": digest(data), "size": len(data), **more}

    def on(self, method, pattern, script):
        """script(answer) in place of the standing answer; the first that does not return False counts."""
        self.scripts.append((method, pattern, script))

    def once(self, method, pattern, *scripts):
        """The scripts in turn, one for each such request; then the standing answer."""
        left = list(scripts)

        def turn(answer):
            with self.lock:
                script = left.pop(0) if left else None
            return script(answer) if script else False
        self.on(method, pattern, turn)

    def asked(self, method, pattern):
        with self.lock:
            return [r for r in self.requests if r[0] == method and re.search(pattern, r[1])]

    # ---- standing answers ----

    def answer(self, a):
        url = urllib.parse.urlsplit(a.path)
        query = urllib.parse.parse_qs(url.query)
        if url.path == "/token":
            return self.give_token(a, query)
        if not self.admit(a, url.path):
            return None
        for pattern, method in ((r"^/v2/(.+)/manifests/([^/]+)$", self.manifest), (r"^/v2/(.+)/blobs/(sha256:\w+)$", self.blob),
                                (r"^/v2/(.+)/tags/list$", self.tags), (r"^/v2/(.+)/referrers/([^/]+)$", self.referrers),
                                (r"^/v2/(.+)/blobs/uploads/(\w*)$", self.upload)):
            found = re.match(pattern, url.path)
            if found:
                return method(a, query, *found.groups())
        return a.reply(200 if url.path == "/v2/" else 404)

    def manifest(self, a, _query, repository, reference):
        if a.command == "PUT":
            data = a.body()
            self.put_manifest(repository, data, a.headers["Content-Type"], None if reference.startswith("sha256:") else reference)
            return a.reply(201, b"", {"Docker-Content-Digest": digest(data), "Location": f"/v2/{repository}/manifests/{digest(data)}"})
        if (repository, reference) not in self.manifests:
            return a.errors(404, "MANIFEST_UNKNOWN", "manifest unknown")
        media_type, data = self.manifests[repository, reference]
        return a.reply(200, data, {"Content-Type": media_type, "Docker-Content-Digest": digest(data)})

    def blob(self, a, _query, _repository, name):
        if name not in self.blobs:
            return a.errors(404, "BLOB_UNKNOWN", "blob unknown")
        data = self.blobs[name]
        found = re.match(r"bytes=(\d+)-$", a.headers.get("Range", ""))
        headers = {"Content-Type": "application/octet-stream", "Docker-Content-Digest": name}
        if not found:
            return a.reply(200, data, headers)
        first = int(found.group(1))
        if first >= len(data):
            return a.reply(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        return a.reply(206, data[first:], {**headers, "Content-Range": f"bytes {first}-{len(data) - 1}/{len(data)}"})

    def tags(self, a, query, repository):
        names = sorted(t for r, t in self.manifests if r == repository and not t.startswith("sha256:"))
        if not names:
            return a.errors(404, "NAME_UNKNOWN", "repository name not known to registry")
        last = query.get("last", [""])[0]
        page = [n for n in names if n > last][:PAGE]
        more = {"Link": f'</v2/{repository}/tags/list?n={PAGE}&last={page[-1]}>; rel="next"'} if page and page[-1] != names[-1] else {}
        return a.reply(200, json.dumps({"name": repository, "tags": page}).encode(), {"Content-Type": "application/json", **more})

    def referrers(self, a, _query, repository, name):
        document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": self.referring.get((repository, name), [])}
        return a.reply(200, json.dumps(document).encode(), {"Content-Type": INDEX})

    def upload(self, a, query, repository, name):
        data = a.body()
        if a.command == "POST" and query.get("mount", [""])[0] in self.blobs:
            return a.reply(201, b"", {"Location": f"/v2/{repository}/blobs/{query['mount'][0]}"})
        if a.command == "POST":
            name = f"u{next(self.numbers)}"
            self.uploads[name] = b""
        elif name not in self.uploads:
            return a.errors(404, "BLOB_UPLOAD_UNKNOWN")
        elif a.command in ("PATCH", "PUT"):
            self.uploads[name] += data
        location = {"Location": f"/v2/{repository}/blobs/uploads/{name}?state={len(self.uploads[name])}"}
        if self.uploads[name]:
            location["Range"] = f"0-{len(self.uploads[name]) - 1}"
        if a.command != "PUT":
            return a.reply(204 if a.command == "GET" else 202, b"", location)
        if digest(self.uploads[name]) != query["digest"][0]:
            return a.errors(400, "DIGEST_INVALID", "provided digest did not match uploaded content")
        return a.reply(201, b"", {"Location": f"/v2/{repository}/blobs/{self.put_blob(self.uploads.pop(name))}"})

    # ---- who asks ----

    def basic(self):
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()

    def admit(self, a, path):
        given = a.headers.get("Authorization", "")
        if self.auth is None or (self.auth == "basic" and given == self.basic()):
            return True
        if self.auth == "bearer" and self.tokens.get(given.removeprefix("Bearer "), 0) > time.monotonic():
            return True
        found = re.match(r"^/v2/(.+)/(manifests|blobs|tags|referrers)/", path)
        challenge = 'Basic realm="fake"'
        if self.auth == "bearer":
            challenge = (f'Bearer realm="{self.realm or self.url + "/token"}",service="fake",'
                         f'scope="repository:{found.group(1) if found else ""}:pull"')
        # What is not read would be taken for the next request.
        a.body()
        a.errors(401, "UNAUTHORIZED", "authentication required", {"WWW-Authenticate": challenge})
        return False

    def new_token(self):
        token = f"t{len(self.tokens)}"
        self.tokens[token] = time.monotonic() + self.token_seconds
        return token

    def give_token(self, a, _query):
        if a.command == "POST":
            form = urllib.parse.parse_qs(a.body().decode())
            good = form.get("grant_type") == ["refresh_token"] and form.get("refresh_token") == [self.identity]
        else:
            good = self.user is None or a.headers.get("Authorization") == self.basic()
        if not good:
            return a.errors(401, "UNAUTHORIZED", "no such user")
        body = {"token": self.new_token(), "expires_in": self.token_seconds}
        return a.reply(200, json.dumps(body).encode(), {"Content-Type": "application/json"})
