# SPDX-License-Identifier: Apache-2.0
"""A helper that was taken over: programs in the place of nacre-fetch that die, lie, or speak nonsense."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver import StoreTest, small_file  # noqa: E402

# What each fake begins with: fd 3 is the socket, 5 the directory; say() sends a packet as wire/message/fetchmsg.c lays it out.
PRELUDE = '''#!/usr/bin/python3
import hashlib, os, random, socket, struct, sys, time
sock = socket.socket(fileno=3)
sock.recv(65536)
READ, UNPACK, BLOB, IMAGE, WORD, LAYER, IMAGE_END, DONE, UNPACKED, ERROR = range(10)
def number(n): return struct.pack("=Q", n)
def text(t): return struct.pack("=I", len(t) + 1) + t + b"\\0"
def digest(d): return d.encode() + b"\\0"
def say(kind, *members, magic=0x6e636632, length=None, zero=0):
    body = b"".join(members)
    try: sock.send(struct.pack("=IIII", magic, kind, len(body) + 16 if length is None else length, zero) + body)
    except OSError: sys.exit(0)
def put(data):
    d = hashlib.sha256(data).hexdigest()
    with open("/proc/self/fd/5/" + d, "wb") as file: file.write(data)
    say(BLOB, digest("sha256:" + d), number(len(data)))
    return "sha256:" + d
D = "sha256:" + "0" * 64
reading = sys.argv[1] == "read"
'''

FAKES = {
    "silence": "pass",
    "status": "sys.exit(3)",
    "killed": "os.kill(os.getpid(), 9) or os.abort()",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "random": "for n in range(300): sock.send(random.randbytes(random.randrange(1, 2000)))",
    "random-bodies": "for n in range(300): say(random.randrange(34), random.randbytes(random.randrange(0, 300)))",
    "empty-packet": "sock.send(b'')",
    "huge-packet": "sock.send(b'x' * 100000)",
    "wrong-magic": "say(DONE, number(1), magic=1)",
    "wrong-length": "say(DONE, number(1), length=5)",
    "done-without-image": "say(DONE, number(0))",
    "done-with-images-that-are-not": "say(DONE, number(3))",
    "unpacked-out-of-turn": "say(UNPACKED, number(1), number(1), number(1))",
    "request-echoed": "say(READ, number(1), text(b'amd64'))",
    "blob-not-there": "say(BLOB, digest(D), number(5)); say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b''));"
                      "say(IMAGE_END, number(0), number(0)); say(DONE, number(1))",
    "blob-of-another-size": "d = put(b'x'); say(BLOB, digest(D), number(5));"
                            "os.rename('/proc/self/fd/5/' + d[7:], '/proc/self/fd/5/' + D[7:]);"
                            "say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b''));"
                            "say(IMAGE_END, number(0), number(0)); say(DONE, number(1))",
    "blob-is-a-link": "os.symlink('/etc/passwd', '/proc/self/fd/5/' + D[7:]); say(BLOB, digest(D), number(5));"
                      "say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b''));"
                      "say(IMAGE_END, number(0), number(0)); say(DONE, number(1))",
    "blob-is-a-directory": "os.mkdir('/proc/self/fd/5/' + D[7:]); say(BLOB, digest(D), number(5));"
                           "say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b''));"
                           "say(IMAGE_END, number(0), number(0)); say(DONE, number(1))",
    "blob-is-a-fifo": "os.mkfifo('/proc/self/fd/5/' + D[7:]); say(BLOB, digest(D), number(5));"
                      "say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b''));"
                      "say(IMAGE_END, number(0), number(0)); say(DONE, number(1))",
    "digest-is-a-path": "say(BLOB, b'sha256:../../../../../../../../../../etc/passwd'.ljust(72, b'\\0'), number(5))",
    "image-without-blobs": "say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b''));"
                           "say(IMAGE_END, number(0), number(0)); say(DONE, number(1))",
    "image-within-image": "for n in range(2): say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b''))",
    "word-outside": "say(WORD, number(1), text(b'A=1'))",
    "word-with-nul": "say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b'')); say(WORD, number(1), text(b'A=\\0x'))",
    "word-not-utf8": "say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b'')); say(WORD, number(1), text(b'A=\\xff'))",
    "name-not-full": "say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b'')); say(WORD, number(0), text(b'../x'))",
    "words-without-end": "say(IMAGE, digest(D), digest(D), text(b''), text(b''), text(b''))\n"
                         "while True: say(WORD, number(3), text(b'x' * 30000))",
    "blobs-without-end": "n = 0\nwhile True:\n    n += 1; say(BLOB, digest('sha256:%064x' % n), number(1))",
    "after-done": "say(DONE, number(0)); say(DONE, number(0))",
    "error-with-control-bytes": "say(ERROR, number(1), number(22), text(b'\\x1b[2J'))",
    "error-of-no-kind": "say(ERROR, number(99), number(22), text(b'x'))",
}


class FakeHelperTest(StoreTest):
    def fake(self, body):
        path = self.path("fake")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PRELUDE + body + "\n")
        os.chmod(path, 0o755)
        return path

    def test_fakes(self):
        image, _ = self.make("image.tar", [[small_file("f")]])
        for name, body in FAKES.items():
            with self.subTest(name=name):
                self.fetch = self.fake(body)
                done = self.driver("import", image, check=False)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertRegex(done.stderr.splitlines()[-1], "^fault: (.*nacre-fetch|fake |.*blob )", name)
                self.assert_empty()

    def test_no_helper(self):
        image, _ = self.make("image.tar", [[small_file("f")]])
        for path, words in (("/nonexistent/fetch", "No such file"), ("/etc/passwd", "Permission denied"),
                            ("/bin/true", "too early"), ("/bin/false", "status 1")):
            with self.subTest(path=path):
                self.fetch = path
                self.refused("fault", words, "import", image)
                self.assert_empty()

    def test_error_is_passed_on(self):
        image, _ = self.make("image.tar", [[small_file("f")]])
        self.fetch = self.fake("say(ERROR, number(6), number(28), text(b'the moon is full'))")
        self.refused("exhausted", "the moon is full", "import", image)

    def test_unpacker_that_lies(self):
        """Reads as the real one does, and then says that it unpacked what it did not, or dies."""
        image, _ = self.make("image.tar", [[small_file("f")]])
        real = self.fetch
        for body, words in (("pass", "too early"), ("say(UNPACKED, number(1), number(1), number(1)); os.abort()", "signal"),
                            ("say(DONE, number(1))", "does not belong"), ("time.sleep(0.1); sys.exit(9)", "status 9")):
            with self.subTest(body=body):
                self.fetch = self.fake("").replace("fake", "switch")
                with open(self.fetch, "w", encoding="utf-8") as file:
                    file.write("#!/bin/sh\n[ $1 = read ] && exec %s read\nexec %s unpack\n" % (real, self.fake(body)))
                os.chmod(self.fetch, 0o755)
                self.refused("fault", words, "import", image)
                self.assert_empty()


if __name__ == "__main__":
    unittest.main()
