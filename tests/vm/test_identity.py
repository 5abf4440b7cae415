# SPDX-License-Identifier: Apache-2.0
"""Who is taken for an instance, in a whole node with a real guest: in the machine's own network somebody else stands in the place of the
guest, or of the node, with all right but one thing. The piece by piece of it is in tests/gate; what is here besides is the certificate
of an instance that has ended."""
import contextlib
import ctypes
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import unittest

import host
import machines
import nacre_test
from machines import load_tests  # noqa: F401

sys.path.insert(0, os.path.join(nacre_test.ROOT, "tests", "gate"))
import gatebed  # noqa: E402

NODE, GUEST, PORT = "169.254.74.1", "169.254.74.2", 7474


class Identity(machines.MachinesTest):
    @classmethod
    def first(cls):
        cls.node.cli("spawn", "--kind", "vm", "--name", "v")
        cls.ended = cls.id_of()
        super().first()
        cls.node.cli("stop", "v")

    @classmethod
    def share(cls):
        cls.node.cli("spawn", "--kind", "vm", "--name", "v")
        cls.now = cls.id_of()
        domain, _, name = cls.now.removeprefix("spiffe://").split("/")[:3]
        cls.parent = f"spiffe://{domain}/node/{name}"
        folder = os.path.join(cls.node.root, "identity")
        cls.own = gatebed.Authority(folder, domain, name)
        other = os.path.join(cls.node.dir, "foreign")
        os.mkdir(other, 0o700)
        cls.foreign = gatebed.Authority(other, domain, name)

    @classmethod
    def tearDownClass(cls):
        cls.own.close()
        cls.foreign.close()
        super().tearDownClass()

    def setUp(self):
        """The instance is for all tests."""

    @classmethod
    def place(cls):
        """The directory of the only instance."""
        only, = os.listdir(os.path.join(cls.node.run, "i"))
        return os.path.join(cls.node.run, "i", only)

    @classmethod
    def network(cls):
        """The network namespace of the only machine, by its gate."""
        groups = [c for c in host.cgroups(cls.node.cgroup()) if os.path.basename(c) == "gate"]
        pids = {p for g in groups for p in host.cgroup_pids(os.path.join(cls.node.cgroup(), g))}
        return f"/proc/{min(pids)}/ns/net"

    @classmethod
    def inside(cls, call):
        """What call() returns, called in the machine's network."""
        answer = []

        def there():
            fd = os.open(cls.network(), os.O_RDONLY)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(fd, 0x40000000) < 0:
                    raise OSError(ctypes.get_errno(), "setns")
                answer.append(call())
            finally:
                os.close(fd)

        thread = threading.Thread(target=there)
        thread.start()
        thread.join()
        return answer[0]

    @classmethod
    def id_of(cls):
        """The id in the certificate that the guest shows to whoever asks."""
        shown = cls.inside(lambda: subprocess.run(
            ["openssl", "s_client", "-connect", f"{GUEST}:{PORT}", "-bind", NODE, "-tls1_3", "-alpn", "h2"], stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=60))
        told = subprocess.run(["openssl", "x509", "-noout", "-ext", "subjectAltName"], input=shown.stdout, capture_output=True, check=True)
        return re.search(r"URI:(\S+)", told.stdout.decode()).group(1)

    def person(self, name, authority=None, **how):
        return gatebed.Person(self.node.dir, authority or self.own, name, **how)

    # -- somebody in the place of the guest --

    @contextlib.contextmanager
    def in_place_of_the_guest(self):
        """A socket that listens at the guest's address, where the node's gate dials."""
        def have(verb):
            return lambda: subprocess.run(["ip", "address", verb, f"{GUEST}/32", "dev", "lo"], check=True)

        def listen():
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            return socket.create_server((GUEST, PORT), backlog=16)

        self.inside(have("add"))
        try:
            with self.inside(listen) as listener:
                listener.settimeout(60)
                yield listener
        finally:
            self.inside(have("del"))

    def dialed(self, person):
        """What somebody with these papers hears of one connection of the node's; whether he was taken, and what the node's log says."""
        begin = len(self.node.log())
        with self.in_place_of_the_guest() as listener, socket.socket(socket.AF_UNIX) as near:
            near.settimeout(60)
            near.connect(os.path.join(self.place(), "rpc.sock"))
            near.sendall(b"secret")
            sock, _ = listener.accept()
            sock.settimeout(60)
            heard = b""
            with sock, contextlib.suppress(ssl.SSLError, ConnectionError):
                with person.context(True, self.own.bundle).wrap_socket(sock, server_side=True) as tls:
                    heard = tls.recv(10)
            said = lambda: [l for l in self.node.log()[begin:].splitlines() if "a gate has refused a connection" in l]  # noqa: E731
            if not heard:
                nacre_test.until(said, what="a word of the refusal")
            return heard, "\n".join(said())

    def test_by_the_node(self):
        for person, why in ((self.person(self.now, self.foreign), "does not hold"),
                            (self.person(self.now, life=-5, age=60), "expired"),
                            (self.person(self.now, life=7200, age=-3600), "not yet valid"),
                            (self.person(self.ended), f"it is {self.ended}"),
                            (self.person(self.parent), f"it is {self.parent}")):
            with self.subTest(why=why):
                heard, said = self.dialed(person)
                self.assertEqual(b"", heard)
                self.assertIn(why, said)
        # It was that thing alone.
        heard, _ = self.dialed(self.person(self.now))
        self.assertNotEqual(b"", heard)
        # Nor was anything of it the end of the instance that is there.
        self.cell("v/a")
        self.assertEqual("well\n", self.sh("v/a", "echo well"))
        self.remove("v/a", force=True)

    # -- somebody in the place of the node --

    def answered(self, person):
        """Whether the guest takes somebody with these papers for its node: then it says SETTINGS, as each server of HTTP/2 does first."""
        def dial():
            return socket.create_connection((GUEST, PORT), 60, source_address=(NODE, 0))

        with self.inside(dial) as sock, contextlib.suppress(ssl.SSLError, ConnectionError):
            with person.context(False, self.own.bundle).wrap_socket(sock) as tls:
                tls.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + gatebed.h2(4, 0, 0))
                return tls.recv(10)
        return b""

    def test_by_the_guest(self):
        for what, person in (("foreign", self.person(self.parent, self.foreign)),
                             ("expired", self.person(self.parent, life=-5, age=60)),
                             ("of tomorrow", self.person(self.parent, life=7200, age=-3600)),
                             ("an instance that has ended", self.person(self.ended)),
                             ("itself", self.person(self.now))):
            with self.subTest(what=what):
                self.assertEqual(b"", self.answered(person))
        self.assertEqual(4, self.answered(self.person(self.parent))[3])

    def test_an_id_is_for_one_life(self):
        """The same name, and yet another id: what was signed for the one before is for nobody any more."""
        self.assertRegex(self.now, rf"^{re.escape(self.parent)}/instance/[0-9a-f]+$")
        self.assertRegex(self.ended, rf"^{re.escape(self.parent)}/instance/[0-9a-f]+$")
        self.assertNotEqual(self.ended, self.now)


if __name__ == "__main__":
    unittest.main()
