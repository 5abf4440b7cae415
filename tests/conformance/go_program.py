# SPDX-License-Identifier: Apache-2.0
"""Programs in Go of these tests: NAME.go, static, built in a module that needs one other."""
import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def build(go, to, name, module, what, place=HERE):
    """None, or why `what`, NAME.go of `place`, could not be built."""
    with tempfile.TemporaryDirectory(prefix=f"nacre-{name}-") as folder:
        shutil.copy(os.path.join(place, f"{name}.go"), os.path.join(folder, "main.go"))
        env = {**os.environ, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
        for words in (("mod", "init", name), ("get", module), ("build", "-o", to, ".")):
            print(f"go {' '.join(words)}", flush=True)
            done = subprocess.run([go, *words], cwd=folder, env=env, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return f"{done.stderr.strip()}\n{what} could not be built"
    return None
