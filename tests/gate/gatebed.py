# SPDX-License-Identifier: Apache-2.0
"""A bed for nacre-gate without a machine: this process is the daemon, the machine monitor and the keeper; certificates are
signed by `nacre-gate ca`. Node and guest meet on the loopback of the test's own network namespace."""
import fcntl
import os
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import nacre_test  # noqa: E402

GATE = os.path.join(nacre_test.BUILD, "libexec", "nacre", "nacre-gate")
UID = 61234
NODE_ADDRESS, GUEST_ADDRESS, PORT = "127.0.0.1", "127.0.0.2", 7474
DOMAIN, NODE_ID = "nacre.local", "spiffe://nacre.local/node/n1"
GUEST_ID, OTHER_ID = NODE_ID + "/instance/0123456789abcdef", NODE_ID + "/instance/fedcba9876543210"
(CA, CA_READY, ISSUE, ISSUED, DENIED, SETUP, STATE, NEED, FRAME, CONSOLE, CONSOLE_PART, NOTICE, END, KEY, LIFE, KEPT) = range(16)
KEEP, ROTATE, RETIRE = range(3)
NEW, WAITING, ENROLLING, UP, FAILED, GONE = range(6)
MAGIC, BOOT_MAGIC = 0x3167636e, 0x0062636e
# An Ed25519 key as PKCS#8, in front of its 32 bytes.
PKCS8 = bytes.fromhex("302e020100300506032b657004220420")


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack("16sH", b"lo", 0x49) + bytes(22))


def u32(n):
    return struct.pack("<I", n)


def u64(n):
    return struct.pack("<Q", n)


def run(data):
    return u32(len(data)) + data


def text(value):
    return run(value.encode() + b"\0")


def message(kind, *members):
    body = b"".join(members)
    return struct.pack("<IIII", MAGIC, kind, 16 + len(body), 0) + body


def take(data):
    """(type, body) of one whole message."""
    magic, kind, length, zero = struct.unpack("<IIII", data[:16])
    assert (magic, length, zero) == (MAGIC, len(data), 0), data[:32]
    return kind, data[16:]


def take_run(body, at=0):
    length, = struct.unpack_from("<I", body, at)
    return body[at + 4:at + 4 + length]


def boot_frame(token, bundle, parent=NODE_ID, own=GUEST_ID, far=False):
    """far: for a machine in a cloud, which has its addresses from there."""
    values = [bytes(64), u64(time.time_ns()), b"web\0", b"pod/web\0", b"0123456789abcdef\0",
              bytes(4) if far else socket.inet_aton(GUEST_ADDRESS), u32(8), bytes(4) if far else socket.inet_aton(NODE_ADDRESS),
              bytes.fromhex("026e61637202"), u32(1500), token, bundle, parent.encode() + b"\0",
              own.encode() + b"\0"]
    body = struct.pack("<IHH", BOOT_MAGIC, 1, 0)
    body += b"".join(struct.pack("<HH", i + 1, len(v)) + v for i, v in enumerate(values))
    return u32(len(body)) + body


def h2(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def start(*words, fds=(), **more):
    """A gate that finds the descriptors from 3 on."""
    kept = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in fds]

    def place():
        for number, fd in enumerate(kept):
            os.dup2(fd, 3 + number)

    process = subprocess.Popen([GATE, *words], preexec_fn=place, close_fds=False, stdin=subprocess.DEVNULL, env={},
                               stderr=more.pop("stderr", None), **more)
    for fd in kept:
        os.close(fd)
    return process


