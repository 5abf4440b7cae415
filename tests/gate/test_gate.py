# SPDX-License-Identifier: Apache-2.0
"""nacre-gate without a machine: two real gates, and peers that are not ours (Python's ssl, openssl s_server), each refused for the
one thing that is wrong with it."""
import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gatebed  # noqa: E402
import nacre_test  # noqa: E402
from gatebed import ENROLLING, FAILED, GONE, GUEST_ID, NODE_ID, OTHER_ID, UP, h2  # noqa: E402

SETTINGS = h2(4, 0, 0)
# What a gate may grow by. A sanitizer keeps what was freed.
GROWTH = (1 << 20) * (1 if not nacre_test.SANITIZED else 64)


class GateTest(unittest.TestCase):
    def setUp(self):
        self.bed = gatebed.Bed()
        self.addCleanup(self.bed.close)

    def assertCut(self, sock):
        """Nothing but the end comes."""
        try:
            self.assertEqual(sock.recv(1000), b"")
        except (ConnectionError, ssl.SSLError):
            pass


class PassingOn(GateTest):
    def pair(self):
        """Both ends of one connection through both gates."""
        near = self.bed.node.dial()
        far = self.bed.keeper.accept()
        far.sendall(SETTINGS)
        self.assertEqual(near.recv(100), SETTINGS)
        return near, far

    def test_bytes_go_both_ways_and_end_one_by_one(self):
        self.bed.up()
        near, far = self.pair()
        near.sendall(b"PRI whatever")
        self.assertEqual(far.recv(100), b"PRI whatever")
        near.shutdown(socket.SHUT_WR)
        self.assertEqual(far.recv(100), b"")
        far.sendall(h2(6, 0, 0, bytes(8)))
        self.assertEqual(near.recv(100), h2(6, 0, 0, bytes(8)))
        far.close()
        self.assertEqual(near.recv(100), b"")

    def test_nothing_is_lost_and_memory_is_bounded_where_nobody_reads(self):
        """64 MiB each way, the reader late."""
        node = self.bed.up()
        near, far = self.pair()
        n, piece = 4096, 16384
        frames = h2(0, 0, 1, b"x" * (piece - 9))
        before = node.memory()

        def send(sock, data):
            for _ in range(n):
                sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)

        threads = [threading.Thread(target=send, args=(s, d), daemon=True) for s, d in ((near, b"y" * piece), (far, frames))]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        self.assertLess(node.memory() - before, GROWTH)
        self.assertTrue(all(t.is_alive() for t in threads))
        for sock, data in ((near, frames), (far, b"y" * piece)):
            got = bytearray()
            while len(got) < len(data):
                got += sock.recv(len(data) - len(got))
            self.assertEqual(bytes(got), data)
            total = len(data)
            while True:
                part = sock.recv(1 << 20)
                if not part:
                    break
                total += len(part)
            self.assertEqual(total, n * len(data))
        for thread in threads:
            thread.join(60)

    def test_more_connections_than_there_may_be_wait(self):
        """128 at a time; the 129th is served when one of them has ended."""
        self.bed.up()
        pairs = [self.pair() for _ in range(128)]
        late = self.bed.node.dial()
        self.bed.keeper.sock.settimeout(0.5)
        with self.assertRaises(TimeoutError):
            self.bed.keeper.accept()
        near, far = pairs.pop()
        near.close()
        far.close()
        self.bed.keeper.sock.settimeout(60)
        far = self.bed.keeper.accept()
        late.sendall(b"now")
        self.assertEqual(far.recv(10), b"now")

    def test_a_guest_that_speaks_no_http2_is_cut(self):
        node = self.bed.up()
        for words in (b"HTTP/1.1 200 OK\r\n\r\n", SETTINGS + h2(5, 4, 1, bytes(4)), SETTINGS + h2(0, 0, 2, b"x")):
            near = node.dial()
            far = self.bed.keeper.accept()
            far.sendall(words)
            got = near.recv(1000)
            self.assertIn(got, (b"", SETTINGS))
            self.assertCut(near)
            node.until(lambda: any("HTTP/2" in n for n in node.notices), "a notice")
            node.notices.clear()
            far.close()


