# SPDX-License-Identifier: Apache-2.0
"""A cloud of one's own: EC2's query API and the metadata service on loopback, stricter than the real one.

    with fake_ec2.Cloud() as cloud:
        node = nacre_test.Node(config=cloud.config(), env=cloud.env())

Signatures are checked, tokens are honoured (the same one with other parameters is refused), lists come in pages of two, what was made is
not visible at once where `hide` says so, and parameters that nobody has documented are refused. What goes wrong is set by a test:
`throttle` (each k-th call), `drop` (answers that are lost after the work), `fail` (errors in place of answers), `capacity`.

Where `guest` is set to a kernel and an initrd, the image `agent` is a machine that boots (fake_guest.py).
"""
import base64
import collections
import datetime
import hashlib
import hmac
import http.server
import json
import re
import threading
import time
import urllib.parse
import xml.sax.saxutils

import fake_cloud
import fake_guest

NAMESPACE = "http://ec2.amazonaws.com/doc/2016-11-15/"
VERSION = "2016-11-15"
PAGE = 2
KNOWN = {
    "RunInstances": r"ImageId|InstanceType|MinCount|MaxCount|ClientToken|SubnetId|KeyName|IamInstanceProfile\.Name|DryRun"
                    r"|InstanceInitiatedShutdownBehavior|MetadataOptions\.(HttpTokens|HttpPutResponseHopLimit)|SecurityGroupId\.\d+"
                    r"|InstanceMarketOptions\.(MarketType|SpotOptions\.(SpotInstanceType|InstanceInterruptionBehavior))"
                    r"|UserData|TagSpecification\.\d+\.(ResourceType|Tag\.\d+\.(Key|Value))",
    "DescribeInstances": r"InstanceId\.\d+|Filter\.\d+\.(Name|Value\.\d+)|MaxResults|NextToken",
    "TerminateInstances": r"InstanceId\.\d+",
    "CreateTags": r"ResourceId\.\d+|Tag\.1\.(Key|Value)",
    "GetConsoleOutput": r"InstanceId|Latest",
}


