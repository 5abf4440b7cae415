# SPDX-License-Identifier: Apache-2.0
"""Registries and networks that fail, one after the other as the programme of tests lists them (security.md 3.4), through a
whole daemon: each pull ends within its bound, with an exact status and a sentence that names the cause, or with the image.

A script is a function of a World; all of them run at once, against one daemon, and a test for each tells how it went. Behind the
last one the daemon is alive and whole, and has no file that it had not before.
"""
import bz2
import concurrent.futures
import email.utils
import gzip
import json
import lzma
import os
import re
import shutil
import tempfile
import threading
import time

import grpc

import fakenet
import nacre_test
from fakeregistry import CONFIG, INDEX, LAYER, MANIFEST, OCI, FakeRegistry, digest, layer_tar
from nacre_test import nacre_pb2

Code = grpc.StatusCode
SCRIPTS = []
AT_ONCE = 16
FAR = "192.0.2.1"
NAMES = {"far.test": FAR, "store.test": FAR, "poison.test": "169.254.169.254", "local.test": "127.0.0.1", "slow.test": None}


def script(function):
    SCRIPTS.append(function)
    return function


class World:
    """What one script has: registries, configuration of hosts, pulls."""

    def __init__(self, case):
        self.case, self.node, self.ca = case, case.node, case.ca
        self.assertEqual, self.assertIn, self.assertRegex = case.assertEqual, case.assertIn, case.assertRegex
        self.auths, self.notes = [], []

    def registry(self, layers=1, size=3000, **how):
        """A registry with an image a/b:1 that nobody else has."""
        r = FakeRegistry(**how).__enter__()  # pylint: disable=unnecessary-dunder-call
        self.case.opened.append(r)
        r.put_image("a/b", "1", layers=[layer_tar({f"{n}": os.urandom(size)}) for n in range(layers)])
        r.first = digest(r.last["layers"][0]) if layers else ""
        return r

    def named(self, name="far.test", **how):
        """The same with TLS and a name that is not of this machine, as its address seems to be."""
        r = self.registry(address=FAR, **({"tls": self.case.pair} if "context" not in how and "tls" not in how else {}), **how)
        r.host = f"{name}:{r.port}"
        self.hosts(r.host, f'ca = "{self.ca.cert}"\n')
        return r

    def hosts(self, host, text):
        folder = os.path.join(self.case.certs, host)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "hosts.toml"), "w", encoding="utf-8") as f:
            f.write(text)

    def pull(self, image, **more):
        """The image; what was said on the way is in self.notes."""
        self.notes = []
        request = nacre_pb2.PullRequest(image=image, auths=self.auths, **more)
        found = None
        for answer in self.node.images.Pull(request, timeout=120 * nacre_test.SLOWNESS):
            if answer.note:
                self.notes.append(answer.note)
            found = answer.image if answer.HasField("image") else found
        return found

    def said(self):
        return "\n".join(self.notes)

    def good(self, image, **more):
        """It is pulled, and what is unpacked is what was put there; then it goes again."""
        found = self.pull(image, **more)
        self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=found.id))
        return found

    def bad(self, image, code, *words, **more):
        try:
            self.good(image, **more)
        except grpc.RpcError as e:
            self.assertEqual((code, e.details()), (e.code(), e.details()))
            # Whatever it was: the sentence says of which registry.
            for word in (image.split("/")[0], *words):
                self.assertIn(word, e.details())
            return e.details()
        raise AssertionError(f"{image} was pulled")

    def unreachable(self, image, *words, **more):
        text = self.bad(image, Code.UNAVAILABLE, *words, **more)
        self.assertRegex(text, "^RegistryUnavailable: registry " + re.escape(image.split("/")[0]))
        return text


# ---- names ----

@script
def dns_nxdomain(w):
    w.unreachable("nx.test:5000/a/b:1", "Could not resolve host: nx.test")


@script
def dns_timeout(w):
    w.unreachable("slow.test:5000/a/b:1", "Could not resolve host: slow.test")


@script
def dns_poison(w):
    """A name that a stranger wrote leads to this link or machine, and so does a registry's own."""
    r, inside = w.named(), w.registry(tls=w.case.pair)
    for name, port in (("poison.test", 80), ("local.test", inside.port)):
        r.scripts.clear()
        r.on("GET", r.first, lambda a, to=f"https://{name}:{port}/x": a.reply(307, b"", {"Location": to}))
        text = w.bad(f"{r.host}/a/b:1", Code.PERMISSION_DENIED, f"connect to {name}", "an address of this machine or link")
        w.assertRegex(text, "^manifest sha256:[0-9a-f]{64}: registry|^registry")
    w.assertEqual(inside.requests, [])
    other = w.registry(address=FAR, tls=w.ca.make("other", names="DNS:elsewhere.example"))
    w.hosts(f"far.test:{other.port}", f'ca = "{w.ca.cert}"\n')
    w.unreachable(f"far.test:{other.port}/a/b:1", "far.test")
    w.assertEqual(other.requests, [])


# ---- connections ----

@script
def connect_refused(w):
    r = w.registry()
    r.__exit__()
    w.unreachable(f"{r.host}/a/b:1", "Connection refused")


