# SPDX-License-Identifier: Apache-2.0
"""Signatures as cosign makes them with a key, by openssl, put beside an image of a FakeRegistry."""
import base64
import hashlib
import json
import os
import subprocess

from fakeregistry import CONFIG, MANIFEST

LAYER = "application/vnd.dev.cosign.simplesigning.v1+json"
SIGNATURE = "dev.cosignproject.cosign/signature"


class Keys:
    """Pairs of keys in a folder: NAME and NAME.pub."""

    def __init__(self, folder, *names):
        self.folder = folder
        for name in names:
            self.make(name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def public(self, name):
        return self.path(name + ".pub")

    def make(self, name):
        subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", self.path(name)], check=True)
        subprocess.run(["openssl", "ec", "-in", self.path(name), "-pubout", "-out", self.public(name)], check=True, capture_output=True)

    def fingerprint(self, name):
        der = subprocess.run(["openssl", "pkey", "-pubin", "-in", self.public(name), "-outform", "DER"], check=True, capture_output=True).stdout
        return "sha256:" + hashlib.sha256(der).hexdigest()

    def proof(self, name, payload):
        return subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.path(name)], input=payload, check=True, capture_output=True).stdout


def tag(root):
    return root.replace(":", "-") + ".sig"


def payload_of(name, root, optional=None):
    return json.dumps({"critical": {"identity": {"docker-reference": name}, "image": {"docker-manifest-digest": root},
                                    "type": "cosign container image signature"}, "optional": optional}).encode()


def put(registry, repository, root, payload, proof):
    """One more signature of root."""
    key = (repository, tag(root))
    before = json.loads(registry.manifests[key][1])["layers"] if key in registry.manifests else []
    registry.put_manifest(repository, {
        "schemaVersion": 2, "mediaType": MANIFEST, "config": {"mediaType": CONFIG, "digest": registry.put_blob(b"{}"), "size": 2},
        "layers": before + [{"mediaType": LAYER, "size": len(payload), "digest": registry.put_blob(payload),
                             "annotations": {SIGNATURE: base64.b64encode(proof).decode()}}]}, tag=tag(root))


def sign(registry, repository, root, keys, key, name=None, of=None, spoil=b"", optional=None):
    payload = payload_of(name or f"{registry.host}/{repository}", of or root, optional)
    put(registry, repository, root, payload + spoil, keys.proof(key, payload))
