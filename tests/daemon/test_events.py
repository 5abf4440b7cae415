#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Events and Watch: every subscriber in order, from where it left off, at no cost where it does not read."""
import threading
import unittest

import grpc

import nacre_test
import wire
from nacre_test import nacre_pb2, runtime_pb2

Code = grpc.StatusCode
KEPT = 4096


class EventTest(nacre_test.NodeTest):
    def run_one(self, name, command="true", keep=False):
        return self.node.runtime.RunExecutable(runtime_pb2.RunExecutableRequest(
            meta={"name": name}, executable={"command": command}, keep=keep))

    def cell(self, name, *command, instance=""):
        return self.node.runtime.RunCell(runtime_pb2.RunCellRequest(meta={"name": name}, instance=instance, containers=[
            runtime_pb2.Container(image=self.busybox(), command=command or ["sleep", "100000"])]))

    def remove(self, target):
        self.node.workloads.Remove(nacre_pb2.RemoveRequest(target=target, force=True))

    def events(self, **kwargs):
        return self.node.events.Events(nacre_pb2.EventsRequest(**kwargs))

    def watch(self, **kwargs):
        return self.node.events.Watch(nacre_pb2.WatchRequest(**kwargs))

    def token(self):
        """That of this moment."""
        for m in self.watch(below="nobody"):
            self.assertTrue(m.synced)
            return m.resume_token

    def until_removed(self, stream, name):
        seen = []
        for event in stream:
            seen.append(event)
            if (event.object, event.name, event.state) == ("workload", name, "removed"):
                stream.cancel()
                return seen
        raise AssertionError("the stream has ended")


class Resume(EventTest):
    def test_nothing_is_missed_behind_a_token(self):
        token = self.token()
        for n in range(5):
            self.run_one(f"e{n}")
        whole = self.until_removed(self.events(resume_token=token), "e4")
        numbers = [e.sequence for e in whole]
        self.assertEqual(list(range(numbers[0], numbers[0] + len(numbers))), numbers)
        self.assertEqual([f"e{n}" for n in range(5)],
                         [e.name for e in whole if (e.object, e.state) == ("workload", "starting")])
        # From any of them on, the rest is the same.
        for at in (0, len(whole) // 2, len(whole) - 2):
            rest = self.until_removed(self.events(resume_token=whole[at].resume_token), "e4")
            self.assertEqual(whole[at + 1:], rest)

    def test_what_is_no_token(self):
        token = self.token()
        for bad in ("x", token + "x", "-1", token.split("-")[0], token.upper() + "Z"):
            self.assertTrue(self.assertFails(Code.INVALID_ARGUMENT, lambda: next(self.events(resume_token=bad)))
                            .startswith("resume_token: "))
        life, number = token.split("-")
        for stale in (f"{life}-{int(number) + 1000}", f"{'0' * 16}-{number}"):
            self.assertFails(Code.OUT_OF_RANGE, lambda: next(self.events(resume_token=stale)), "resume_token", "watch anew")

    def test_a_token_of_another_life(self):
        with nacre_test.Node() as node:
            first = next(iter(node.events.Watch(nacre_pb2.WatchRequest())))
            node.restart()
            self.assertFails(Code.OUT_OF_RANGE, lambda: next(node.events.Events(
                nacre_pb2.EventsRequest(resume_token=first.resume_token))), "watch anew")

    def test_objects_and_target(self):
        token = self.token()
        self.node.runtime.Spawn(runtime_pb2.SpawnRequest(meta={"name": "i"}))
        self.cell("c", "true", instance="i")
        self.node.workloads.Wait(nacre_pb2.WaitRequest(target="i/c"))
        self.remove("i/c")
        self.remove("i")
        self.run_one("last")
        whole = self.until_removed(self.events(resume_token=token), "last")
        for objects in (["instance"], ["container", "image"], ["workload", "instance"]):
            stream = self.events(resume_token=token, objects=objects)
            wanted = [e for e in whole if e.object in objects]
            self.assertEqual(wanted, [next(stream) for _ in wanted])
            stream.cancel()
        self.assertEqual([("i", "spawning"), ("i", "ready"), ("i", "stopping"), ("i", "removed")],
                         [(e.name, e.state) for e in whole if e.object == "instance"])
        self.assertFails(Code.INVALID_ARGUMENT, lambda: next(self.events(objects=["pod"])), "objects[0]")
        self.assertFails(Code.NOT_FOUND, lambda: next(self.events(target="nobody")), "target")

    def test_an_image_is_removed_before_it_is_told(self):
        name = self.image("probe")
        self.cell("user")
        self.node.runtime.RunCell(runtime_pb2.RunCellRequest(meta={"name": "holder"}, containers=[
            runtime_pb2.Container(image=name, args=["sleep", "100000"])]))
        token = self.token()
        with self.assertRaises(grpc.RpcError):
            self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=name))
        self.remove("holder")
        stream = self.events(resume_token=token, objects=["image"])
        told = []
        reader = threading.Thread(target=lambda: told.append((next(stream), self.listed())), daemon=True)
        reader.start()
        ids = {i.id for i in self.node.images.List(nacre_pb2.ListImagesRequest()).images if any("probe" in n for n in i.names)}
        self.node.images.Remove(nacre_pb2.RemoveImageRequest(image=name))
        reader.join(60 * nacre_test.SLOWNESS)
        # The attempt that failed has told nothing.
        event, listed = told[0]
        self.assertEqual(("removed", name), (event.state, event.name))
        self.assertEqual(ids, {event.id})
        self.assertNotIn(event.id, listed)
        self.remove("user")
        stream.cancel()

    def listed(self):
        return {i.id for i in self.node.images.List(nacre_pb2.ListImagesRequest()).images}