class Walls(GateTest):
    def status(self, process):
        with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)

    def test_no_gate_keeps_any_privilege(self):
        self.bed.up()
        for process, uid in ((self.bed.node.process, gatebed.UID), (self.bed.authority.process, gatebed.UID),
                             (self.bed.guest.process, 0)):
            status = self.status(process)
            self.assertEqual(status["Uid"].split(), [str(uid)] * 4)
            self.assertEqual(status["Seccomp"], "2")
            self.assertEqual(status["NoNewPrivs"], "1")
            for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb") + (("CapBnd",) if uid else ()):
                self.assertEqual(int(status[kind], 16), 0, kind)
            if uid:
                self.assertEqual(status["Groups"].split(), [])
                self.assertEqual(os.listdir(f"/proc/{process.pid}/root/"), [])
                with open(f"/proc/{process.pid}/mountinfo", encoding="utf-8") as f:
                    self.assertEqual(len(f.readlines()), 1)
            self.assertEqual(os.stat(f"/proc/{process.pid}/environ").st_uid, 0, "dumpable")

    def test_the_title_says_whose_it_is(self):
        self.bed.up()
        with open(f"/proc/{self.bed.node.process.pid}/cmdline", "rb") as f:
            self.assertIn(b"nacre: gate pod/web", f.read())