@script
def connect_blackhole(w):
    with fakenet.Blackhole() as hole:
        w.hosts(f"127.0.0.1:{hole.port}", f'server = "http://127.0.0.1:{hole.port}"\ndial_timeout = "500ms"\n')
        # curl has two words for it, by who of its clocks is first.
        text = w.unreachable(f"127.0.0.1:{hole.port}/a/b:1", "no progress")
        w.assertRegex(text, "Timeout was reached|Connection timeout")


@script
def tls_unknown_authority(w):
    r = w.named(tls=w.ca.make("alone", own=True))
    w.unreachable(f"{r.host}/a/b:1", "certificate")
    w.assertEqual(r.requests, [])
    w.hosts(r.host, f'ca = "{w.ca.path("alone.pem")}"\n')
    w.good(f"{r.host}/a/b:1")


@script
def tls_expired(w):
    r = w.named(tls=w.ca.make("ended", ended=True))
    w.unreachable(f"{r.host}/a/b:1", "certificate has expired")
    w.assertEqual(r.requests, [])


@script
def tls_wrong_host(w):
    r = w.named(tls=w.ca.make("wrong", names="DNS:wrong.test"))
    w.unreachable(f"{r.host}/a/b:1", "no alternative certificate subject name matches target host name 'far.test'")
    w.assertEqual(r.requests, [])


@script
def tls_old_version(w):
    r = w.named(context=fakenet.old_tls(w.case.pair))
    w.unreachable(f"{r.host}/a/b:1", "SSL")
    w.assertEqual(r.requests, [])


@script
def tls_client_certificate(w):
    r = w.named(context=fakenet.asks_for_certificates(w.case.pair, w.ca.cert))
    w.unreachable(f"{r.host}/a/b:1", "certificate required")
    w.assertEqual(w.said(), "")
    cert, key = w.ca.make("client", names=None)
    w.hosts(r.host, f'ca = "{w.ca.cert}"\nclient = [["{cert}", "{key}"]]\n')
    w.good(f"{r.host}/a/b:1")


# ---- who asks ----

def knows(w, r, **more):
    w.auths = [nacre_pb2.RegistryAuth(host=r.host, **({"username": "user", "password": "secret"} | more))]


@script
def auth_401_without_end(w):
    r = w.registry()
    r.auth, r.new_token = "bearer", lambda: "never"
    knows(w, r)
    w.bad(f"{r.host}/a/b:1", Code.UNAUTHENTICATED, "does not accept the credentials", "authentication required")
    assert len(r.requests) <= 6, r.requests
    r.auth = "basic"
    r.user = "nobody"
    r.requests.clear()
    w.bad(f"{r.host}/a/b:1", Code.UNAUTHENTICATED, "does not accept the credentials")
    assert len(r.requests) <= 3, r.requests


@script
def auth_token_ends_in_a_blob(w):
    r = w.registry(size=3 << 20)
    r.auth = "bearer"
    knows(w, r)

    def forget(a):
        r.tokens.clear()
        a.part(r.last["layers"][0], 1 << 20)
    r.once("GET", r.first, forget)
    w.good(f"{r.host}/a/b:1")
    w.assertEqual(len(r.asked("GET", "^/token")), 2)
    w.assertEqual({q[2].get("Range") for q in r.asked("GET", r.first)}, {None, "bytes=1048576-"})


@script
def auth_realm_down(w):
    r, realm = w.registry(), w.registry()
    r.auth, r.realm = "bearer", realm.url + "/token"
    knows(w, r)
    realm.on("GET", "/token", lambda a: a.errors(503, "UNAVAILABLE", "tired"))
    w.unreachable(f"{r.host}/a/b:1", "the token server 127.0.0.1", "status 503", "tired")
    realm.__exit__()
    w.unreachable(f"{r.host}/a/b:1", "the token server 127.0.0.1", "Connection refused")


@script
def auth_stays_with_its_host(w):
    """Behind redirects, to realms and to mirrors nothing of it is sent; no URL of a manifest is asked at all."""
    r, store, mirror = w.named(), w.named("store.test"), w.named("store.test")
    r.auth = "basic"
    knows(w, r)
    store.blobs.update(r.blobs)
    r.on("GET", r.first, lambda a: a.reply(307, b"", {"Location": f"https://{store.host}/v2/x/blobs/{r.first}"}))
    mirror.on("*", "", lambda a: a.reply(401, b"", {"WWW-Authenticate": 'Basic realm="me too"'}))
    w.hosts(r.host, f'ca = "{w.ca.cert}"\n[host."https://{mirror.host}"]\nca = "{w.ca.cert}"\n')
    w.good(f"{r.host}/a/b:1")
    for other in (store, mirror):
        assert other.requests
        w.assertEqual([q for q in other.requests if "secret" in str(q) or "Authorization" in q[2]], [])


# ---- answers ----

def of_both(w, status, code, *words):
    """For the manifest, and for a blob behind a good one."""
    r = w.registry()
    for pattern, what in (("/manifests/", "manifest 1"), (r.first, "blob " + r.first)):
        r.scripts.clear()
        r.requests.clear()
        r.on("GET", pattern, lambda a: a.errors(status, "WHY", "be cause"))
        w.bad(f"{r.host}/a/b:1", code, f"status {status}", "WHY: be cause", what, r.host)
        w.assertEqual(len(r.asked("GET", pattern)), 1)


@script
def status_403(w):
    of_both(w, 403, Code.PERMISSION_DENIED)


@script
def status_404(w):
    of_both(w, 404, Code.NOT_FOUND)