class Watch(EventTest):
    def snapshot(self, stream):
        found = []
        for m in stream:
            if m.synced:
                return found
            self.assertTrue(m.HasField("workload"))
            self.assertEqual("", m.resume_token)
            found.append(m.workload)
        raise AssertionError("the stream has ended")

    def until(self, stream, what):
        seen = []
        for m in stream:
            seen.append(m)
            if what(m):
                return seen
        raise AssertionError("the stream has ended")

    def test_snapshot_then_changes(self):
        self.cell("there")
        self.run_one("ended", keep=True)
        stream = self.watch()
        self.assertEqual(list(self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads), self.snapshot(stream))
        new = self.cell("new", "sh", "-c", "exit 3")
        self.node.workloads.Wait(nacre_pb2.WaitRequest(target="new"))
        self.remove("new")
        seen = self.until(stream, lambda m: m.removed == new.id)
        states = [m.workload.state for m in seen if m.workload.id == new.id]
        order = ["starting", "running", "exited", "removing"]
        self.assertEqual(sorted(states, key=order.index), states)
        self.assertEqual({"starting", "exited", "removing"}, set(states) - {"running"})
        self.assertEqual(3, seen[-2].workload.exit_code)
        # What a change was told with leads to the same events.
        rest = self.until_removed(self.events(resume_token=seen[0].resume_token), "new")
        self.assertNotIn("", {m.resume_token for m in seen})
        self.assertEqual([m.resume_token for m in seen[1:]], [e.resume_token for e in rest])
        stream.cancel()
        self.remove("there")
        self.remove("ended")

    def test_below_and_kinds(self):
        self.node.runtime.Spawn(runtime_pb2.SpawnRequest(meta={"name": "w"}))
        self.cell("in", instance="w")
        self.cell("out")
        below, instances = self.watch(below="w"), self.watch(kinds=["instance"])
        self.assertEqual(["w/in"], [w.name for w in self.snapshot(below)])
        self.assertEqual(["w"], [w.name for w in self.snapshot(instances)])
        self.remove("out")
        inside = self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="w/in")).workload.id
        around = self.node.workloads.Inspect(nacre_pb2.InspectRequest(target="w")).workload.id
        self.remove("w")
        self.assertEqual({inside, ""}, {m.workload.id or m.removed and "" for m in
                                        self.until(below, lambda m: m.removed == inside)})
        seen = self.until(instances, lambda m: m.removed == around)
        self.assertEqual({around}, {m.workload.id or m.removed for m in seen})
        self.assertFails(Code.INVALID_ARGUMENT, lambda: next(self.watch(kinds=["x"])), "kinds[0]")
        self.assertFails(Code.INVALID_ARGUMENT, lambda: next(self.watch(below="/")), "below")
        below.cancel()
        instances.cancel()

    def test_a_copy_is_the_list(self):
        """What a client holds that only follows changes, at the end of a lot of them, is what List says."""
        stream = self.watch()
        copy = {w.id: w for w in self.snapshot(stream)}
        made = [self.run_one(f"k{n}", keep=True).id for n in range(6)]
        self.cell("k-cell", "sh", "-c", "exit 1")
        self.node.workloads.Wait(nacre_pb2.WaitRequest(target="k-cell"))
        for target in made[::2]:
            self.remove(target)
        end = self.run_one("end").id
        for m in self.until(stream, lambda m: m.removed == end):
            if m.removed:
                copy.pop(m.removed, None)
            else:
                copy[m.workload.id] = m.workload
        wanted = {w.id: w for w in self.node.workloads.List(nacre_pb2.ListRequest(all=True)).workloads}
        self.assertEqual(wanted, copy)
        stream.cancel()
        for target in made[1::2] + ["k-cell"]:
            self.remove(target)