class Authority:
    """`nacre-gate ca`."""

    def __init__(self, folder, domain=DOMAIN, node="n1", change=KEEP, prepare=0):
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self.process = start("ca", str(UID), str(UID), fds=(theirs.fileno(), folder_fd))
        os.close(folder_fd)
        theirs.close()
        self.sock.settimeout(60)
        self.sock.send(message(CA, text(domain), text(node), u32(change), u32(0), u64(prepare)))
        kind, body = take(self.sock.recv(1 << 17))
        assert kind == CA_READY, body
        self.bundle = take_run(body)
        self.requests = 0

    def ask(self, key, name, life=60, age=60):
        self.requests += 1
        now = int(time.time())
        self.sock.send(message(ISSUE, u32(self.requests), key, text(name), u64(now - age), u64(now + life)))
        kind, body = take(self.sock.recv(1 << 17))
        assert struct.unpack_from("<I", body)[0] == self.requests
        return kind, take_run(body, 4)

    def sign(self, key, name, life=60, age=60):
        kind, chain = self.ask(key, name, life, age)
        assert kind == ISSUED, chain
        return chain

    def close(self):
        self.sock.close()
        self.process.wait(60)


class Person:
    """A key and a certificate as files, for peers that are not ours."""

    def __init__(self, folder, authority, name, **how):
        self.secret = os.urandom(32)
        self.base = tempfile.mktemp(dir=folder)
        pem = ssl.DER_cert_to_PEM_cert(PKCS8 + self.secret).replace("CERTIFICATE", "PRIVATE KEY")
        with open(self.base + ".key", "w", encoding="ascii") as f:
            f.write(pem)
        public = subprocess.run(["openssl", "pkey", "-in", self.base + ".key", "-pubout", "-outform", "DER"], check=True,
                                capture_output=True).stdout[-32:]
        with open(self.base + ".crt", "w", encoding="ascii") as f:
            f.write(ssl.DER_cert_to_PEM_cert(authority.sign(public, name, **how)))

    def context(self, server, bundle, alpn="h2", version=ssl.TLSVersion.TLSv1_3):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.maximum_version = version
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=bundle)
        context.load_cert_chain(self.base + ".crt", self.base + ".key")
        if alpn:
            context.set_alpn_protocols([alpn])
        return context


