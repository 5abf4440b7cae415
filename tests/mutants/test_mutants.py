# SPDX-License-Identifier: Apache-2.0
"""Patches that make walls weaker (tests/mutants/run, make mutants) rot where nobody looks: each still applies."""
import os
import subprocess
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Mutants(unittest.TestCase):
    def test_each_patch_applies_and_each_row_has_one(self):
        done = subprocess.run([os.path.join(HERE, "run"), "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=300, check=False)
        self.assertEqual(0, done.returncode, done.stdout)


if __name__ == "__main__":
    unittest.main()
