# SPDX-License-Identifier: Apache-2.0
"""What lies between a node and its registries, as tests want it: names, certificates, proxies, hosts that swallow packets.

All of it on loopback, in the network and mount namespaces of the test.
"""
import base64
import os
import select
import socket
import ssl
import struct
import subprocess
import tempfile
import threading


class Names:
    """A resolver in the place of the machine's: names below .test. A context manager.

    names: NAME -> address; None: no answer at all. What is not there does not exist.
    """

    def __init__(self, names):
        self.names = names
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.file = tempfile.NamedTemporaryFile("w", prefix="resolv-")  # pylint: disable=consider-using-with
        self.file.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        self.file.flush()
        os.chmod(self.file.name, 0o644)
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        subprocess.run(["mount", "--bind", self.file.name, "/etc/resolv.conf"], check=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", "/etc/resolv.conf"], check=True)
        try:
            # Wakes who waits there, which close() alone does not.
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join()
        self.socket.close()
        self.file.close()

    def serve(self):
        while True:
            try:
                query, sender = self.socket.recvfrom(2048)
            except OSError:
                return
            if not query:
                return
            answer = self.answer(query)
            if answer:
                self.socket.sendto(answer, sender)

    def answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode())
            at += 1 + query[at]
        name, kind = ".".join(labels).lower(), struct.unpack_from(">H", query, at + 1)[0]
        self.asked.append(name)
        question = query[12:at + 5]
        if name not in self.names:
            return query[:2] + struct.pack(">HHHHH", 0x8183, 1, 0, 0, 0) + question
        if self.names[name] is None:
            return None
        found = kind == 1
        head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, int(found), 0, 0) + question
        return head + (struct.pack(">HHHIH", 0xc00c, 1, 1, 1, 4) + socket.inet_aton(self.names[name]) if found else b"")


class Authority:
    """Makes certificates, by openssl, in a directory of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.cert, _ = self.make("ca", "critical,CA:TRUE", None)

    def path(self, name):
        return os.path.join(self.folder, name)

    def make(self, name, constraints="CA:FALSE", names="DNS:far.test,DNS:store.test,DNS:local.test,DNS:plain.test,IP:127.0.0.1", own=False, ended=False):
        """(certificate, key): signed by the authority, or by itself."""
        key, cert, request = self.path(name + ".key"), self.path(name + ".pem"), self.path(name + ".csr")
        with open(self.path(name + ".cnf"), "w", encoding="ascii") as f:
            f.write(f"[req]\ndistinguished_name = dn\nprompt = no\n[dn]\nCN = {name}\n[ext]\nbasicConstraints = {constraints}\n")
            f.write(f"subjectAltName = {names}\n" if names else "")
        run = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-config",
               self.path(name + ".cnf")]
        if own or name == "ca":
            subprocess.run(run + ["-x509", "-days", "2", "-extensions", "ext", "-out", cert], check=True, capture_output=True)
            return cert, key
        subprocess.run(run + ["-out", request], check=True, capture_output=True)
        with open(self.path(name + ".db"), "w", encoding="ascii"):
            pass
        with open(self.path(name + ".ca.cnf"), "w", encoding="ascii") as f:
            f.write(f"[ca]\ndefault_ca = x\n[x]\ndatabase = {self.path(name + '.db')}\nnew_certs_dir = {self.folder}\ndefault_md = sha256\n"
                    "policy = p\nrand_serial = yes\n[p]\ncommonName = supplied\n")
        when = ["-startdate", "20200101000000Z", "-enddate", "20210101000000Z"] if ended else ["-days", "2"]
        subprocess.run(["openssl", "ca", "-batch", "-notext", "-config", self.path(name + ".ca.cnf"), "-cert", self.cert, "-keyfile",
                        self.path("ca.key"), "-in", request, "-out", cert, "-extfile", self.path(name + ".cnf"), "-extensions", "ext", *when],
                       check=True, capture_output=True)
        return cert, key


def old_tls(pair):
    """A server that knows nothing newer than TLS 1.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    return context


def asks_for_certificates(pair, authority):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


class Address:
    """An address that is neither loopback nor anybody else's, on the loopback device. A context manager."""

    def __init__(self, address="192.0.2.1"):
        self.address = address

    def __enter__(self):
        subprocess.run(["busybox", "ip", "address", "add", self.address + "/32", "dev", "lo"], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["busybox", "ip", "address", "del", self.address + "/32", "dev", "lo"], check=True)


class Blackhole:
    """A port that answers no SYN: its queue is full. A context manager; .port."""

    def __enter__(self):
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(0)
        self.port = self.socket.getsockname()[1]
        self.waiting = []
        for _ in range(4):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(("127.0.0.1", self.port))
            self.waiting.append(s)
        return self

    def __exit__(self, *_):
        for s in (self.socket, *self.waiting):
            s.close()


class Proxy:
    """An HTTP proxy. A context manager; .url with its credentials, .asked: the first lines, `Proxy-Authorization` behind them.

    refuse: NAME -> the status that a CONNECT to it gets.
    """

    def __init__(self, user="pr", password="ox%40y", resolve=None, refuse=None):
        self.user, self.password, self.refuse = user, password, refuse or {}
        self.resolve = resolve or {}
        self.asked = []
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://{user}:{password}@127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.socket.close()

    def serve(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(client,), daemon=True).start()

    def one(self, client):
        with client:
            try:
                self.talk(client)
            except OSError:
                pass

    def talk(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(65536)
            if not data:
                return
            head += data
        lines = head.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
        given = next((l.split(": ", 1)[1] for l in lines if l.lower().startswith("proxy-authorization:")), "")
        self.asked.append((lines[0], given))
        plain = f"{self.user}:{self.password.replace('%40', '@')}".encode()
        method, target, _ = lines[0].split(" ")
        host = target.split("://")[-1].split("/")[0]
        if given != "Basic " + base64.b64encode(plain).decode():
            client.sendall(b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        elif host.split(":")[0] in self.refuse:
            client.sendall(f"HTTP/1.1 {self.refuse[host.split(':')[0]]} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        else:
            self.carry(client, method, host, head)

    def carry(self, client, method, host, head):
        name, port = host.rsplit(":", 1)
        with socket.create_connection((self.resolve.get(name, "127.0.0.1"), int(port))) as server:
            if method == "CONNECT":
                client.sendall(b"HTTP/1.1 200 Through\r\n\r\n")
            else:
                line, rest = head.split(b"\r\n", 1)
                server.sendall(line.replace(b"http://" + host.encode(), b"") + b"\r\nConnection: close\r\n" + rest)
            ends = {client: server, server: client}
            while True:
                for end in select.select(list(ends), [], [])[0]:
                    data = end.recv(65536)
                    if not data:
                        return
                    ends[end].sendall(data)