@script
def status_400(w):
    of_both(w, 400, Code.INVALID_ARGUMENT)


@script
def status_405(w):
    of_both(w, 405, Code.FAILED_PRECONDITION)


@script
def status_4xx(w):
    """Any other: nobody tries again, nobody is told to, and where it says nothing of itself, we do where we know."""
    r = w.registry()
    kinds = {400: (Code.INVALID_ARGUMENT, "it does not take the request"), 406: (None, "no form that is understood here"),
             407: (None, "a proxy wants credentials"), 410: (Code.NOT_FOUND, "it was there, and is gone"), 413: (None, "too large"),
             451: (Code.PERMISSION_DENIED, "the law forbids it")}
    for status in (400, 402, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 417, 418, 421, 422, 424, 426, 428, 431, 451, 499):
        code, words = kinds.get(status, (None, ""))
        r.scripts.clear()
        r.requests.clear()
        r.on("GET", "/manifests/", lambda a, s=status: a.reply(s))
        text = w.bad(f"{r.host}/a/b:1", code or Code.FAILED_PRECONDITION, words)
        w.assertRegex(text, rf"^registry {r.host} \({r.url}\): manifest 1: it answers with status {status}( \(|$)")
        w.assertEqual(len(r.requests), 1)


@script
def status_of_a_mirror(w):
    """The next one is asked; the last word names the registry, and who of them said it."""
    r, mirror = w.registry(), w.registry()
    w.hosts(r.host, f'server = "{r.url}"\n[host."{mirror.url}"]\n')
    mirror.on("GET", "/manifests/", lambda a: a.errors(405, "UNSUPPORTED", "not from here"))
    w.good(f"{r.host}/a/b:1")
    w.assertIn(f"{mirror.url}: manifest 1: it answers with status 405 (UNSUPPORTED: not from here); the next one is asked", w.said())
    w.hosts(r.host, f'server = "{mirror.url}"\n')
    w.bad(f"{r.host}/a/b:1", Code.FAILED_PRECONDITION, f"registry {r.host} ({mirror.url}): manifest 1: ", "not from here")


@script
def status_of_a_token_server(w):
    """400 is how OAuth 2 refuses who asks; what it has not is no image."""
    r = w.registry()
    r.auth = "bearer"
    for status, code in ((400, Code.FAILED_PRECONDITION), (404, Code.FAILED_PRECONDITION), (405, Code.FAILED_PRECONDITION)):
        r.scripts.clear()
        r.on("GET", "/token", lambda a, s=status: a.errors(s, "WHY", "be cause"))
        w.bad(f"{r.host}/a/b:1", code, "the token server 127.0.0.1", f"status {status} (WHY: be cause)")
    knows(w, r)
    r.scripts.clear()
    r.on("GET", "/token", lambda a: a.errors(400, "invalid_grant"))
    w.bad(f"{r.host}/a/b:1", Code.UNAUTHENTICATED, "the token server 127.0.0.1", "does not accept the credentials (invalid_grant)")


@script
def status_408(w):
    for status in (408, 425):
        r = w.registry()
        r.once("GET", "/manifests/", lambda a, s=status: a.reply(s))
        r.once("GET", r.first, lambda a, s=status: a.reply(s))
        w.good(f"{r.host}/a/b:1")
        w.assertEqual(len([n for n in w.notes if f"status {status}; tried again" in n]), 2)


@script
def status_416(w):
    r = w.registry(size=2 << 20)
    data = r.last["layers"][0]
    r.once("GET", r.first, lambda a: a.part(data, 1 << 20), lambda a: a.reply(416))
    w.good(f"{r.host}/a/b:1")
    w.assertEqual([q[2].get("Range") for q in r.asked("GET", r.first)], [None, "bytes=1048576-", None])


@script
def status_429_seconds(w):
    r = w.registry()
    r.once("GET", "/manifests/", lambda a: a.reply(429, b"", {"Retry-After": "2"}))
    began = time.monotonic()
    w.good(f"{r.host}/a/b:1")
    assert time.monotonic() - began >= 2


@script
def status_429_date(w):
    r = w.registry()
    until = time.time() + 3
    r.once("GET", "/manifests/", lambda a: a.reply(429, b"", {"Retry-After": email.utils.formatdate(until, usegmt=True)}))
    w.good(f"{r.host}/a/b:1")
    assert time.time() >= int(until)


@script
def status_429_for_thirty_years(w):
    """What is waited for has a bound, and somebody who does not wait so long leaves."""
    r = w.registry()
    r.on("GET", "/manifests/", lambda a: a.reply(429, b"", {"Retry-After": "1000000000"}))
    call = w.node.images.Pull(nacre_pb2.PullRequest(image=f"{r.host}/a/b:1"))
    note = next(call).note
    call.cancel()
    w.assertRegex(note, "status 429; tried again in 30000 ms$")


@script
def status_5xx_then_ok(w):
    r = w.registry()
    r.once("GET", "/manifests/", *(lambda a, s=s: a.reply(s) for s in (500, 502, 503, 504)))
    r.once("GET", r.first, *(lambda a, s=s: a.reply(s) for s in (503, 500)))
    w.good(f"{r.host}/a/b:1")
    w.assertEqual(len(r.asked("GET", "/manifests/")), 5)
    w.assertEqual(len(r.asked("GET", r.first)), 3)


