# SPDX-License-Identifier: Apache-2.0
"""A cloud of one's own: Google's Compute Engine (REST), its token endpoint and the metadata service on loopback, stricter than the real one.

    with fake_gce.Cloud() as cloud:
        node = nacre_test.Node(config=cloud.config(), env=cloud.env())

Claims are checked with the account's public key (openssl), tokens end, a requestId with another body is refused, what is made is an operation
that takes a while, lists come in pages of two, labels are changed with their fingerprint only, and members of a body that nobody has
documented are refused. Where `guest` is set to a kernel and an initrd, the image `agent` is a machine that boots (fake_guest.py). What goes wrong is set by a test: `throttle` (each k-th call), `drop` (answers that are lost after the work), `fail`
(errors in place of answers), `broken` (the error of the next operation).
"""
import base64
import collections
import http.server
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import urllib.parse
import uuid

import fake_cloud
import fake_guest

PAGE = 2
PROJECT, ZONE = "test-project", "eu-test1-b"
LABEL = re.compile(r"[a-z0-9_-]{0,63}")
NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
BODY = {"name", "machineType", "disks", "networkInterfaces", "tags", "labels", "metadata", "scheduling"}


class Refusal(Exception):
    def __init__(self, status, reason, message):
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


class Metadata(fake_guest.Metadata):
    """The metadata service of a machine: nothing without its header."""

    def do_GET(self):
        self.guest.asked += 1
        if self.headers.get("Metadata-Flavor") != "Google":
            self.answer(403)
        elif self.path != "/computeMetadata/v1/instance/attributes/user-data" or self.guest.user_data is None:
            self.answer(404)
        else:
            self.answer(200, self.guest.user_data)


class Machine:
    def __init__(self, cloud, number, body):
        self.cloud, self.body, self.name = cloud, body, body["name"]
        self.labels, self.address = dict(body.get("labels", {})), f"10.1.0.{number + 4}"
        self.made, self.ended, self.stopped, self.n_labels = time.monotonic(), None, False, 0
        self.reason = ""
        items = {i["key"]: i["value"] for i in body.get("metadata", {}).get("items", [])}
        self.user_data = items["user-data"].encode() if "user-data" in items else None
        self.guest = None
        if cloud.guest and body["disks"][0]["initializeParams"]["sourceImage"] == cloud.agent:
            self.guest = fake_guest.Guest(cloud, number + 1, self.user_data, Metadata)
            self.address = self.guest.address

    @property
    def type(self):
        return self.body["machineType"].rpartition("/")[2]

    @property
    def gone(self):
        return self.ended is not None and time.monotonic() - self.ended >= self.cloud.end

    @property
    def status(self):
        if self.ended is not None:
            return "STOPPING"
        # Its power-off stops it, and that is all.
        if self.stopped or (self.guest and not self.guest.alive):
            return "TERMINATED"
        return "RUNNING" if time.monotonic() - self.made >= self.cloud.boot else "PROVISIONING"

    @property
    def fingerprint(self):
        return f"f{self.n_labels}"

    def json(self):
        base = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/zones/{ZONE}"
        return {"kind": "compute#instance", "id": "1", "name": self.name, "status": self.status, "zone": base,
                "machineType": f"{base}/machineTypes/{self.type}", "labels": self.labels,
                "labelFingerprint": self.fingerprint, "creationTimestamp": "2026-01-01T00:00:00.000-07:00",
                "networkInterfaces": [{"networkIP": self.address}], **({"statusMessage": self.reason} if self.reason else {})}


