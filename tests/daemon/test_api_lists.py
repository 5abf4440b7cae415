#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lists: what they select, in which pages, and that nothing holds them up."""
import itertools
import os
import signal
import sqlite3
import threading
import unittest

import grpc

import images
import nacre_test
from nacre_test import nacre_pb2, runtime_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT


class ListTest(nacre_test.NodeTest):
    def container(self, *command, **kwargs):
        return runtime_pb2.Container(image=self.busybox(), command=command or ["sleep", "100000"], **kwargs)

    def cell(self, name, *command, instance=""):
        return self.node.runtime.RunCell(runtime_pb2.RunCellRequest(meta={"name": name}, instance=instance,
                                                                    containers=[self.container(*command)]))

    def keep(self, name, command="true"):
        """A record of something that has ended: the cheapest object there is."""
        return self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
            meta={"name": name}, executable={"command": command}, keep=True)).id

    def ask(self, **kwargs):
        return self.node.workloads.List(nacre_pb2.ListRequest(**kwargs))

    def names(self, **kwargs):
        return [w.name for w in self.ask(**kwargs).workloads]

    def pages(self, between=lambda: None, **kwargs):
        """The names of each page, following the tokens; between() is called between two."""
        token, found = "", []
        while True:
            page = self.ask(page_token=token, **kwargs)
            found.append([w.name for w in page.workloads])
            token = page.next_page_token
            if not token:
                return found
            between()

    def remove(self, target):
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target=target, force=True))


class Selection(ListTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        runtime = cls.node.runtime
        box = runtime_pb2.Container(image=cls.busybox(), command=["sleep", "100000"])
        over = runtime_pb2.Container(image=cls.busybox(), command=["false"])
        runtime.Spawn(runtime_pb2.SpawnRequest(meta={"name": "a"}))
        runtime.Spawn(runtime_pb2.SpawnRequest(meta={"name": "b"}, parent="a"))
        runtime.RunCell(runtime_pb2.RunCellRequest(meta={"name": "c"}, instance="a/b", containers=[box]))
        runtime.RunPod(runtime_pb2.RunPodRequest(meta={"name": "p"}, parent="a", containers=[box]))
        runtime.RunPod(runtime_pb2.RunPodRequest(meta={"name": "ab"}, containers=[box]))
        runtime.RunCell(runtime_pb2.RunCellRequest(meta={"name": "over"}, containers=[over]))
        runtime.RunExecutable(runtime_pb2.RunExecutableRequest(meta={"name": "x"}, keep=True,
                                                               executable={"command": "true"}))
        cls.node.workloads.Wait(nacre_pb2.WaitRequest(target="over"))

    def test_order_is_that_of_creation(self):
        self.assertEqual(["a", "a/b", "a/b/c", "a/p", "ab", "over", "x"], self.names(all=True))
        self.assertEqual(["a", "a/b", "a/b/c", "a/p", "ab"], self.names())

    def test_kinds(self):
        self.assertEqual(["a", "a/b"], self.names(kinds=["instance"]))
        self.assertEqual(["a/b/c", "over", "x"], self.names(kinds=["executable", "cell"], all=True))
        self.assertEqual([], self.names(kinds=["executable"]))

    def test_states(self):
        self.assertEqual(["over", "x"], self.names(states=["exited"]))
        self.assertEqual(["a", "a/b", "a/b/c", "a/p", "ab"], self.names(states=["running", "ready"]))
        self.assertEqual([], self.names(states=["stopping"], all=True))

    def test_below(self):
        self.assertEqual(["a/b", "a/b/c", "a/p"], self.names(below="a"))
        self.assertEqual(["a/b/c"], self.names(below="a/b", all=True))
        self.assertEqual([], self.names(below="nobody"))

    def test_conditions_hold_together(self):
        self.assertEqual(["a/b/c"], self.names(below="a", kinds=["cell", "executable"], states=["running"]))

    def test_wrong_words_are_named(self):
        for field, kwargs in {"kinds[1]": {"kinds": ["pod", "clam"]}, "kinds[0]": {"kinds": [""]},
                              "states[0]": {"states": ["gone"]}, "below": {"below": "/a"},
                              "fields[1]": {"fields": ["id", "nothing"]}, "fields[0]": {"fields": ["containers.id"]},
                              "page_size": {"page_size": 10001}}.items():
            with self.subTest(field):
                self.assertTrue(self.assertFails(INVALID, lambda: self.ask(**kwargs)).startswith(field + ": "))

    def test_fields(self):
        whole = {w.name: w for w in self.ask(all=True).workloads}
        every = [f.name for f in nacre_pb2.Workload.DESCRIPTOR.fields]
        for mask in [[f] for f in every] + [["id", "containers"], every]:
            for w, name in zip(self.ask(all=True, fields=mask).workloads, whole):
                wanted = nacre_pb2.Workload()
                for field, value in whole[name].ListFields():
                    if field.name not in mask:
                        continue
                    if field.label == field.LABEL_REPEATED:
                        getattr(wanted, field.name).extend(value)
                    else:
                        setattr(wanted, field.name, value)
                self.assertEqual(wanted, w, mask)


class Pages(ListTest):
    IMAGES = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for n in range(25):
            cls.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
                meta={"name": f"n{n}"}, executable={"command": "true"}, keep=True))
        cls.names_there = [f"n{n}" for n in range(25)]

    def test_sizes(self):
        self.assertEqual([self.names_there], self.pages(all=True))
        self.assertEqual([self.names_there], self.pages(all=True, page_size=10000))
        self.assertEqual([self.names_there], self.pages(all=True, page_size=25))
        self.assertEqual([self.names_there[:24], self.names_there[24:]], self.pages(all=True, page_size=24))
        self.assertEqual([[n] for n in self.names_there], self.pages(all=True, page_size=1))

    def test_stable_while_objects_come_and_go(self):
        """Those that are there all the time are in exactly one page, though neighbours go, the last one seen too."""
        count = itertools.count()
        fleeting = [self.keep(f"old-{n}") for n in range(6)]
        came = []

        def change():
            n = next(count)
            came.append(f"new-{n}")
            self.keep(came[-1])
            if fleeting:
                self.remove(fleeting.pop())

        try:
            found = [n for page in self.pages(change, all=True, page_size=4) for n in page]
            self.assertEqual(self.names_there, [n for n in found if n in self.names_there])
            self.assertEqual(len(found), len(set(found)))
        finally:
            for name in came + fleeting:
                self.remove(name)

    def test_the_object_that_a_token_names_may_be_gone(self):
        doomed = self.keep("doomed")
        behind = self.keep("behind")
        page = self.ask(all=True, page_size=26)
        self.assertEqual("doomed", page.workloads[-1].name)
        self.remove(doomed)
        rest = self.ask(all=True, page_token=page.next_page_token)
        self.assertEqual(["behind"], [w.name for w in rest.workloads])
        self.remove(behind)

    def test_forged_tokens(self):
        token = self.ask(all=True, page_size=3).next_page_token
        flipped = ("1" if token[5] != "1" else "2").join([token[:5], token[6:]])
        for bad in ("x", "0" * 48, token[:-1], token + "0", token.upper() if token.upper() != token else "A" * 48, flipped,
                    token[::-1], "\u00e4" * 24):
            with self.subTest(bad):
                self.assertTrue(self.assertFails(INVALID, lambda: self.ask(all=True, page_token=bad)).startswith("page_token: "))
        # A token answers the question that it was given out for, and no other.
        self.assertFails(INVALID, lambda: self.ask(page_token=token), "page_token")
        self.assertFails(INVALID, lambda: self.ask(all=True, kinds=["pod"], page_token=token), "page_token")
        # Which fields, and how many at a time, is not part of it.
        page = self.ask(all=True, page_token=token, page_size=1, fields=["name"])
        self.assertEqual(["n3"], [w.name for w in page.workloads])