@script
def status_5xx_without_end(w):
    r = w.registry()
    r.on("GET", "/manifests/", lambda a: a.reply(502))
    w.unreachable(f"{r.host}/a/b:1", "status 502")
    w.assertEqual(len(r.asked("GET", "/manifests/")), 6)


# ---- redirects ----

@script
def redirect_loop(w):
    r = w.registry()
    r.on("GET", r.first, lambda a: a.reply(302, b"", {"Location": a.path}))
    w.bad(f"{r.host}/a/b:1", Code.UNAVAILABLE, "more than 10 redirects")
    w.assertEqual(len(r.asked("GET", r.first)), 11)


@script
def redirect_ten_hops(w):
    r = w.registry()

    def hop(a):
        n = int((re.search(r"hop=(\d+)", a.path) or [0, "0"])[1])
        return a.reply(307, b"", {"Location": f"{a.path.split('?')[0]}?hop={n + 1}"}) if n < 10 else False
    r.on("GET", r.first, hop)
    w.good(f"{r.host}/a/b:1")
    w.assertEqual(len(r.asked("GET", r.first)), 11)


@script
def redirect_to_another_scheme(w):
    r, plain = w.named(), w.registry()
    for to, words in ((plain.url + "/x", "from https to http"), ("file:///etc/passwd", "file:"), ("ftp://h/", "ftp:"), ("gopher://h/", "gopher:")):
        r.scripts.clear()
        r.on("GET", r.first, lambda a, to=to: a.reply(301, b"", {"Location": to}))
        text = w.bad(f"{r.host}/a/b:1", Code.PERMISSION_DENIED if "from" in words else Code.INVALID_ARGUMENT, words)
        w.assertIn("redirect", text)
    w.assertEqual(plain.requests, [])


# ---- lengths ----

@script
def length_too_small(w):
    r = w.registry()
    data = r.last["layers"][0]
    r.on("GET", r.first, lambda a: a.reply(200, data[:-7]))
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, f"{len(data) - 7} bytes to send, not {len(data)}")
    manifest = json.dumps(r.last["manifest"]).encode()
    r.scripts.clear()
    r.on("GET", "/manifests/", lambda a: a.reply(200, manifest, {"Content-Type": MANIFEST}, length=len(manifest) - 7))
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, "JSON")


@script
def length_too_large(w):
    r = w.registry()
    data, manifest = r.last["layers"][0], json.dumps(r.last["manifest"]).encode()
    r.on("GET", r.first, lambda a: a.reply(200, data, length=len(data) + 7))
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, f"{len(data) + 7} bytes to send, not {len(data)}")
    r.scripts.clear()
    r.on("GET", "/manifests/", lambda a: a.reply(200, manifest, {"Content-Type": MANIFEST}, length=len(manifest) + 7))
    w.unreachable(f"{r.host}/a/b:1", "7 bytes remaining")
    r.scripts.clear()
    r.on("GET", "/manifests/", lambda a: a.reply(200, manifest, {"Content-Type": MANIFEST}, length=1 << 40))
    w.bad(f"{r.host}/a/b:1", Code.RESOURCE_EXHAUSTED, "the document has more than")


@script
def length_missing(w):
    r = w.registry()
    data, manifest = r.last["layers"][0], json.dumps(r.last["manifest"]).encode()
    r.on("GET", "/manifests/", lambda a: a.reply(200, manifest, {"Content-Type": MANIFEST}, length=False))
    r.once("GET", r.first, lambda a: a.reply(200, data[:-7], length=False), lambda a: a.reply(200, data, length=False))
    w.good(f"{r.host}/a/b:1")
    w.assertIn(f"ended at byte {len(data) - 7} of {len(data)}", w.said())
    r.scripts.clear()
    r.on("GET", r.first, lambda a: a.reply(200, data + b"x" * 100000, length=False))
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, f"more than {len(data)} bytes")


def chunked(body, end=True):
    def reply(a):
        a.send_response(200)
        a.send_header("Content-Type", MANIFEST)
        a.send_header("Transfer-Encoding", "chunked")
        a.end_headers()
        for at in range(0, len(body), 1000):
            piece = body[at:at + 1000]
            a.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if end:
            a.wfile.write(b"0\r\n\r\n")
        else:
            a.drop()
    return reply


@script
def length_chunked(w):
    r = w.registry()
    data, manifest = r.last["layers"][0], json.dumps(r.last["manifest"]).encode()
    r.on("GET", "/manifests/", chunked(manifest))
    r.once("GET", r.first, chunked(data[:2000], end=False), chunked(data))
    w.good(f"{r.host}/a/b:1")
    w.assertIn("tried again", w.said())
    r.on("GET", r.first, chunked(data + b"x" * 5000))
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, f"more than {len(data)} bytes")


@script
def reset_and_resumed(w):
    r = w.registry(size=1 << 20)
    data = r.last["layers"][0]
    cuts = (0, 1, 4096, 65537, len(data) - 1)
    r.once("GET", r.first, lambda a: a.part(data, 0), lambda a: a.part(data, 1),
           *(lambda a, n=n: part_of(a, data, n) for n in cuts[2:]))
    w.good(f"{r.host}/a/b:1")
    w.assertEqual([q[2].get("Range") for q in r.asked("GET", r.first)], [None, None] + [f"bytes={n}-" for n in cuts[1:]])