def b64(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Cloud(fake_cloud.Cloud):
    """A project in one zone. A context manager."""

    def __init__(self):
        self.lock = threading.RLock()
        self.place = tempfile.TemporaryDirectory(prefix="nacre-gce-")
        self.private, self.public = (os.path.join(self.place.name, n) for n in ("key.pem", "public.pem"))
        subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.private], check=True,
                       stderr=subprocess.DEVNULL)
        subprocess.run(["openssl", "pkey", "-in", self.private, "-pubout", "-out", self.public], check=True)
        self.machines = collections.OrderedDict()
        self.operations, self.requests, self.tokens = {}, {}, {}
        self.calls, self.claims = collections.Counter(), 0
        self.word, self.agent, self.guest = "gce", "global/images/agent", None    # (kernel, initrd, words of its command line)
        self.reset()
        cloud = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def any(self):
                cloud.serve(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

            do_GET = do_POST = do_DELETE = any

        self.listen(Handler)
        with open(self.private, encoding="ascii") as f:
            key = {"type": "service_account", "client_email": "node@test", "private_key_id": "k1", "private_key": f.read(),
                   "token_uri": f"http://{self.host}/token"}
        self.credentials = os.path.join(self.place.name, "account.json")
        with open(self.credentials, "w", encoding="ascii") as f:
            json.dump(key, f)

    def reset(self, machines=True):
        """Nothing goes wrong any more."""
        with self.lock:
            self.boot = self.end = self.work = 0.05
            self.throttle, self.n_calls, self.life = 0, 0, 3600
            self.drop = collections.Counter()
            self.fail = collections.defaultdict(list)        # {action: [(status, reason, message), ...]}
            self.before = {}                                 # {action: called in front of the work, with its query and body}
            self.broken = None                               # (code, message) of the next operation
            self.raw = None
            self.calls.clear()
            if machines:
                for m in self.machines.values():
                    if m.guest:
                        m.guest.close()
                self.machines.clear()

    def __exit__(self, *_):
        self.reset()
        super().__exit__()
        self.place.cleanup()

    def config(self, more="", poll="100ms", lease="24h", boot="15m"):
        return (f"cloud:\n  poll: {poll}\n  boot_limit: {boot}\n  settle: 1s\n  lease: {lease}\n  gce:\n    project: {PROJECT}\n    zone: {ZONE}\n"
                f"    endpoint: http://{self.host}/compute/v1\n    subnet: sub\n    tags: [ web ]\n"
                f'    types: [ "big=8:32GiB:0.4", "small=2:2GiB:0.02" ]\n{more}')

    def env(self, metadata=False):
        return {"GCE_METADATA_HOST": self.host} if metadata else {"GOOGLE_APPLICATION_CREDENTIALS": self.credentials}

    def alive(self):
        with self.lock:
            return [m for m in self.machines.values() if not m.gone]

    # -- tokens --

    def give(self):
        token = uuid.uuid4().hex
        self.tokens[token] = time.monotonic() + self.life
        return {"access_token": token, "expires_in": self.life, "token_type": "Bearer"}

    def claim(self, body):
        self.claims += 1
        q = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
        if q.get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" or len(q) != 2:
            return 400, {"error": "unsupported_grant_type"}
        head, claims, signature = q["assertion"].split(".")
        paths = [os.path.join(self.place.name, f"{n}{self.claims}") for n in ("data", "signature")]
        for path, data in zip(paths, (f"{head}.{claims}".encode(), b64(signature))):
            with open(path, "wb") as f:
                f.write(data)
        good = subprocess.run(["openssl", "dgst", "-sha256", "-verify", self.public, "-signature", paths[1], paths[0]],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
        head, claims, now = json.loads(b64(head)), json.loads(b64(claims)), time.time()
        good = (good and head == {"alg": "RS256", "typ": "JWT", "kid": "k1"} and claims["iss"] == "node@test"
                and claims["aud"] == f"http://{self.host}/token" and claims["scope"] == "https://www.googleapis.com/auth/compute"
                and abs(claims["iat"] - now) < 60 and claims["exp"] - claims["iat"] <= 3600)
        return (200, self.give()) if good else (400, {"error": "invalid_grant", "error_description": "Invalid JWT"})

    # -- one call --

    def serve(self, request, body):
        path, _, query = request.path.partition("?")
        if path == "/token" and request.command == "POST":
            status, answer = self.claim(body)
            request.answer(status, json.dumps(answer).encode())
            return
        if path == "/computeMetadata/v1/instance/service-accounts/default/token":
            good = request.headers.get("Metadata-Flavor") == "Google"
            request.answer(200 if good else 403, json.dumps(self.give() if good else {}).encode())
            return
        lost = False
        try:
            status, answer = 200, None
            token = request.headers.get("Authorization", "").removeprefix("Bearer ")
            if self.tokens.get(token, 0) < time.monotonic():
                raise Refusal(401, "authError", "Request had invalid authentication credentials")
            base = f"/compute/v1/projects/{PROJECT}/zones/{ZONE}/"
            if not path.startswith(base):
                raise Refusal(404, "notFound", path)
            q = dict(urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=True)) if query else {}
            if body and request.headers.get("Content-Type") != "application/json":
                raise Refusal(400, "parseError", "no JSON")
            action, call = self.route(request.command, path[len(base):].split("/"))
            with self.lock:
                self.n_calls += 1
                self.calls[action] += 1
                if self.throttle and self.n_calls % self.throttle == 0:
                    raise Refusal(403, "rateLimitExceeded", "Rate Limit Exceeded")
                if self.fail[action]:
                    raise Refusal(*self.fail[action].pop(0))
                sent = json.loads(body) if body else None
                if action in self.before:
                    self.before[action](q, sent)
                answer = call(q, sent)
                lost = self.drop[action] > 0
                self.drop[action] -= lost
        except Refusal as e:
            status = e.status
            answer = {"error": {"code": e.status, "message": e.message, "errors": [{"reason": e.reason, "message": e.message}]}}
        if lost:
            request.close_connection = True
            request.connection.close()
            return
        request.answer(status, self.raw if self.raw is not None else json.dumps(answer).encode())

    def route(self, method, words):
        kind, name, more = (words + ["", ""])[:3]
        routes = {("POST", "instances", False, ""): ("insert", self.insert), ("GET", "instances", False, ""): ("list", self.list),
                  ("GET", "instances", True, ""): ("get", lambda q, b: self.find(name).json()),
                  ("DELETE", "instances", True, ""): ("delete", lambda q, b: self.delete(self.find(name))),
                  ("POST", "instances", True, "setLabels"): ("setLabels", lambda q, b: self.set_labels(self.find(name), b)),
                  ("GET", "instances", True, "serialPort"): ("serialPort", lambda q, b: self.serial(self.find(name), q)),
                  ("GET", "operations", True, ""): ("operation", lambda q, b: self.operation(name))}
        found = routes.get((method, kind, bool(name), more))
        if not found:
            raise Refusal(404, "notFound", f"{method} {words}")
        return found

    def begin(self, error=None):
        name = f"operation-{len(self.operations) + 1}"
        self.operations[name] = (time.monotonic() + self.work, error)
        return self.operation(name)

    def operation(self, name):
        if name not in self.operations:
            raise Refusal(404, "notFound", f"The resource 'operations/{name}' was not found")
        done, error = self.operations[name]
        over = time.monotonic() >= done
        return {"kind": "compute#operation", "name": name, "status": "DONE" if over else "RUNNING",
                **({"error": {"errors": [{"code": error[0], "message": error[1]}]}, "httpErrorStatusCode": 503} if over and error else {})}

    def find(self, name):
        m = self.machines.get(name)
        if not m or m.gone:
            raise Refusal(404, "notFound", f"The resource 'projects/{PROJECT}/zones/{ZONE}/instances/{name}' was not found")
        return m

    def insert(self, q, body):
        if set(q) != {"requestId"} or uuid.UUID(q["requestId"]).version != 4:
            raise Refusal(400, "invalid", "requestId")
        known = self.requests.get(q["requestId"])
        if known:
            if known[0] != body:
                raise Refusal(400, "invalid", "Invalid value for field 'requestId': it was used with another request")
            return self.operation(known[1])
        if set(body) - BODY or not NAME.fullmatch(body["name"]):
            raise Refusal(400, "invalid", "a member or the name")
        if not re.fullmatch(rf"zones/{ZONE}/machineTypes/[a-z0-9-]+", body["machineType"]):
            raise Refusal(400, "invalid", "machineType")
        spot = {"provisioningModel": "SPOT", "instanceTerminationAction": "DELETE"}
        if body.get("scheduling", {"automaticRestart": False}) not in ({"automaticRestart": False}, {"automaticRestart": False, **spot}):
            raise Refusal(400, "invalid", "scheduling: a spot machine is not started again")
        (disk,), (nic,) = body["disks"], body["networkInterfaces"]
        if not disk["boot"] or not disk["autoDelete"] or set(disk["initializeParams"]) != {"sourceImage"}:
            raise Refusal(400, "invalid", "disks")
        if nic != {"subnetwork": f"projects/{PROJECT}/regions/eu-test1/subnetworks/sub"}:
            raise Refusal(400, "invalid", "networkInterfaces")
        if disk["initializeParams"]["sourceImage"] == "nothing":
            raise Refusal(404, "notFound", "The resource 'nothing' was not found")
        for k, v in body["labels"].items():
            if not re.fullmatch("[a-z][a-z0-9_-]{0,62}", k) or not LABEL.fullmatch(v):
                raise Refusal(400, "invalid", f"the label {k}={v}")
        if body["name"] in self.machines and not self.machines[body["name"]].gone:
            raise Refusal(409, "alreadyExists", "it exists")
        error, self.broken = self.broken, None
        if not error:
            self.machines[body["name"]] = Machine(self, len(self.machines), body)
        operation = self.begin(error)
        self.requests[q["requestId"]] = (body, operation["name"])
        return operation

    def list(self, q, _):
        wanted = [re.fullmatch(r"\(labels\.([a-z0-9_-]+)=([a-z0-9_-]*)\)", part) for part in q["filter"].split(" AND ")]
        if not all(wanted) or not 0 < int(q["maxResults"]) <= 500 or set(q) - {"filter", "maxResults", "pageToken"}:
            raise Refusal(400, "invalid", "filter, maxResults")
        shown = [m for m in self.machines.values() if not m.gone and all(m.labels.get(w.group(1)) == w.group(2) for w in wanted)]
        at = int(q["pageToken"].removeprefix("page/")) if "pageToken" in q else 0
        answer = {"kind": "compute#instanceList", "items": [m.json() for m in shown[at:at + PAGE]]}
        if not answer["items"]:
            del answer["items"]
        if at + PAGE < len(shown):
            answer["nextPageToken"] = f"page/{at + PAGE}"
        return answer

    def delete(self, m):
        m.ended = m.ended if m.ended is not None else time.monotonic()
        if m.guest:
            m.guest.end()
        return self.begin()

    def set_labels(self, m, body):
        if body["labelFingerprint"] != m.fingerprint:
            raise Refusal(412, "conditionNotMet", "Labels fingerprint either invalid or resource labels have changed")
        m.labels, m.n_labels = dict(body["labels"]), m.n_labels + 1
        return self.begin()

    @staticmethod
    def serial(m, q):
        if q != {"port": "1"}:
            raise Refusal(400, "invalid", "port")
        text = f"Linux version 6.1\r\n{m.name} login: "
        return {"kind": "compute#serialPortOutput", "contents": text, "start": "0", "next": str(len(text))}