class Many(EventTest):
    def test_a_thousand_watchers_in_order(self):
        """Twenty connections of fifty streams each; every one sees the same changes in the same order."""
        count = 1000
        channels = [grpc.insecure_channel("unix:" + self.node.socket, options=[("grpc.use_local_subchannel_pool", 1),
                                                                              ("nacre.test", n)]) for n in range(20)]
        seen = [[] for _ in range(count)]
        streams = [channels[n % len(channels)].unary_stream("/nacre.v1.EventService/Watch")(b"") for n in range(count)]
        last = []

        def follow(stream, to):
            for message in stream:
                if wire.get(message, 3):
                    continue
                to.append(message)
                if last and wire.get(message, 2) == last:
                    return

        before = memory(self.node.pid)
        for stream in streams:
            self.assertTrue(wire.get(next(stream), 3), "synced")
        each = (memory(self.node.pid) - before) / count
        print(f"# {count} watchers take {each:.0f} bytes each", flush=True)
        self.assertLess(each, 65536 * nacre_test.SLOWNESS)
        for n in range(8):
            self.run_one(f"t{n}")
        end = self.run_one("t-last")
        last.append(end.id.encode())
        threads = [threading.Thread(target=follow, args=(s, to), daemon=True) for s, to in zip(streams, seen)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60 * nacre_test.SLOWNESS)
        numbers = [[int(wire.get(m, 4)[0].split(b"-")[1]) for m in to] for to in seen]
        self.assertGreater(len(numbers[0]), 9 * 3)
        self.assertEqual(sorted(set(numbers[0])), numbers[0])
        for n, to in enumerate(numbers):
            self.assertEqual(numbers[0], to, f"watcher {n}")
        for stream in streams:
            stream.cancel()
        for channel in channels:
            channel.close()

    def test_one_that_does_not_read_is_let_go(self):
        """It holds nothing up, costs what its window holds, and is told that it was too slow."""
        # Without probing it offers a window of 64 KiB a stream, however fast the other side is.
        channel = grpc.insecure_channel("unix:" + self.node.socket, options=[("grpc.http2.bdp_probe", 0)])
        slow = [channel.unary_stream(f"/nacre.v1.EventService/{name}")(b"") for name in ("Events", "Watch")]
        token = self.token()
        begun = self.token_number(token)
        while self.token_number(self.token()) - begun < KEPT + 2000:
            with_threads(lambda: self.run_one(""), 8, 16)
        self.assertFails(Code.OUT_OF_RANGE, lambda: next(self.events(resume_token=token)), "too old", "watch anew")
        for stream in slow:
            with self.assertRaises(grpc.RpcError) as caught:
                for _ in stream:
                    pass
            self.assertEqual(Code.RESOURCE_EXHAUSTED, caught.exception.code(), caught.exception.details())
            self.assertIn("watch anew", caught.exception.details())
        channel.close()

    @staticmethod
    def token_number(token):
        return int(token.split("-")[1])


def memory(pid):
    """Bytes of a process that are its own."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return sum(int(line.split()[1]) * 1024 for line in f if line.startswith(("Private_Dirty:", "Private_Clean:")))


def with_threads(call, threads, each):
    failed = []

    def work():
        try:
            for _ in range(each):
                call()
        except grpc.RpcError as e:
            failed.append(e)

    running = [threading.Thread(target=work) for _ in range(threads)]
    for t in running:
        t.start()
    for t in running:
        t.join()
    if failed:
        raise failed[0]


if __name__ == "__main__":
    unittest.main()