def part_of(a, data, end):
    """As a range was asked for, up to byte `end`; then a reset."""
    first = int(re.match(r"bytes=(\d+)-", a.headers["Range"])[1])
    a.send_response(206)
    a.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
    a.send_header("Content-Length", str(len(data) - first))
    a.end_headers()
    a.wfile.write(data[first:end])
    a.wfile.flush()
    a.drop()


@script
def reset_and_range_ignored(w):
    r = w.registry(size=1 << 20)
    data = r.last["layers"][0]
    r.once("GET", r.first, lambda a: a.part(data, 300000), lambda a: a.part(data, 200000), lambda a: a.reply(200, data))
    w.good(f"{r.host}/a/b:1")
    w.assertEqual([q[2].get("Range") for q in r.asked("GET", r.first)], [None, "bytes=300000-", "bytes=300000-"])


# ---- pace ----

@script
def trickle(w):
    r = w.registry()
    r.on("GET", r.first, lambda a: a.part(r.last["layers"][0], 100, pause=0.2, step=1))
    w.unreachable(f"{r.host}/a/b:1", "no progress", "blob " + r.first)


@script
def silence_behind_headers(w):
    r, over = w.registry(), threading.Event()
    w.case.addClassCleanup(over.set)

    def silent(a):
        a.send_response(200)
        a.send_header("Content-Length", str(len(r.last["layers"][0])))
        a.end_headers()
        over.wait(600)
    r.on("GET", r.first, silent)
    began = time.monotonic()
    w.unreachable(f"{r.host}/a/b:1", "no progress")
    # Six times the configured second, pauses of 100 ms to 1.6 s between them: far below one such silence.
    assert time.monotonic() - began < 60 * nacre_test.SLOWNESS


# ---- content ----

@script
def wrong_digest(w):
    r = w.registry()
    data = r.last["layers"][0]
    other = data[:-1] + bytes([data[-1] ^ 1])
    r.once("GET", r.first, lambda a: a.reply(200, other))
    w.good(f"{r.host}/a/b:1")
    w.assertIn(f"what came of it has the digest {digest(other)}; it is loaded anew", w.said())
    r.on("GET", r.first, lambda a: a.reply(200, other))
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, r.first, digest(other))
    config = digest(r.last["config"])
    r.scripts.clear()
    r.on("GET", config, lambda a: a.reply(200, b"x" * len(r.last["config"])))
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, config)
    r.scripts.clear()
    w.bad(f"{r.host}/a/b@{digest(b'another')}", Code.NOT_FOUND, "manifest unknown")
    w.good(f"{r.host}/a/b:1")


def rewritten(r, **changes):
    manifest = {**r.last["manifest"], **changes}
    return r.put_manifest("a/b", manifest, tag="1")


@script
def wrong_size(w):
    r = w.registry()
    entry = r.last["manifest"]["layers"][0]
    for by in (-1, 1):
        rewritten(r, layers=[{**entry, "size": entry["size"] + by}])
        w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, f"{entry['size']} bytes to send, not {entry['size'] + by}")
    rewritten(r, layers=[{**entry, "size": 1 << 49}])
    w.bad(f"{r.host}/a/b:1", Code.RESOURCE_EXHAUSTED, "blob " + entry["digest"])
    rewritten(r, layers=[{**entry, "size": 1 << 62}])
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, '"size" is no number from 0')


@script
def gzip_called_zstd(w):
    r = w.registry()
    entry = r.last["manifest"]["layers"][0]
    rewritten(r, layers=[{**entry, "mediaType": OCI + "layer.v1.tar+zstd"}])
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, "layer 1 of 1", "gzip", "zstd")
    rewritten(r, layers=[{**entry, "mediaType": OCI + "layer.v1.tar"}])
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, "layer 1 of 1", "gzip")


@script
def compressed_by_others(w):
    """xz and bzip2: said by the type, or found in what is said to be something else."""
    r = w.registry()
    tar = layer_tar({"x": os.urandom(3000)})
    for program, data in (("xz", lzma.compress(tar)), ("bzip2", bz2.compress(tar))):
        name, size = r.put_blob(data), len(data)
        config = json.dumps({"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": [digest(tar)]}}).encode()
        for form, code in ((f"layer.v1.tar+{program}", Code.UNIMPLEMENTED), ("layer.v1.tar+gzip", Code.UNIMPLEMENTED),
                           ("layer.v1.tar+zstd", Code.UNIMPLEMENTED), ("layer.v1.tar", Code.UNIMPLEMENTED)):
            rewritten(r, config={"mediaType": CONFIG, "digest": r.put_blob(config), "size": len(config)},
                      layers=[{"mediaType": OCI + form, "digest": name, "size": size}])
            w.bad(f"{r.host}/a/b:1", code, "layer 1", program, "gzip and zstd are")


@script
def gzip_with_more_behind(w):
    r = w.registry()
    tar = layer_tar({"x": os.urandom(3000)})
    config = json.dumps({"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": [digest(tar)]}}).encode()
    packed = gzip.compress(tar, mtime=0) + b"more behind it"
    rewritten(r, config={"mediaType": CONFIG, "digest": r.put_blob(config), "size": len(config)},
              layers=[{"mediaType": LAYER, "digest": r.put_blob(packed), "size": len(packed)}])
    w.bad(f"{r.host}/a/b:1", Code.INVALID_ARGUMENT, "layer 1 of 1", "gzip")


