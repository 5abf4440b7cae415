# SPDX-License-Identifier: Apache-2.0
"""Debian's prometheus and promtool with the metrics of a node."""
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import images

STEPS = 2
PATIENCE = 60


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url):
    """The text, tried until somebody listens."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read().decode()
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def check(port):
    """promtool, which knows what a metric should be called too: what is wrong, or None."""
    page = fetch(f"http://127.0.0.1:{port}/metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False, timeout=PATIENCE)
    said = (done.stdout + done.stderr).strip()
    if done.returncode != 0 or said:
        return f"promtool: exit status {done.returncode}: {said}"
    return None if "nacre_workload_state" in page else "the page does not tell of the workload"


def scrape(port):
    """prometheus, which scrapes the node until a query has what it was told: what is wrong, or None."""
    own, answer = free_port(), "nothing"
    with tempfile.TemporaryDirectory(prefix="nacre-prometheus-") as scratch:
        config = os.path.join(scratch, "config.yml")
        with open(config, "w", encoding="utf-8") as f:
            f.write("global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n"
                    f"- {{ job_name: nacre, static_configs: [ {{ targets: [ '127.0.0.1:{port}' ] }} ] }}\n")
        with open(os.path.join(scratch, "log"), "wb") as log:
            server = subprocess.Popen(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={scratch}/data",
                                       f"--web.listen-address=127.0.0.1:{own}"], stdout=log, stderr=log)
        try:
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                answer = json.loads(fetch(f"http://127.0.0.1:{own}/api/v1/query?query=up*on(job)group_right()nacre_workload_state"))
                if any(r["metric"]["name"] == "scraped" and r["value"][1] == "1" for r in answer["data"]["result"]):
                    return None
                time.sleep(0.2)
            return f"prometheus: {answer}"
        finally:
            server.kill()
            server.wait()


def run(nacre_test):
    """(passed, failed, skipped)"""
    if not shutil.which("promtool") or not shutil.which("prometheus"):
        print("make conformance: prometheus is not installed; its scrapes are skipped")
        return 0, 0, STEPS
    port, failed = free_port(), 0
    with nacre_test.Node(f"metrics:\n  listen: 127.0.0.1:{port}\n") as node:
        node.cli("run", "-d", "--name", "scraped", images.ensure(node, "busybox"), "sleep", "1000")
        for step in (check, scrape):
            wrong = step(port)
            if wrong:
                failed += 1
                print(f"FAIL {wrong}", flush=True)
        node.clear()
    return STEPS - failed, failed, 0