class Keeper:
    """Listens on rpc.sock in a directory, as the keeper of a guest does."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "keeper")
        os.mkdir(self.folder)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(os.path.join(self.folder, "rpc.sock"))
        self.sock.listen(64)
        self.sock.settimeout(60 * nacre_test.SLOWNESS)

    def accept(self):
        sock, _ = self.sock.accept()
        sock.settimeout(60 * nacre_test.SLOWNESS)
        return sock


class Guest:
    """`nacre-gate guest`."""

    def __init__(self, folder, keeper, token, bundle, patience="10", lease="86400", **ids):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((GUEST_ADDRESS, PORT))
        self.listener.listen(64)
        boot = os.memfd_create("boot")
        os.write(boot, boot_frame(token, bundle, **ids))
        os.lseek(boot, 0, 0)
        directory = os.open(keeper.folder, os.O_PATH | os.O_DIRECTORY)
        # As pid 1 starts it: as root, without a capability.
        self.process = start("guest", patience, lease, fds=(self.listener.fileno(), boot, directory))
        os.close(boot)
        os.close(directory)
        self.listener.close()

    def close(self):
        self.process.kill()
        self.process.wait(60)


class NodeGate:
    """`nacre-gate node`, and what stands around it."""

    def __init__(self, folder, authority, patience="10"):
        self.folder, self.authority = os.path.join(folder, "node"), authority
        os.mkdir(self.folder)
        self.rpc, self.listen = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for sock, name in ((self.rpc, "rpc.sock"), (self.listen, "gate.sock")):
            sock.bind(os.path.join(self.folder, name))
            sock.listen(200)
        self.boot, boot = socket.socketpair()
        self.console, console = socket.socketpair()
        self.boot.settimeout(60)
        self.process = start("node", str(UID), str(UID), "pod/web", patience,
                             fds=(self.rpc.fileno(), self.listen.fileno(), boot.fileno(), console.fileno()))
        for sock in (self.rpc, self.listen, boot, console):
            sock.close()
        self.life, self.token = 60, os.urandom(32)
        self.ids = {0: NODE_ID, 1: GUEST_ID}
        self.needs, self.frames, self.notices, self.text, self.state, self.parts = [], [], [], "", None, []
        self.serves = True
        self.control = None
        self.connect()

    def connect(self):
        if self.control:
            self.control.close()
        self.frames = []
        self.state = None
        self.control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.connect(os.path.join(self.folder, "gate.sock"))

    def setup(self, bundle=None, own=NODE_ID, peer=GUEST_ID):
        self.control.send(message(SETUP, text(own), text(peer), socket.inet_aton(GUEST_ADDRESS), u32(PORT), self.token,
                                  run(bundle or self.authority.bundle)))

    def ready(self):
        """The guest's first frame."""
        self.boot.sendall(u32(4) + b"abcd")

    def turn(self, seconds=0.05):
        """Answers what the gate asks for, and notes what it tells."""
        if not select.select([self.control], [], [], seconds)[0]:
            return False
        data = self.control.recv(1 << 17)
        if not data:
            return False
        kind, body = take(data)
        if kind == STATE:
            self.state, = struct.unpack_from("<I", body)
            self.text = take_run(body, 8).rstrip(b"\0").decode()
        elif kind == NEED:
            request, whose = struct.unpack_from("<II", body)
            self.needs.append(whose)
            if self.serves:
                chain = self.authority.sign(body[8:40], self.ids[whose], life=self.life)
                self.control.send(message(ISSUED, u32(request), run(chain)))
        elif kind == FRAME:
            self.frames.append(take_run(body))
        elif kind == NOTICE:
            self.notices.append(take_run(body).rstrip(b"\0").decode())
        elif kind == CONSOLE_PART:
            self.parts.append((struct.unpack_from("<Q", body)[0], take_run(body, 8)))
        return True

    def until(self, condition, what="it", seconds=60):
        end = time.monotonic() + seconds * nacre_test.SLOWNESS
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"{what} did not come true; state {self.state} {self.text!r}, notices {self.notices}")
            self.turn()

    def until_state(self, state):
        self.until(lambda: self.state == state, f"state {state}")

    def last_of_console(self):
        self.parts = []
        self.control.send(message(CONSOLE))
        self.until(lambda: self.parts, "the console")
        return self.parts[0]

    def dial(self):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(60 * nacre_test.SLOWNESS)
        sock.connect(os.path.join(self.folder, "rpc.sock"))
        return sock

    def memory(self):
        """Bytes of anonymous memory."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon"))

    def close(self):
        for sock in (self.boot, self.console, self.control):
            sock.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)


class Bed:
    """All of it; what was made is ended by close()."""

    def __init__(self):
        loopback_up()
        self.folder = tempfile.mkdtemp(prefix="gate-")
        os.chmod(self.folder, 0o755)
        os.mkdir(os.path.join(self.folder, "identity"), 0o700)
        self.made = []
        self.authority = self.add(Authority(os.path.join(self.folder, "identity")))
        self.keeper = Keeper(self.folder)
        self.node = self.guest = None

    def add(self, thing):
        self.made.append(thing)
        return thing

    def foreign(self, domain=DOMAIN):
        folder = tempfile.mkdtemp(dir=self.folder)
        return self.add(Authority(folder, domain))

    def start_node(self, **how):
        self.node = self.add(NodeGate(self.folder, self.authority, **how))
        return self.node

    def start_guest(self, **ids):
        self.guest = self.add(Guest(self.folder, self.keeper, self.node.token, self.authority.bundle, **ids))
        return self.guest

    def up(self, life=60):
        node = self.start_node()
        node.life = life
        self.start_guest()
        node.setup()
        node.ready()
        node.until_state(UP)
        return node

    def person(self, name, authority=None, **how):
        return Person(self.folder, authority or self.authority, name, **how)

    def close(self):
        for thing in reversed(self.made):
            thing.close()
        self.keeper.sock.close()
        shutil.rmtree(self.folder, ignore_errors=True)