@script
def no_such_platform(w):
    r = w.registry()
    entries = [r.descriptor("a/b", "1", platform={"os": "linux", "architecture": a, "variant": v})
               for a, v in (("arm", "v7"), ("s390x", ""), ("amd64", "v9"))]
    root = r.put_manifest("a/b", {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}, INDEX, tag="1")
    w.bad(f"{r.host}/a/b:1", Code.FAILED_PRECONDITION, f"index {root} has no image for linux/amd64")
    w.bad(f"{r.host}/a/b:1", Code.FAILED_PRECONDITION, "no image for linux/arm/v6", architecture="arm", variant="v6")
    w.bad(f"{r.host}/a/b:1", Code.FAILED_PRECONDITION, "the image is for linux/amd64, not for linux/arm", architecture="arm")


@script
def index_in_an_index(w):
    r = w.registry()
    made = r.descriptor("a/b", "1", platform={"os": "linux", "architecture": "amd64"})
    for depth in range(1, 12):
        r.put_manifest("a/b", {"schemaVersion": 2, "mediaType": INDEX, "manifests": [made]}, INDEX, tag=f"{depth}")
        made = r.descriptor("a/b", f"{depth}")
    w.good(f"{r.host}/a/b:2")
    w.bad(f"{r.host}/a/b:11", Code.INVALID_ARGUMENT, "nested more than")


@script
def schema_1(w):
    r = w.registry()
    kind = "application/vnd.docker.distribution.manifest.v1+"
    for form in ("prettyjws", "json"):
        r.put_manifest("a/b", {"schemaVersion": 1, "name": "a/b", "fsLayers": []}, kind + form, tag="1")
        w.bad(f"{r.host}/a/b:1", Code.UNIMPLEMENTED, "schema 1")


@script
def no_layers(w):
    r = w.registry(layers=0)
    w.good(f"{r.host}/a/b:1")
    # Layers without a single entry, compressed and not.
    r.put_image("a/b", "2", layers=[layer_tar({}), layer_tar({"only": b""})])
    w.good(f"{r.host}/a/b:2")
    r.put_image("a/b", "3", layers=[layer_tar({})], plain=True)
    w.good(f"{r.host}/a/b:3")


@script
def layers_more_than_once(w):
    r = w.registry()
    one, two = layer_tar({"1": os.urandom(2000)}), layer_tar({"2": os.urandom(2000)})
    r.put_image("a/b", "2", layers=[one, two, one, one, two])
    w.good(f"{r.host}/a/b:2")
    for data in set(r.last["layers"]):
        w.assertEqual(len(r.asked("GET", digest(data))), 1)


@script
def documents_that_grow(w):
    """What takes a hundred times its size to be read is refused before that."""
    r = w.registry()
    for body, code, words in ((b"[" * 1000000 + b"]" * 1000000, Code.INVALID_ARGUMENT, "nested more than 64 deep"),
                              (b"[" + b"{}," * 1000000 + b"0]", Code.RESOURCE_EXHAUSTED, "more than 65536 values")):
        r.put_manifest("a/b", b'{"schemaVersion":2,"a":' + body + b"}", tag="1")
        w.bad(f"{r.host}/a/b:1", code, words)


# ---- others meanwhile ----

@script
def mirrors(w):
    """The first is broken in one way after the other, the second is good; and nobody where none is."""
    r, first, second = w.named(), w.registry(), w.registry()
    second.blobs.update(r.blobs)
    second.manifests.update(r.manifests)
    w.hosts(r.host, f'ca = "{w.ca.cert}"\n' + "".join(f'[host."{m.url}"]\n' for m in (first, second)))
    for name, breaks in (("500", lambda a: a.reply(500)), ("401", lambda a: a.errors(401, "NO")), ("404", lambda a: a.reply(404)),
                         ("cut", lambda a: a.drop()), ("lies", lambda a: a.reply(200, b"{}", {"Content-Type": MANIFEST}))):
        first.scripts.clear()
        first.on("GET", "/manifests/" if name != "lies" else "/blobs/", breaks)
        first.manifests, first.blobs = ({}, {}) if name != "lies" else (dict(r.manifests), {})
        w.good(f"{r.host}/a/b:1")
        w.assertIn(first.url, w.said())
    w.assertEqual(r.requests, [])
    second.__exit__()
    first.on("*", "", lambda a: a.reply(500))
    w.good(f"{r.host}/a/b:1")
    w.assertIn(second.url, w.said())


@script
def tag_moves_meanwhile(w):
    """Another image behind the tag with each answer: what is pulled is the first, whole."""
    r = w.registry(layers=2)
    first, layers = r.manifests["a/b", "1"], [digest(d) for d in r.last["layers"]]

    def move(_a):
        r.put_image("a/b", "1", layers=[layer_tar({"other": os.urandom(100)})])
        return False
    r.on("GET", "/blobs/", move)
    found = w.pull(f"{r.host}/a/b:1")
    w.assertEqual(found.digest, digest(first[1]))
    w.assertEqual({d for d in layers if r.asked("GET", d)}, set(layers))
    w.assertEqual(len(r.asked("GET", "/manifests/")), 1)
    w.node.images.Remove(nacre_pb2.RemoveImageRequest(image=found.id))


# ---- alone with the daemon, behind the others ----

