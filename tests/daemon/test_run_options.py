# SPDX-License-Identifier: Apache-2.0
"""Options of `run` that docker and podman have: variables and files from here, volumes of another pod, a read-only root with places to write."""
import os
import tempfile
import unittest

import steps


class Options(steps.StepsTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="nacre-run-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_here(self, *options, script, **env):
        return self.node.cli("run", "--rm", *options, "busybox", "sh", "-c", script, env={**os.environ, **env}).stdout.strip()

    def refused(self, *words):
        done = self.node.cli("run", "--rm", *words, "busybox", "true", check=False)
        self.assertEqual(125, done.returncode, done.stderr)
        return done.stderr

    def test_variables_from_here(self):
        self.assertEqual("x two y", self.run_here("--env-host", "-e", "B=two", script="echo $A $B $C", A="x", B="one", C="y"))
        self.assertEqual("http://p:1 - n", self.run_here("--http-proxy", script="echo $http_proxy ${A:--} $NO_PROXY", http_proxy="http://p:1", NO_PROXY="n", A="x"))
        self.node.cli("pod", "--name", "p", "--", "--env-host", "a=busybox", "sleep", "1000", "--", "b=busybox", "sleep", "1000",
                      env={**os.environ, "A": "x"})
        self.assertEqual("x", self.node.cli("exec", "-c", "a", "p", "sh", "-c", "echo $A").stdout.strip())
        self.assertEqual("", self.node.cli("exec", "-c", "b", "p", "sh", "-c", "echo $A").stdout.strip())

    def test_places_to_write(self):
        script = "for d in /run /tmp /var/tmp; do touch $d/x || exit 1; done; touch /x 2>/dev/null || echo wall; grep -c ' /tmp tmpfs' /proc/self/mounts"
        self.assertEqual("wall\n1", self.run_here("--read-only", "--read-only-tmpfs", script=script))
        self.assertEqual("1024", self.run_here("--read-only", "--read-only-tmpfs", "--tmpfs", "/tmp:size=1m", script="df -k /tmp | tail -1 | awk '{print $2}'"))
        self.assertIn("--read-only-tmpfs is for --read-only", self.refused("--read-only-tmpfs"))

    def test_time_zone(self):
        with open("/etc/localtime", "rb") as f:
            here = f.read()
        self.assertEqual(len(here), int(self.run_here("--tz", "local", script="wc -c < /etc/localtime")))
        for zone in ("../x", "/etc/passwd", "a/../../x", "..", ""):
            self.assertIn("--tz is a time zone such as Europe/Berlin, or local", self.refused("--tz", zone))
        self.assertIn("--tz: there is no /usr/share/zoneinfo/No/Where on the node", self.refused("--tz", "No/Where"))

    def test_a_file_for_the_pid(self):
        path = f"{self.folder}/pid"
        self.node.cli("run", "-d", "--name", "one", "--pidfile", path, "busybox", "sleep", "1000")
        with open(path, encoding="ascii") as f:
            self.assertEqual(self.inspect("one").containers[0].pid, int(f.read()))
        self.assertIn(path, self.refused("--pidfile", path))
        self.refused("--pidfile", f"{self.folder}/other", "--tz", "No/Where")
        self.assertEqual(["pid"], os.listdir(self.folder))

    def test_volumes_of_another_pod(self):
        self.node.cli("run", "-d", "--name", "one", "-v", "data:/data", "-v", f"{self.folder}:/here:ro", "--tmpfs", "/mem", "busybox", "sh", "-c",
                      "echo kept > /data/x; exec sleep 1000")
        self.node.cli("exec", "one", "sh", "-c", "until test -s /data/x; do :; done")
        script = "cat /data/x; test -d /here && echo here; test -d /mem || echo none; echo more 2>/dev/null >> /data/x || echo wall"
        self.assertEqual("kept\nhere\nnone", self.run_here("--volumes-from", "one", script=script))
        self.assertEqual("kept\nmore\nhere\nnone\nwall", self.run_here("--volumes-from", "one:ro", script=script))
        # Its own one counts more.
        self.assertEqual("", self.run_here("--volumes-from", "one", "--tmpfs", "/data", script="ls /data"))
        self.assertIn("--volumes-from", self.refused("--volumes-from", "nobody"))
        self.assertIn("--volumes-from is TARGET[:ro]", self.refused("--volumes-from", "one:x"))
        # Also of one that has ended, and the record of the new one has them by itself.
        self.node.cli("stop", "-t", "0", "one")
        self.node.cli("run", "-d", "--name", "two", "--volumes-from", "one", "busybox", "sleep", "1000")
        self.node.cli("rm", "one")
        self.node.cli("restart", "-t", "0", "two")
        self.assertEqual("kept\nmore", self.node.cli("exec", "two", "cat", "/data/x").stdout.strip())
        self.node.clear()
        self.node.cli("volume", "rm", "data")


if __name__ == "__main__":
    unittest.main()
