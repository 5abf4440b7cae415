# SPDX-License-Identifier: Apache-2.0
"""Debian's docker-registry on loopback, and the programs that put images into it.

    with RealRegistry(tls=pair, auth="basic") as r:
        r.copy("oci:/layout:tag", "a/b:1")          # by skopeo
"""
import base64
import crypt
import http.server
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

USER, PASSWORD = "user", "sec/ret"
ISSUER, SERVICE = "issuer", "service"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Tokens:
    """The token server that a registry with auth="token" believes."""

    def __init__(self, pair):
        self.cert, self.key = pair
        self.asked = []
        outer = self

        class Answer(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

            def do_GET(self):  # pylint: disable=invalid-name
                outer.asked.append(self.path)
                good = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
                body = json.dumps({"token": outer.token(self.path), "expires_in": 60}).encode()
                self.send_response(200 if self.headers.get("Authorization") == good else 401)
                self.send_header("Content-Length", str(len(body) if self.headers.get("Authorization") == good else 0))
                self.end_headers()
                if self.headers.get("Authorization") == good:
                    self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/token"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def encode(data):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    def token(self, path):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)
        access = [dict(zip(("type", "name", "actions"), (*s.split(":")[:2], s.split(":")[2].split(","))))
                  for s in query.get("scope", []) if s.count(":") == 2]
        now = int(time.time())
        with open(self.cert, encoding="ascii") as f:
            der = f.read().split("-----BEGIN CERTIFICATE-----")[1].split("-----END")[0].replace("\n", "")
        text = ".".join((self.encode({"typ": "JWT", "alg": "ES256", "x5c": [der]}),
                         self.encode({"iss": ISSUER, "sub": USER, "aud": SERVICE, "exp": now + 60, "nbf": now - 60, "iat": now - 60,
                                      "jti": os.urandom(8).hex(), "access": access})))
        proof = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(), stdout=subprocess.PIPE,
                               check=True).stdout
        # SEQUENCE of two INTEGERs, to 32 bytes each.
        first = proof[4:4 + proof[3]]
        second = proof[4 + proof[3] + 2:]
        return text + "." + self.encode(b"".join(n.lstrip(b"\0").rjust(32, b"\0") for n in (first, second)))


class RealRegistry:
    """A context manager; .host, .url. tls: (certificate, key). auth: None, "basic" or "token" (pair signs tokens then)."""

    def __init__(self, tls=None, auth=None, pair=None):
        self.tls, self.auth, self.pair = tls, auth, pair
        self.folder = tempfile.mkdtemp(prefix="registry-")
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.tokens = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def config(self):
        http_ = {"addr": self.host}
        if self.tls:
            http_["tls"] = {"certificate": self.tls[0], "key": self.tls[1]}
        config = {"version": "0.1", "log": {"level": "error"}, "storage": {"filesystem": {"rootdirectory": self.path("data")}}, "http": http_}
        if self.auth == "basic":
            with open(self.path("htpasswd"), "w", encoding="ascii") as f:
                f.write(f"{USER}:{crypt.crypt(PASSWORD, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))}\n")
            config["auth"] = {"htpasswd": {"realm": "here", "path": self.path("htpasswd")}}
        if self.auth == "token":
            self.tokens = Tokens(self.pair)
            config["auth"] = {"token": {"realm": self.tokens.url, "service": SERVICE, "issuer": ISSUER, "rootcertbundle": self.pair[0]}}
        with open(self.path("config.yml"), "w", encoding="ascii") as f:
            json.dump(config, f)

    def __enter__(self):
        self.config()
        with open(self.path("log"), "wb") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", self.path("config.yml")], stdout=log, stderr=log)
        end = time.monotonic() + 60
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port)):
                    return self
            except OSError:
                time.sleep(0.05)
        said = self.said()
        self.__exit__()
        raise RuntimeError("docker-registry does not listen: " + said)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        if self.tokens:
            self.tokens.close()
        shutil.rmtree(self.folder)

    def said(self):
        """Its log, with a line for each request."""
        with open(self.path("log"), encoding="utf-8", errors="replace") as f:
            return f.read()

    def copy(self, source, name, *options):
        """By skopeo."""
        who = ["--dest-creds", f"{USER}:{PASSWORD}"] if self.auth else []
        done = subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false", *who, *options, source,
                               f"docker://{self.host}/{name}"], capture_output=True, text=True, check=False,
                              env={**os.environ, "TMPDIR": self.folder, "HOME": self.folder})
        if done.returncode:
            raise RuntimeError(done.stderr)