def staging_is_empty(w):
    """What a pull had for itself is gone within a second; what it has loaded stays for the next one."""
    end = time.monotonic() + nacre_test.SLOWNESS
    while os.listdir(w.node.root + "/staging"):
        if time.monotonic() > end:
            raise AssertionError(f"left behind: {os.listdir(w.node.root + '/staging')}")
        time.sleep(0.01)


def fifty_at_once(w):
    r = w.registry(layers=3, size=1 << 20)
    blobs = [digest(d) for d in r.last["layers"]]
    for k in range(50):
        r.manifests["a/b", f"t{k}"] = r.manifests["a/b", "1"]
    # It comes slowly until all of them are there: each asks for the configuration first.
    config, data = digest(r.last["config"]), r.last["layers"][0]

    def slowly(a):
        a.send_response(200)
        a.send_header("Content-Length", str(len(data)))
        a.end_headers()
        for at in range(0, len(data), 8192):
            a.wfile.write(data[at:at + 8192])
            if len(r.asked("GET", config)) < 50:
                time.sleep(0.1)
    r.on("GET", r.first, slowly)
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        found = list(pool.map(lambda k: w.pull(f"{r.host}/a/b:t{k}").id, range(50)))
    w.assertEqual(len(set(found)), 1)
    for blob in blobs:
        w.assertEqual(len(r.asked("GET", blob)), 1)
    w.assertEqual(len(w.node.images.Inspect(nacre_pb2.InspectImageRequest(image=found[0])).image.names), 50)
    w.node.images.Remove(nacre_pb2.RemoveImageRequest(image=found[0]))


def cancelled_at_each_phase(w):
    """By its client, while the registry holds the answer back that belongs to the phase."""
    r = w.registry(layers=2, size=1 << 20)
    r.auth = "bearer"
    knows(w, r)
    config, last = digest(r.last["config"]), digest(r.last["layers"][1])
    for pattern in ("^/v2/a/b/manifests", "^/token", "/manifests/", config, r.first, last):
        there, over = threading.Event(), threading.Event()

        def hold(a, pattern=pattern, there=there, over=over):
            if pattern in (r.first, last):
                a.send_response(200)
                a.send_header("Content-Length", str(len(r.blobs[pattern])))
                a.end_headers()
                a.wfile.write(r.blobs[pattern][:700000])
            there.set()
            over.wait(600)
            a.drop()

        def hold_too(a, over=over):
            over.wait(600)
            a.drop()
        r.scripts.clear()
        r.tokens.clear()
        r.once("GET", pattern, hold)
        if pattern == r.first:
            # Else it may be whole before the pull is cancelled, and nobody asks for it any more.
            r.once("GET", last, hold_too)
        call = w.node.images.Pull(nacre_pb2.PullRequest(image=f"{r.host}/a/b:1", auths=w.auths))
        ended = []
        reader = threading.Thread(target=lambda call=call, ended=ended: ended.append(drain(call)))
        reader.start()
        assert there.wait(60 * nacre_test.SLOWNESS), (pattern, ended)
        call.cancel()
        staging_is_empty(w)
        reader.join()
        over.set()
    r.scripts.clear()
    w.good(f"{r.host}/a/b:1")


def drain(call):
    """How it ended."""
    try:
        return list(call)[-1:]
    except grpc.RpcError as error:
        return error.code(), error.details()


def removed_while_it_is_pulled(w):
    """The image is there, is pulled anew under another name, and is removed meanwhile; and so is what it shares with another."""
    r = w.registry(layers=2, size=1 << 20)
    there, over = threading.Event(), threading.Event()
    found = w.pull(f"{r.host}/a/b:1")
    shared, own = r.last["layers"][0], layer_tar({"own": os.urandom(1000)})
    tar = gzip.decompress(shared)
    r.put_image("a/c", "1", layers=[tar, own])

    def hold(_a):
        there.set()
        over.wait(600)
        return False
    r.on("GET", digest(r.last["layers"][1]), hold)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pull = pool.submit(w.pull, f"{r.host}/a/c:1")
        assert there.wait(60 * nacre_test.SLOWNESS)
        w.node.images.Remove(nacre_pb2.RemoveImageRequest(image=found.id))
        over.set()
        second = pull.result()
    w.assertEqual(len(r.asked("GET", digest(shared))), 1)
    w.node.images.Remove(nacre_pb2.RemoveImageRequest(image=second.id))


ALONE = (fifty_at_once, cancelled_at_each_phase, removed_while_it_is_pulled)