class Refusal(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Metadata(fake_guest.Metadata):
    """IMDSv2: nothing without a token."""

    def do_PUT(self):
        self.guest.token = f"token-{self.guest.asked}"
        if self.path != "/latest/api/token" or not self.headers.get("X-aws-ec2-metadata-token-ttl-seconds"):
            self.answer(400)
        else:
            self.answer(200, self.guest.token.encode())

    def do_GET(self):
        self.guest.asked += 1
        if not self.guest.token or self.headers.get("X-aws-ec2-metadata-token") != self.guest.token:
            self.answer(401)
        elif self.path != "/latest/user-data" or self.guest.user_data is None:
            self.answer(404)
        else:
            self.answer(200, self.guest.user_data)


class Machine:
    def __init__(self, cloud, number, parameters, tags):
        self.cloud, self.parameters, self.tags = cloud, parameters, tags
        self.id = f"i-{number:017x}"
        self.token = parameters.get("ClientToken", "")
        self.address = f"10.0.{number // 250}.{number % 250 + 4}"
        self.made = time.monotonic()
        self.ended = None
        self.stopped = False
        self.reason = ""
        self.user_data = base64.b64decode(parameters["UserData"], validate=True) if "UserData" in parameters else None
        self.guest = None
        if cloud.guest and parameters["ImageId"] == cloud.agent:
            self.guest = fake_guest.Guest(cloud, number, self.user_data, Metadata)
            self.address = self.guest.address
        self.text = f"Linux version 6.1\r\n{self.id} login: "

    @property
    def console(self):
        return self.guest.console().decode(errors="replace") if self.guest else self.text

    @property
    def visible(self):
        return time.monotonic() - self.made >= self.cloud.hide

    @property
    def state(self):
        now = time.monotonic()
        # Its power-off is its end.
        if self.guest and self.ended is None and not self.guest.alive:
            self.ended, self.reason = now, "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
        if self.ended is not None:
            return "terminated" if now - self.ended >= self.cloud.end else "shutting-down"
        if self.stopped:
            return "stopped"
        return "running" if now - self.made >= self.cloud.boot else "pending"

    def xml(self):
        codes = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
        return {"instanceId": self.id, "imageId": self.parameters["ImageId"],
                "instanceState": {"code": codes[self.state] | 0x100, "name": self.state},
                "instanceType": self.parameters["InstanceType"], "launchTime": "2026-01-01T00:00:00.000Z",
                "placement": {"availabilityZone": self.cloud.region + "a"}, "privateIpAddress": self.address,
                "clientToken": self.token, "tagSet": [{"key": k, "value": v} for k, v in self.tags.items()],
                **({"stateReason": {"code": "Server.Test", "message": self.reason}} if self.reason else {})}


def element(name, value):
    if isinstance(value, dict):
        inner = "".join(element(k, v) for k, v in value.items())
    elif isinstance(value, list):
        inner = "".join(element("item", v) for v in value)
    else:
        inner = xml.sax.saxutils.escape(str(value))
    return f"<{name}>{inner}</{name}>\n"


def sign(secret, day, region, text):
    key = b"AWS4" + secret.encode()
    for part in (day, region, "ec2", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Cloud(fake_cloud.Cloud):
    """An account in one region. A context manager."""

    def __init__(self, region="eu-test-1"):
        self.region = region
        self.lock = threading.RLock()
        self.machines = collections.OrderedDict()
        self.calls = collections.Counter()
        self.n_calls = 0
        self.keys = {"AKIDTEST": {"secret": "secret/of+test", "token": "", "ended": False}}
        self.word, self.agent, self.guest = "ec2", "ami-a9e47", None  # (kernel, initrd, words of its command line)
        self.reset()
        self.metadata_key = None                         # the id of the key that the metadata service gives
        self.metadata_asked = 0
        cloud = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def date_time_string(self, timestamp=None):
                return super().date_time_string(time.time() + cloud.clock if timestamp is None else timestamp)

            def answer(self, status, body, kind="text/xml;charset=UTF-8"):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                self.began = time.monotonic()
                cloud.serve(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

            def do_PUT(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.path != "/latest/api/token" or not self.headers.get("X-aws-ec2-metadata-token-ttl-seconds"):
                    self.answer(400, b"")
                else:
                    self.answer(200, b"metadata-token", "text/plain")

            def do_GET(self):
                cloud.serve_metadata(self)

        self.listen(Handler)
        self.url = f"http://{self.host}"

    def reset(self, machines=True):
        """Nothing goes wrong any more."""
        with self.lock:
            self.boot = self.end = self.hide = 0.05
            self.clock = 0                                   # seconds that it is ahead of this host's, in answers
            self.throttle = 0                                # each k-th call
            self.drop = collections.Counter()                # {action: so many answers are lost}
            self.fail = collections.defaultdict(list)        # {action: [(status, code, message), ...]}
            self.page = PAGE
            self.arrived = {}                                # {action: called with the time at which its request came}
            self.before = {}                                 # {action: called in front of the work}
            self.after = {}                                  # likewise behind it, in front of the answer
            self.capacity = None
            self.raw = None                                  # bytes in place of every answer
            self.calls.clear()
            if machines:
                for m in self.machines.values():
                    if m.guest:
                        m.guest.close()
                self.machines.clear()

    @staticmethod
    def now():
        return time.monotonic()

    def __exit__(self, *_):
        """Ends the server, and the machines."""
        self.reset()
        super().__exit__()

    # -- what a node is told --

    def config(self, more="", poll="100ms", settle="1s", lease="24h", boot="15m"):
        return (f"cloud:\n  poll: {poll}\n  boot_limit: {boot}\n  settle: {settle}\n  lease: {lease}\n  ec2:\n    region: {self.region}\n    endpoint: {self.url}\n"
                f"    subnet: subnet-1\n    security_groups: [ sg-1, sg-2 ]\n"
                f'    types: [ "big=8:32GiB:0.4", "small=2:2GiB:0.02" ]\n{more}')

    def env(self, key="AKIDTEST"):
        return {"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": self.keys[key]["secret"],
                "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.url, "AWS_EC2_METADATA_DISABLED": "false"}

    # -- what a test sees --

    def alive(self):
        """Machines that cost something."""
        with self.lock:
            return [m for m in self.machines.values() if m.state != "terminated"]

    # -- one call --

    def check_signature(self, request, body):
        header = request.headers.get("Authorization", "")
        m = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/ec2/aws4_request, SignedHeaders=([a-z0-9;-]+), "
                         r"Signature=([0-9a-f]{64})", header)
        if not m:
            raise Refusal(401, "AuthFailure", "no signature")
        key_id, day, region, names, signature = m.groups()
        key = self.keys.get(key_id)
        when = request.headers.get("X-Amz-Date", "")
        if not key:
            raise Refusal(401, "AuthFailure", "AWS was not able to validate the provided access credentials")
        if region != self.region or when[:8] != day:
            raise Refusal(400, "SignatureDoesNotMatch", "the scope is wrong")
        if not {"host", "x-amz-date", "content-type"} <= set(names.split(";")) or names.split(";") != sorted(names.split(";")):
            raise Refusal(400, "SignatureDoesNotMatch", "a header is not signed")
        if key["token"] and (request.headers.get("X-Amz-Security-Token") != key["token"] or "x-amz-security-token" not in names):
            raise Refusal(401, "AuthFailure", "the session token is missing")
        sent = datetime.datetime.strptime(when, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs((datetime.datetime.now(datetime.timezone.utc) - sent).total_seconds()) > 300:
            raise Refusal(400, "RequestExpired", "Request has expired")
        canonical = "\n".join([request.command, request.path, "", *(f"{n}:{request.headers[n].strip()}" for n in names.split(";")), "",
                               names, hashlib.sha256(body).hexdigest()])
        text = "\n".join(["AWS4-HMAC-SHA256", when, f"{day}/{region}/ec2/aws4_request",
                          hashlib.sha256(canonical.encode()).hexdigest()])
        if sign(key["secret"], day, region, text) != signature:
            raise Refusal(401, "AuthFailure", "the signature does not match")
        if key["ended"]:
            raise Refusal(400, "RequestExpired", "Request has expired")

    def serve(self, request, body):
        action = "?"
        try:
            pairs = urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True)
            parameters = dict(pairs)
            action = parameters.pop("Action", "?")
            self.check_signature(request, body)
            if len(pairs) != len(parameters) + 1 or parameters.pop("Version", "") != VERSION or action not in KNOWN:
                raise Refusal(400, "InvalidAction", f"{action}: no such action, or a parameter twice")
            for name in parameters:
                if not re.fullmatch(KNOWN[action], name):
                    raise Refusal(400, "UnknownParameter", f"The parameter {name} is not recognized")
            if action in self.arrived:
                self.arrived[action](request.began)
            if action in self.before:
                self.before[action](parameters)
            with self.lock:
                self.n_calls += 1
                self.calls[action] += 1
                if self.throttle and self.n_calls % self.throttle == 0:
                    raise Refusal(503, "RequestLimitExceeded", "Request limit exceeded.")
                if self.fail[action]:
                    raise Refusal(*self.fail[action].pop(0))
                answer = getattr(self, action)(parameters)
                lost = self.drop[action] > 0
                self.drop[action] -= lost
            if action in self.after:
                self.after[action](parameters)
            if lost:
                request.close_connection = True
                request.connection.close()
                return
            text = (f'<?xml version="1.0" encoding="UTF-8"?>\n<{action}Response xmlns="{NAMESPACE}">\n<requestId>r</requestId>\n'
                    + "".join(element(k, v) for k, v in answer.items()) + f"</{action}Response>")
            status = 200
        except Refusal as e:
            status = e.status
            text = ('<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors>'
                    + element("Error", {"Code": e.code, "Message": e.message}) + "</Errors><RequestID>r</RequestID></Response>")
        request.answer(status, self.raw if self.raw is not None else text.encode())

    def listed(self, parameters, name):
        """Name.1, Name.2, …, which must have no gap."""
        values = []
        while f"{name}.{len(values) + 1}" in parameters:
            values.append(parameters[f"{name}.{len(values) + 1}"])
        if len(values) != sum(re.fullmatch(re.escape(name) + r"\.\d+", p) is not None for p in parameters):
            raise Refusal(400, "InvalidParameterValue", f"{name}: a gap")
        return values

    # -- actions --

    def RunInstances(self, q):
        for name in ("ImageId", "InstanceType", "MinCount", "MaxCount", "ClientToken"):
            if name not in q:
                raise Refusal(400, "MissingParameter", f"The request must contain the parameter {name}")
        token = q["ClientToken"]
        if not token.isascii() or len(token) > 64 or (q["MinCount"], q["MaxCount"]) != ("1", "1"):
            raise Refusal(400, "InvalidParameterValue", "a token or count")
        for m in self.machines.values():
            if m.token == token:
                if m.parameters != q:
                    raise Refusal(400, "IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent")
                return {"reservationId": "r-1", "instancesSet": [m.xml()]}
        if not re.fullmatch("ami-[0-9a-f]+", q["ImageId"]):
            raise Refusal(400, "InvalidAMIID.Malformed", f'Invalid id: "{q["ImageId"]}" (expecting "ami-...")')
        if q["ImageId"] == "ami-0":
            raise Refusal(400, "InvalidAMIID.NotFound", "The image id '[ami-0]' does not exist")
        if "SecurityGroupId.1" in q and "SubnetId" not in q:
            raise Refusal(400, "InvalidParameterCombination", "a group without a subnet")
        self.listed(q, "SecurityGroupId")
        tags = {}
        for kind in range(1, 3):
            kinds = {1: "instance", 2: "volume"}
            if q.get(f"TagSpecification.{kind}.ResourceType") != kinds[kind]:
                raise Refusal(400, "InvalidParameterValue", "what the tags are of")
            n = 1
            while f"TagSpecification.{kind}.Tag.{n}.Key" in q:
                tags[q[f"TagSpecification.{kind}.Tag.{n}.Key"]] = q[f"TagSpecification.{kind}.Tag.{n}.Value"]
                n += 1
        if any(k.startswith("aws:") or len(k) > 128 or len(v) > 256 for k, v in tags.items()) or len(tags) > 50:
            raise Refusal(400, "InvalidParameterValue", "a tag")
        spot = tuple(q.get(f"InstanceMarketOptions.{k}") for k in (
            "MarketType", "SpotOptions.SpotInstanceType", "SpotOptions.InstanceInterruptionBehavior"))
        if spot not in ((None, None, None), ("spot", "one-time", "terminate")):
            raise Refusal(400, "InvalidParameterCombination", "a persistent request is stopped or hibernated, never terminated")
        if "UserData" in q:
            try:
                if not 0 < len(base64.b64decode(q["UserData"], validate=True)) <= 16384:
                    raise Refusal(400, "InvalidParameterValue", "User data is limited to 16384 bytes")
            except ValueError as e:
                raise Refusal(400, "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data") from e
        if q.get("DryRun") == "true":
            raise Refusal(412, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
        if self.capacity is not None:
            if self.capacity == 0:
                raise Refusal(500, "InsufficientInstanceCapacity", "We currently do not have sufficient capacity in the zone")
            self.capacity -= 1
        m = Machine(self, len(self.machines) + 1, q, tags)
        self.machines[m.id] = m
        return {"reservationId": "r-1", "instancesSet": [m.xml()]}

    def DescribeInstances(self, q):
        filters = []
        for n in range(1, 100):
            if f"Filter.{n}.Name" not in q:
                break
            name, values = q[f"Filter.{n}.Name"], self.listed(q, f"Filter.{n}.Value")
            if not name.startswith("tag:") or not values:
                raise Refusal(400, "InvalidParameterValue", f"The filter '{name}' is invalid")
            filters.append((name[4:], values))
        if "MaxResults" in q and not 5 <= int(q["MaxResults"]) <= 1000:
            raise Refusal(400, "InvalidParameterValue", "MaxResults")
        shown = [m for m in self.machines.values() if m.visible and all(m.tags.get(k) in v for k, v in filters)]
        at = int(q["NextToken"].removeprefix("page ")) if "NextToken" in q else 0
        answer = {"reservationSet": [{"reservationId": "r-1", "ownerId": "1", "instancesSet": [m.xml()]}
                                     for m in shown[at:at + self.page]]}
        if at + self.page < len(shown):
            answer["nextToken"] = f"page {at + self.page}"
        return answer

    def find(self, name):
        m = self.machines.get(name)
        if not re.fullmatch("i-[0-9a-f]{17}", name):
            raise Refusal(400, "InvalidInstanceID.Malformed", f'Invalid id: "{name}"')
        if not m or not m.visible:
            raise Refusal(400, "InvalidInstanceID.NotFound", f"The instance ID '{name}' does not exist")
        return m

    def TerminateInstances(self, q):
        found = [self.find(name) for name in self.listed(q, "InstanceId")]
        for m in found:
            if m.ended is None:
                m.ended = time.monotonic()
            if m.guest:
                m.guest.end()
        return {"instancesSet": [{"instanceId": m.id, "currentState": {"code": 32, "name": m.state},
                                  "previousState": {"code": 16, "name": "running"}} for m in found]}

    def CreateTags(self, q):
        names = self.listed(q, "ResourceId")
        if not names or len(names) > 1000 or q["Tag.1.Key"].startswith("aws:") or len(q["Tag.1.Value"]) > 256:
            raise Refusal(400, "InvalidParameterValue", "a tag, or of what")
        for m in [self.find(name) for name in names]:
            m.tags[q["Tag.1.Key"]] = q["Tag.1.Value"]
        return {"return": "true"}

    def GetConsoleOutput(self, q):
        m = self.find(q["InstanceId"])
        return {"instanceId": m.id, "timestamp": "2026-01-01T00:00:00.000Z",
                "output": base64.encodebytes(m.console.encode()).decode()}

    # -- the metadata service --

    def serve_metadata(self, request):
        role = "/latest/meta-data/iam/security-credentials/"
        if request.headers.get("X-aws-ec2-metadata-token") != "metadata-token":
            request.answer(401, b"")
        elif not self.metadata_key or not request.path.startswith(role):
            request.answer(404, b"")
        elif request.path == role:
            request.answer(200, b"node+role@x", "text/plain")
        elif urllib.parse.unquote(request.path[len(role):]) != "node+role@x":
            request.answer(404, b"")
        else:
            self.metadata_asked += 1
            key = self.keys[self.metadata_key]
            ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
            request.answer(200, json.dumps({"Code": "Success", "AccessKeyId": self.metadata_key, "SecretAccessKey": key["secret"],
                                            "Token": key["token"], "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")}).encode(),
                           "application/json")
