# SPDX-License-Identifier: Apache-2.0
"""What of other people's programs runs in the guest of `make guest`, which has more than most hosts (tests/lib/guest.py)."""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ("qemu-system-x86_64", "mke2fs", "mkswap")


def run(build, what, n, *words, programs=()):
    """(passed, failed, skipped) of guest.py with these words; `n` are skipped where it cannot run."""
    lacks = [p for p in (*PROGRAMS, *programs) if not shutil.which(p, path=os.environ["PATH"] + ":/sbin:/usr/sbin")]
    if lacks or not os.path.exists(os.path.join(build, "tests", "guest", "init")):
        print(f"{what} in the guest: skipped, for want of {', '.join(lacks) or 'a static build'} (tools/install conformance)", flush=True)
        return 0, 0, n
    if subprocess.run([os.path.join(ROOT, "tools", "guest-kernel"), build], check=False).returncode != 0:
        print(f"FAIL {what} in the guest: no kernel", flush=True)
        return 0, 1, 0
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tests", "lib", "guest.py"), *words, build],
                          stdout=subprocess.PIPE, text=True, check=False)
    passed = len(re.findall("^ok ", done.stdout, re.M))
    failed = len(re.findall("^not ok ", done.stdout, re.M)) or int(done.returncode != 0)
    if failed:
        print(done.stdout, flush=True)
    print(f"{'not ok' if failed else 'ok'} {what} in the guest, with cgroup v2 alone", flush=True)
    return passed, failed, 0