class Scripts(nacre_test.NodeTest):
    IMAGES = ()
    ENV = {"https_proxy": "", "http_proxy": ""}

    @classmethod
    def setUpClass(cls):
        if not shutil.which("openssl"):
            raise cls.skipTest("no openssl, who makes certificates")
        cls.folder = tempfile.mkdtemp(prefix="scripts-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.certs = cls.folder + "/certs.d"
        cls.CONFIG = f"images:\n  registry_dirs: {cls.certs}\n  no_progress_timeout: 1s\n"
        cls.ca = fakenet.Authority(cls.folder)
        cls.pair = cls.ca.make("usual")
        cls.opened = []
        cls.addClassCleanup(lambda: [r.__exit__() for r in cls.opened])
        cls.enterClassContext(fakenet.Address(FAR))
        cls.enterClassContext(fakenet.Names(NAMES))
        super().setUpClass()
        case = cls()
        cls.pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        cls.results = {s: cls.pool.submit(s, World(case)) for s in SCRIPTS}

    def setUp(self):
        super().setUp()
        self.world = World(self)

    def runTest(self):
        """Only so that there is one whose assertions the scripts can use."""

    def test_they_are_all_of_it(self):
        self.assertGreaterEqual(len(SCRIPTS) + len(ALONE), 40)

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()
        staging_is_empty(World(cls()))
        # What was cut short is kept for a day, or until somebody prunes.
        cls.node.images.Prune(nacre_pb2.PruneImagesRequest(all=True))
        case = cls()
        case.assertEqual([], os.listdir(cls.node.root + "/partial"))
        case.assertEqual([], list(cls.node.images.List(nacre_pb2.ListImagesRequest()).images))
        case.assertEqual([], list(cls.node.info.Check(nacre_pb2.CheckRequest()).findings))
        super().tearDownClass()


class Proxies(nacre_test.NodeTest):
    """The last script: what lies behind a proxy, whose word counts for names, and what NO_PROXY leaves out."""

    IMAGES = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="proxies-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.certs = cls.folder + "/certs.d"
        cls.CONFIG = f"images:\n  registry_dirs: {cls.certs}\n  no_progress_timeout: 1s\n"
        cls.ca = fakenet.Authority(cls.folder)
        cls.pair = cls.ca.make("usual", names="DNS:far.test,DNS:direct.test")
        cls.opened = []
        cls.addClassCleanup(lambda: [r.__exit__() for r in cls.opened])
        cls.enterClassContext(fakenet.Address(FAR))
        cls.enterClassContext(fakenet.Names({"direct.test": FAR, "poison.inside.test": "169.254.169.254", "local.inside.test": "127.0.0.1"}))
        refused = {"closed.test": 502, "forbidden.test": 403, "unknown.test": 407}
        cls.proxy = cls.enterClassContext(fakenet.Proxy(resolve={"far.test": FAR, "plain.test": FAR}, refuse=refused))
        cls.ENV = {"https_proxy": cls.proxy.url, "http_proxy": cls.proxy.url, "NO_PROXY": "direct.test, .inside.test"}
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.world = World(self)
        self.proxy.asked.clear()

    def assertHidden(self, text):
        for secret in (self.proxy.url, "ox%40y", "ox@y"):
            self.assertNotIn(secret, text + self.node.log())

    def test_51_proxy(self):
        r = self.world.named()
        self.world.good(f"{r.host}/a/b:1")
        self.assertEqual({f"CONNECT far.test:{r.port} HTTP/1.1"}, {line for line, _ in self.proxy.asked})
        plain = self.world.registry(address=FAR)
        self.world.hosts(f"plain.test:{plain.port}", f'server = "http://plain.test:{plain.port}"\n')
        self.world.good(f"plain.test:{plain.port}/a/b:1")
        self.assertIn(f"GET http://plain.test:{plain.port}/v2/a/b/manifests/1 HTTP/1.1", [line for line, _ in self.proxy.asked])
        self.assertTrue(all(given for _, given in self.proxy.asked[1:]), self.proxy.asked)
        self.assertEqual([q for q in r.requests if "Proxy-Authorization" in q[2]], [])

    def test_51_proxy_errors(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(World(self).unreachable, f"{name}:5000/a/b:1", words, f"by the proxy 127.0.0.1:{self.proxy.port}")
                         for name, words in (("closed.test", "response 502"), ("forbidden.test", "response 403"),
                                             ("unknown.test", "response 407"), ("far.test", "CONNECT"))]:
                self.assertHidden(done.result())

    def test_51_proxy_is_left_out(self):
        r, near = self.world.named("direct.test"), self.world.registry()
        self.world.good(f"{r.host}/a/b:1")
        self.world.good(f"{near.host}/a/b:1")
        self.assertEqual([], self.proxy.asked)

    def test_51_proxy_left_out_opens_no_way_in(self):
        """A stranger's URL that NO_PROXY covers goes to no address of this machine or link."""
        inside = self.world.registry(tls=self.pair)
        for r in (self.world.named("direct.test"), self.world.named()):
            for name, port in (("poison.inside.test", 443), ("local.inside.test", inside.port)):
                r.scripts.clear()
                r.on("GET", r.first, lambda a, to=f"https://{name}:{port}/x": a.reply(307, b"", {"Location": to}))
                self.world.bad(f"{r.host}/a/b:1", Code.PERMISSION_DENIED, f"connect to {name}", "an address of this machine or link")
        self.assertEqual([], inside.requests)

    def test_51_proxy_z_down(self):
        self.proxy.socket.close()
        self.assertHidden(self.world.unreachable("far.test:5000/a/b:1", "Connection refused", f"by the proxy 127.0.0.1:{self.proxy.port}"))
        self.node.images.Prune(nacre_pb2.PruneImagesRequest(all=True))
        self.assertEqual([], list(self.node.info.Check(nacre_pb2.CheckRequest()).findings))


def add_tests():
    for number, function in enumerate(SCRIPTS, 1):
        def of_all(self, function=function):
            self.results[function].result(300 * nacre_test.SLOWNESS)
        setattr(Scripts, f"test_{number:02}_{function.__name__}", of_all)
    for number, function in enumerate(ALONE, len(SCRIPTS) + 1):
        def of_one(self, function=function):
            concurrent.futures.wait(self.results.values())
            function(self.world)
        setattr(Scripts, f"test_{number:02}_{function.__name__}", of_one)


add_tests()