class Images(nacre_test.NodeTest):
    def ask(self, **fields):
        return self.node.images.List(nacre_pb2.ListImagesRequest(**fields))

    def test_pages_and_names(self):
        names = [f"docker.io/library/one-{n}:latest" for n in range(3)] + ["docker.io/team/two:1", "quay.io/team/one-4:1"]
        for n, name in enumerate(names):
            path = images.make(os.path.join(self.node.dir, f"list-{n}.tar"), "--busybox", "--cmd", "true", "--label", f"n={n}")
            self.node.import_image(path, name)
        all_ = self.ask()
        self.assertEqual("", all_.next_page_token)
        self.assertEqual(names, [i.names[0] for i in all_.images][-5:])
        paged, token = [], ""
        while True:
            page = self.ask(page_size=2, page_token=token)
            self.assertLessEqual(len(page.images), 2)
            paged += page.images
            token = page.next_page_token
            if not token:
                break
        self.assertEqual(list(all_.images), paged)
        for prefix, found in (("one-", names[:3]), ("docker.io/library/one-1", names[1:2]), ("library/one", names[:3]),
                              ("team/", names[3:4]), ("quay.io/", names[4:]), ("none", []), ("x" * 455, [])):
            self.assertEqual(found, [i.names[0] for i in self.ask(name_prefix=prefix).images], prefix)
        token = self.ask(name_prefix="one-", page_size=1).next_page_token
        # What the token names goes; another prefix is another question; other limits.
        self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=names[0]), timeout=60)
        self.assertEqual(names[1:3], [i.names[0] for i in self.ask(name_prefix="one-", page_token=token).images])
        self.assertFails(INVALID, lambda: self.ask(page_token=token), "page_token: ")
        self.assertFails(INVALID, lambda: self.ask(page_size=10001), "page_size: ")
        self.assertFails(INVALID, lambda: self.ask(name_prefix="x" * 10000), "name_prefix: ")
        self.ask(page_size=10000)
        listed = self.node.json("image", "ls")
        for name in names[1:]:
            self.addCleanup(self.node.images.Remove, nacre_pb2.RemoveImageRequest(image=name), timeout=60)
        self.assertEqual([i.id for i in self.ask().images], [i["id"] for i in listed])