class Enrolment(GateTest):
    def test_a_wrong_token_is_refused_by_both(self):
        node = self.bed.start_node()
        self.bed.start_guest()
        node.token = os.urandom(32)
        node.setup()
        node.ready()
        node.until_state(FAILED)
        self.assertIn("could not be enrolled", node.text)
        self.assertIsNone(self.bed.guest.process.poll())

    def test_a_token_is_spent(self):
        """A second gate with the token of the first is refused by the guest."""
        first = self.bed.up()
        folder = os.path.join(self.bed.folder, "second")
        os.mkdir(folder)
        second = self.bed.add(gatebed.NodeGate(folder, self.bed.authority))
        second.token = first.token
        second.setup()
        second.ready()
        second.until_state(FAILED)
        # And the first goes on.
        first.dial()
        self.bed.keeper.accept()

    def test_a_guest_in_a_cloud_needs_its_node(self):
        """It ends where nobody enrols it in time, and where its node does not sign for it any more; with one here neither counts."""
        node = self.bed.start_node()
        self.bed.start_guest(far=True, lease="1")
        self.assertEqual(1, self.bed.guest.process.wait(30))
        self.bed.start_guest(far=True, lease="3")
        node.setup()
        node.ready()
        node.until_state(UP)
        self.assertIsNone(self.bed.guest.process.poll())
        node.dial().sendall(b"x")
        self.assertEqual(b"x", self.bed.keeper.accept().recv(10))
        self.assertEqual(1, self.bed.guest.process.wait(30))
        self.bed.start_guest(lease="1")
        with self.assertRaises(subprocess.TimeoutExpired):
            self.bed.guest.process.wait(2)

    def test_a_guest_without_the_token_gets_nothing(self):
        """openssl s_client with another secret, and without any."""
        self.bed.start_node()
        self.bed.start_guest()
        where = f"{gatebed.GUEST_ADDRESS}:{gatebed.PORT}"
        for words in (["-psk", "00" * 32, "-psk_identity", "nacre-enrol/1"], []):
            done = subprocess.run(["openssl", "s_client", "-connect", where, "-tls1_3", "-alpn", "nacre-enrol/1", *words],
                                  stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(b"alert", done.stderr)

    def test_nobody_waits_for_a_guest_for_ever(self):
        """Without the guest's first frame nothing is tried; connections wait."""
        node = self.bed.start_node()
        node.setup()
        node.until(lambda: node.needs, "the node's own certificate")
        near = node.dial()
        node.turn(0.3)
        self.assertNotIn(node.state, (UP, ENROLLING, FAILED))
        self.bed.start_guest()
        node.ready()
        node.until_state(UP)
        near.sendall(b"x")
        self.assertEqual(self.bed.keeper.accept().recv(10), b"x")


class Refusals(GateTest):
    """By the guest: a client that is not ours, with all right but one thing. The last test shows that it is that thing."""

    def dial_guest(self, person, bundle=None, **how):
        how.setdefault("version", ssl.TLSVersion.TLSv1_3)
        context = person.context(False, bundle or self.bed.authority.bundle, **how)
        sock = socket.create_connection((gatebed.GUEST_ADDRESS, gatebed.PORT), 60)
        self.addCleanup(sock.close)
        return context.wrap_socket(sock)

    def assertRefused(self, person, **how):
        try:
            sock = self.dial_guest(person, **how)
        except (ssl.SSLError, ConnectionError):
            return
        # In TLS 1.3 a client is through before it hears of the refusal.
        try:
            sock.sendall(b"x")
        except (ssl.SSLError, ConnectionError):
            pass
        self.assertCut(sock)
        self.bed.keeper.sock.settimeout(0.2)
        with self.assertRaises(TimeoutError):
            self.bed.keeper.accept()

    def setUp(self):
        super().setUp()
        self.bed.up()

    def test_refuses_a_foreign_certificate(self):
        self.assertRefused(self.bed.person(NODE_ID, self.bed.foreign()))

    def test_refuses_an_expired_certificate(self):
        self.assertRefused(self.bed.person(NODE_ID, life=-5, age=60))

    def test_refuses_a_certificate_of_tomorrow(self):
        self.assertRefused(self.bed.person(NODE_ID, life=7200, age=-3600))

    def test_refuses_another_instance(self):
        self.assertRefused(self.bed.person(OTHER_ID))

    def test_refuses_itself(self):
        self.assertRefused(self.bed.person(GUEST_ID))

    def test_refuses_another_trust_domain(self):
        self.assertRefused(self.bed.person("spiffe://other.local/node/n1", self.bed.foreign("other.local")))

    def test_refuses_tls_1_2(self):
        self.assertRefused(self.bed.person(NODE_ID), version=ssl.TLSVersion.TLSv1_2)

    def test_refuses_other_protocols(self):
        self.assertRefused(self.bed.person(NODE_ID), alpn="http/1.1")
        self.assertRefused(self.bed.person(NODE_ID), alpn=None)

    def test_refuses_who_has_no_certificate(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(cadata=self.bed.authority.bundle)
        context.set_alpn_protocols(["h2"])
        sock = context.wrap_socket(socket.create_connection((gatebed.GUEST_ADDRESS, gatebed.PORT), 60))
        self.addCleanup(sock.close)
        self.assertCut(sock)

    def test_refuses_another_address(self):
        """A workload of the guest that dials is not even shaken hands with."""
        sock = socket.socket()
        self.addCleanup(sock.close)
        sock.bind(("127.0.0.9", 0))
        sock.settimeout(60)
        sock.connect((gatebed.GUEST_ADDRESS, gatebed.PORT))
        self.assertCut(sock)

    def test_takes_the_parent(self):
        sock = self.dial_guest(self.bed.person(NODE_ID))
        self.assertEqual(sock.selected_alpn_protocol(), "h2")
        sock.sendall(b"hello")
        self.assertEqual(self.bed.keeper.accept().recv(10), b"hello")


class Slow(GateTest):
    def listen(self):
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((gatebed.GUEST_ADDRESS, gatebed.PORT))
        listener.listen(64)
        return listener

    def test_a_node_waits_as_long_as_it_is_told(self):
        """A second for a handshake, and for the first certificate twelve times as long."""
        node = self.bed.start_node(patience="1")
        listener = self.listen()
        node.setup()
        node.ready()
        began = time.monotonic()
        node.until_state(gatebed.FAILED)
        self.assertLess(time.monotonic() - began, 100)
        self.assertIn("the guest was not reached for its enrolment: TLS handshake", node.text)
        listener.settimeout(10)
        for _ in range(2):
            sock, _ = listener.accept()
            sock.close()

    def test_a_guest_waits_as_long_as_it_is_told(self):
        self.bed.start_node()
        self.bed.start_guest(patience="1")
        began = time.monotonic()
        with socket.create_connection((gatebed.GUEST_ADDRESS, gatebed.PORT), timeout=60, source_address=(gatebed.NODE_ADDRESS, 0)) as sock:
            self.assertCut(sock)
        self.assertLess(time.monotonic() - began, 9)

    def test_a_guest_whose_gate_is_still_on_its_way_is_asked_once(self):
        """Its kernel has taken the connection: another one would be one more to answer."""
        node = self.bed.start_node()
        listener = self.listen()
        node.setup()
        node.ready()
        end = time.monotonic() + 1.5
        node.until(lambda: time.monotonic() > end, "a while")
        listener.setblocking(False)
        sock, _ = listener.accept()
        self.addCleanup(sock.close)
        with self.assertRaises(BlockingIOError):
            listener.accept()
        # The beginning of a handshake, and no end behind it.
        hello = sock.recv(65536)
        self.assertEqual(b"\x16", hello[:1])
        sock.setblocking(False)
        with self.assertRaises(BlockingIOError):
            sock.recv(1)


class RefusalsByTheNode(GateTest):
    """The guest is openssl s_server while it enrols, then Python's ssl with a certificate that is wrong in one thing."""

    def enrol(self):
        node = self.bed.start_node()
        server = subprocess.Popen(
            ["openssl", "s_server", "-accept", f"{gatebed.GUEST_ADDRESS}:{gatebed.PORT}", "-tls1_3", "-nocert", "-quiet", "-psk",
             node.token.hex(), "-psk_identity", "nacre-enrol/1", "-alpn", "nacre-enrol/1"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            node.setup()
            node.ready()
            server.stdin.write(gatebed.message(gatebed.KEY, os.urandom(32)))
            server.stdin.flush()
            node.until(lambda: 1 in node.needs, "the guest's key")
            head = server.stdout.read(16)
            size = int.from_bytes(head[8:12], "little")
            kind, _ = gatebed.take(head + server.stdout.read(size - 16))
            self.assertEqual(kind, gatebed.LIFE)
            server.stdin.write(gatebed.message(gatebed.KEPT))
            server.stdin.flush()
            node.until_state(UP)
        finally:
            server.kill()
            server.wait()
            server.stdin.close()
            server.stdout.close()
        return node

    def dial_by_node(self, person, bundle=None, **how):
        """What the guest's end sees of one connection: its handshake, or what went wrong."""
        node = self.enrol()
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((gatebed.GUEST_ADDRESS, gatebed.PORT))
        listener.listen(8)
        listener.settimeout(60)
        context = person.context(True, bundle or self.bed.authority.bundle, **how)
        near = node.dial()
        sock, _ = listener.accept()
        sock.settimeout(60)
        self.addCleanup(sock.close)
        try:
            sock = context.wrap_socket(sock, server_side=True)
        except (ssl.SSLError, ConnectionError):
            sock = None
        return node, near, sock

    def assertRefused(self, person, why, **how):
        node, near, sock = self.dial_by_node(person, **how)
        with contextlib.suppress(ConnectionError):
            near.sendall(b"secret")
        if sock:
            self.assertCut(sock)
        self.assertCut(near)
        node.until(lambda: node.notices, "a notice")
        self.assertIn(why, node.notices[-1])

    def test_refuses_a_foreign_certificate(self):
        self.assertRefused(self.bed.person(GUEST_ID, self.bed.foreign()), "does not hold")

    def test_refuses_an_expired_certificate(self):
        self.assertRefused(self.bed.person(GUEST_ID, life=-5, age=60), "expired")

    def test_refuses_another_instance(self):
        self.assertRefused(self.bed.person(OTHER_ID), f"it is {OTHER_ID}")

    def test_refuses_another_trust_domain(self):
        self.assertRefused(self.bed.person("spiffe://other.local/node/n1/instance/0123456789abcdef", self.bed.foreign("other.local")),
                           "does not hold")

    def test_refuses_tls_1_2(self):
        self.assertRefused(self.bed.person(GUEST_ID), "", version=ssl.TLSVersion.TLSv1_2)

    def test_refuses_to_go_without_a_protocol(self):
        self.assertRefused(self.bed.person(GUEST_ID), "protocol", alpn=None)

    def test_takes_the_instance(self):
        _, near, sock = self.dial_by_node(self.bed.person(GUEST_ID))
        near.sendall(b"hello")
        self.assertEqual(sock.recv(10), b"hello")
        sock.sendall(SETTINGS)
        self.assertEqual(near.recv(100), SETTINGS)


class Renewal(GateTest):
    def test_both_are_renewed_while_a_stream_goes_on(self):
        node = self.bed.up(life=4)
        near = node.dial()
        far = self.bed.keeper.accept()
        end = time.monotonic() + 10
        far.sendall(SETTINGS)
        self.assertEqual(near.recv(100), SETTINGS)
        while time.monotonic() < end:
            node.turn(0.2)
            near.sendall(b"x")
            self.assertEqual(far.recv(10), b"x")
            self.assertEqual(node.state, UP, node.text)
        # Twice at least, and a connection that begins now is of the newer ones.
        self.assertGreaterEqual(node.needs.count(0), 3)
        self.assertGreaterEqual(node.needs.count(1), 3)
        node.dial().sendall(b"again")
        self.assertEqual(self.bed.keeper.accept().recv(10), b"again")
        self.assertEqual(node.notices, [])

    def test_what_expired_while_there_was_no_daemon_comes_back(self):
        """The guest enrols anew, with the token that came with its last certificate."""
        node = self.bed.up(life=2)
        node.serves = False
        end = time.monotonic() + 5
        while time.monotonic() < end:
            node.turn()
        self.assertEqual(node.state, ENROLLING)
        node.connect()
        node.serves, node.life = True, 60
        node.until_state(UP)
        node.dial().sendall(b"back")
        self.assertEqual(self.bed.keeper.accept().recv(10), b"back")


class Rotation(GateTest):
    """Of the authority: the node is told of the bundle, and the guest by it."""

    def change(self, *changes, prepare=0):
        """The authority that signs from here on; the node is told of its bundle."""
        for c in changes:
            self.bed.authority.close()
            self.bed.made.remove(self.bed.authority)
            self.bed.authority = self.bed.add(gatebed.Authority(os.path.join(self.bed.folder, "identity"), change=c,
                                                                    prepare=prepare))
        node = self.bed.node
        node.authority, node.needs = self.bed.authority, []
        node.setup()

    def call(self):
        near = self.bed.node.dial()
        near.sendall(b"again")
        far = self.bed.keeper.accept()
        self.assertEqual(far.recv(10), b"again")
        return near, far

    def test_streams_go_on_and_both_are_renewed(self):
        node = self.bed.up()
        near, far = self.call()
        for change in (gatebed.ROTATE, gatebed.RETIRE):
            self.change(change)
            while sorted(set(node.needs)) != [0, 1]:
                self.call()
                node.turn()
            self.call()
            near.sendall(b"x")
            self.assertEqual(far.recv(10), b"x")
        node.until(lambda: not node.turn(0.5), "quiet")
        self.call()
        self.assertEqual((node.state, node.notices), (UP, []))

    def test_the_old_one_is_retired_before_the_new_one_signs_for_guests(self):
        """A guest has both roots then, and a certificate of the one that goes."""
        node = self.bed.up()
        self.change(gatebed.ROTATE, prepare=3600)
        node.until(lambda: sorted(set(node.needs)) == [0, 1] and not node.turn(0.5), "both")
        self.change(gatebed.RETIRE)
        while sorted(set(node.needs)) != [0, 1]:
            self.call()
            node.turn()
        node.until(lambda: not node.turn(0.5), "quiet")
        self.call()
        self.assertEqual((node.state, node.notices), (UP, []))

    def test_a_guest_that_knows_the_old_root_alone_comes_by_its_token(self):
        node = self.bed.up()
        self.change(gatebed.ROTATE, gatebed.RETIRE)
        node.until(lambda: 1 in node.needs, "the guest's next certificate")
        node.until(lambda: not node.turn(0.5), "quiet")
        self.call()

    def test_a_node_that_was_never_set_up_is_not_by_a_bundle_alone(self):
        node = self.bed.start_node()
        node.token = bytes(32)
        node.setup()
        node.ready()
        node.until(lambda: node.frames, "the frame")
        self.assertEqual((node.state, node.needs), (gatebed.NEW, []))


class Ports(GateTest):
    def test_the_end_of_the_console_is_kept_also_after_the_machine(self):
        """However much it is, 64 KiB of it, in memory (V20)."""
        node = self.bed.start_node()
        node.console.sendall(b"line %d\n" % 1)
        node.until(lambda: node.last_of_console() == (7, b"line 1\n"), "the console")
        before = node.memory()
        data = os.urandom(1 << 20)
        for _ in range(32):
            node.console.sendall(data)
        node.console.sendall(b"the end")
        total = 7 + (32 << 20) + 7
        node.until(lambda: node.last_of_console()[0] == total, "all of the console")
        self.assertEqual(node.parts[0][1], (data + b"the end")[-65536:])
        self.assertLess(node.memory() - before, GROWTH)
        node.console.close()
        node.until_state(GONE)
        self.assertEqual(node.last_of_console(), (total, (data + b"the end")[-65536:]))

    def test_frames_go_both_ways_whole(self):
        node = self.bed.start_node()
        frame = (60000).to_bytes(4, "little") + bytes(60000)
        node.control.send(gatebed.message(gatebed.FRAME, gatebed.run(frame)))
        got = b""
        while len(got) < len(frame):
            got += node.boot.recv(1 << 17)
        self.assertEqual(got, frame)
        node.boot.sendall(frame[:30000])
        node.turn(0.1)
        self.assertEqual(node.frames, [])
        node.boot.sendall(frame[30000:])
        node.until(lambda: node.frames == [frame], "the frame")
        # A new daemon is told it again.
        node.connect()
        node.until(lambda: node.frames == [frame], "the frame")

    def flood(self, data):
        node = self.bed.start_node()
        node.setup()
        node.boot.settimeout(1)
        before = node.memory()
        try:
            for _ in range(512):
                node.boot.sendall(data)
        except TimeoutError:
            pass
        node.until_state(FAILED)
        self.assertIn("nonsense", node.text)
        self.assertLess(node.memory() - before, 2 * GROWTH)
        self.assertLessEqual(len(node.frames), 8)

    def test_a_flood_of_frames_is_bounded(self):
        """V19, as what follows."""
        self.flood((65536).to_bytes(4, "little") + bytes(65536))

    def test_a_frame_too_long_is_refused(self):
        self.flood((65537).to_bytes(4, "little") + bytes(65537))

    def test_the_machine_is_gone(self):
        node = self.bed.up()
        near = node.dial()
        self.bed.keeper.accept()
        node.boot.close()
        node.until_state(GONE)
        self.assertCut(near)


class Survival(GateTest):
    def test_a_new_daemon_finds_all_as_it_was(self):
        node = self.bed.up()
        near = node.dial()
        far = self.bed.keeper.accept()
        node.control.close()
        near.sendall(b"still")
        self.assertEqual(far.recv(10), b"still")
        node.control = None
        node.connect()
        node.until(lambda: node.state == UP and len(node.frames) == 1, "the state and the frame")

    def test_nonsense_ends_a_connection_and_not_the_gate(self):
        node = self.bed.up()
        for data in (b"x", bytes(100), gatebed.message(gatebed.SETUP, b"x"), os.urandom(5000)):
            node.control.send(data)
            self.assertTrue(nacre_test.until(lambda: self.ends(node), what="the end of the connection"))
            node.connect()
        node.until_state(UP)

    @staticmethod
    def ends(node):
        try:
            while node.control.recv(1 << 17):
                pass
        except ConnectionError:
            pass
        return True

    def test_ends_when_told(self):
        node = self.bed.up()
        node.control.send(gatebed.message(gatebed.END))
        self.assertEqual(node.process.wait(60), 0)


class Authority(GateTest):
    def test_signs_for_its_own_node_alone(self):
        key = os.urandom(32)
        for name, life in (("spiffe://nacre.local/node/n2", 60), ("spiffe://other.local/node/n1", 60), (NODE_ID, 90000)):
            kind, text = self.bed.authority.ask(key, name, life)
            self.assertEqual(kind, gatebed.DENIED, text)

    def test_openssl_takes_what_it_signs(self):
        person = self.bed.person(GUEST_ID)
        with open(person.base + ".ca", "w", encoding="ascii") as f:
            f.write(ssl.DER_cert_to_PEM_cert(self.bed.authority.bundle))
        subprocess.run(["openssl", "verify", "-x509_strict", "-CAfile", person.base + ".ca", person.base + ".crt"], check=True,
                       capture_output=True)
        shown = subprocess.run(["openssl", "x509", "-in", person.base + ".crt", "-noout", "-text"], check=True, capture_output=True,
                               text=True).stdout
        self.assertEqual(shown.count("URI:"), 1)
        self.assertIn(f"URI:{GUEST_ID}\n", shown)
        for word in ("Subject: \n", "CA:FALSE", "Digital Signature\n", "TLS Web Server Authentication, TLS Web Client Authentication",
                     "X509v3 Subject Alternative Name: critical"):
            self.assertIn(word, shown)

    def test_ends_with_its_daemon(self):
        authority = self.bed.foreign()
        authority.sock.close()
        self.assertEqual(authority.process.wait(60), 0)