class NothingHoldsThemUp(ListTest):
    def test_no_file_is_read(self):
        """The kernel counts what the daemon reads from files (sockets aside)."""
        self.cell("counted")
        self.ask(all=True)

        def counted():
            with open(f"/proc/{self.node.pid}/io", encoding="ascii") as f:
                io = dict(line.split(": ") for line in f.read().splitlines())
            return int(io["rchar"]), int(io["wchar"]), int(io["read_bytes"]), int(io["write_bytes"])

        def lists_read_nothing():
            """What came before may have its aftermath, which ends; what a list would read comes with each list."""
            before = counted()
            for _ in range(50):
                self.ask(all=True)
                self.node.images.List(nacre_pb2.ListImagesRequest())
            return before == counted()

        nacre_test.until(lists_read_nothing, what="fifty lists for which nothing is read")
        self.remove("counted")

    def test_a_locked_database_does_not(self):
        self.cell("locked")
        with sqlite3.connect(os.path.join(self.node.run, "run.db"), isolation_level=None) as run, \
                sqlite3.connect(os.path.join(self.node.root, "root.db"), isolation_level=None) as root:
            run.execute("BEGIN IMMEDIATE")
            root.execute("BEGIN IMMEDIATE")
            for _ in range(20):
                self.assertIn("locked", self.names(all=True))
                self.assertEqual(1, len(self.node.images.List(nacre_pb2.ListImagesRequest()).images))
            run.execute("ROLLBACK")
            root.execute("ROLLBACK")
        run.close()
        root.close()
        self.remove("locked")

    def test_a_keeper_that_answers_nobody_does_not(self):
        """A stop waits for a keeper that stands still: lists show it as stopping meanwhile."""
        self.node.runtime.RunPod(runtime_pb2.RunPodRequest(meta={"name": "still"}, containers=[self.container()]))
        keeper = self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="still")).workload.pid
        os.kill(keeper, signal.SIGSTOP)
        try:
            stop = self.node.workloads.Stop.future(nacre_pb2.StopRequest(target="still", grace_ms=60000))
            nacre_test.until(lambda: self.names(states=["stopping"]) == ["still"], what="the stop")
            done = threading.Event()
            threading.Thread(target=lambda: [self.ask(all=True) for _ in range(50)] and done.set(), daemon=True).start()
            self.assertTrue(done.wait(60))
            self.assertFalse(stop.done())
        finally:
            os.kill(keeper, signal.SIGCONT)
        self.remove("still")


def fill(node, count, command):
    """Records of executables that have ended, as an earlier life of the daemon would have left them."""
    with sqlite3.connect(os.path.join(node.run, "run.db")) as db:
        for n in range(count):
            row = {"id": f"{n:016x}", "path": f"e{n}", "kind": "executable", "instance": "", "state": 3,
                   "state_word": "exited", "network": "host", "auto_remove": 0, "reason": "", "created_at": 1000 + n}
            db.execute(f"INSERT INTO workload({','.join(row)}) VALUES({','.join('?' * len(row))})", list(row.values()))
            row = {"id": f"{n:015x}c", "workload": row["id"], "position": 0, "name": "main", "image": "", "image_name": "",
                   "command": command, "user": "", "stdin_open": 0, "state": 3, "state_word": "exited", "pid": 0,
                   "exit_code": 0, "signal": 0, "reason": "", "started_at": 1, "finished_at": 2}
            db.execute(f"INSERT INTO container({','.join(row)}) VALUES({','.join('?' * len(row))})", list(row.values()))
    db.close()


class ManyObjects(unittest.TestCase):
    def test_pages_of_thousands(self):
        """Whatever a client asks for, a page is one that clients of other makers take (4 MiB)."""
        count = 4000
        names = [f"e{n}" for n in range(count)]
        with nacre_test.Node() as node:
            node.stop()
            fill(node, count, "x" * 1000)
            node.start(60)

            def pages(**kwargs):
                token, found = "", []
                while True:
                    page = node.workloads.List(nacre_pb2.ListRequest(all=True, page_token=token, **kwargs))
                    self.assertLess(page.ByteSize(), 4 << 20)
                    found.append([w.name for w in page.workloads])
                    token = page.next_page_token
                    if not token:
                        return found

            default = pages()
            self.assertEqual([1000] * 4, [len(p) for p in default])
            self.assertEqual(names, [n for p in default for n in p])
            most = pages(page_size=10000)
            self.assertEqual(names, [n for p in most for n in p])
            self.assertGreater(len(most), 1, "4000 objects of 1 KiB each do not fit into 3 MiB")
            # Without what is large one page is enough.
            self.assertEqual([names], pages(page_size=10000, fields=["name"]))
            # The command line follows the pages.
            self.assertEqual(names, [w["name"] for w in node.json("ps", "-a")])
            node.process.kill()
            node.wait()


if __name__ == "__main__":
    unittest.main()
