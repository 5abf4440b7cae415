# SPDX-License-Identifier: Apache-2.0
"""`nacre image pull` from Debian's docker-registry: plain, with TLS, passwords and tokens; images by skopeo, umoci and buildah,
of all the forms that their layers have."""
import base64
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import cosign
import cover
import fakenet
import fakeregistry
import images
import nacre_test
import realregistry
from nacre_test import nacre_pb2

MKIMAGE = images.module()
NEEDED = ("docker-registry", "skopeo", "umoci", "openssl")
SWEEP = bool(os.environ.get("NACRE_SWEEP"))
SPARSE = 16 << 30
# Whatever the locale of the tester is.
UMLAUT = os.fsdecode(b"\xc3\xbc")
EMPTY = "application/vnd.oci.empty.v1+json"


def run(*args, **more):
    more.setdefault("env", {**os.environ, "HOME": tempfile.gettempdir()})
    done = subprocess.run(args, capture_output=True, check=False, **more)
    if done.returncode:
        raise RuntimeError(f"{args}: {done.stderr.decode(errors='replace')}")
    return done.stdout


class Uploads:
    """What cosign.py puts somewhere goes to a registry, by skopeo: the signature is an image of one layer to it."""

    def __init__(self, test, registry):
        self.host, self.manifests, self.test, self.blobs, self.registry = registry.host, {}, test, {}, registry

    def put_blob(self, data):
        self.blobs[fakeregistry.digest(data)] = data
        return fakeregistry.digest(data)

    def put_manifest(self, repository, document, tag):
        with tempfile.TemporaryDirectory(dir=self.test.folder) as folder:
            for name, data in self.blobs.items():
                with open(f"{folder}/{name[7:]}", "wb") as f:
                    f.write(data)
            with open(folder + "/manifest.json", "w", encoding="utf-8") as f:
                json.dump(document, f)
            with open(folder + "/version", "w", encoding="ascii") as f:
                f.write("Directory Transport Version: 1.1\n")
            self.registry.copy("dir:" + folder, f"{repository}:{tag}", "--preserve-digests")


@unittest.skipUnless(all(map(shutil.which, NEEDED)), f"one of {', '.join(NEEDED)} is not installed")
class Real(nacre_test.NodeTest):
    IMAGES = ()

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="real-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        # Where skopeo keeps what it has seen of blobs, which it would put in the place of those that it is told to make.
        cover.cover("/var/lib", mode=b"mode=755")
        cls.addClassCleanup(subprocess.run, ["umount", "-l", "/var/lib"], check=True)
        cls.ca = fakenet.Authority(cls.folder)
        cls.pair = cls.ca.make("usual", names="IP:127.0.0.1")
        cls.registries = {
            "plain": realregistry.RealRegistry(),
            "tls, basic": realregistry.RealRegistry(tls=cls.pair, auth="basic"),
            "token": realregistry.RealRegistry(auth="token", pair=cls.ca.make("signs", own=True)),
        }
        for r in cls.registries.values():
            cls.enterClassContext(r)
            if r.tls:
                os.makedirs(f"{cls.folder}/certs.d/{r.host}")
                shutil.copy(cls.ca.cert, f"{cls.folder}/certs.d/{r.host}/ca.crt")
        cls.CONFIG = f"images:\n  registry_dirs: {cls.folder}/certs.d\n"
        super().setUpClass()
        cls.busybox_tar = images.path("busybox")

    @classmethod
    def tearDownClass(cls):
        cls.node.clear()
        cls.node.images.Prune(nacre_pb2.PruneImagesRequest(all=True))
        found = cls.node.info.Check(nacre_pb2.CheckRequest()).findings
        super().tearDownClass()
        cls().assertEqual([], list(found))

    def runTest(self):
        """For its assertions alone."""

    def setUp(self):
        super().setUp()
        self.registry = self.registries["plain"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def as_user(self, *command, check=True):
        """The client with what the registry takes as credentials."""
        registry = self.registry
        login = {"auths": {registry.host: {"auth": base64.b64encode(
            f"{realregistry.USER}:{realregistry.PASSWORD}".encode()).decode()}} if registry.auth else {}}
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/config.json", "w", encoding="utf-8") as f:
                json.dump(login, f)
            return self.node.cli(*command, check=check, seconds=120, env={"DOCKER_CONFIG": folder})

    def pull(self, name, check=True):
        return self.as_user("image", "pull", f"{self.registry.host}/{name}", check=check)

    def says(self, name, *command):
        return self.node.cli("run", "--rm", f"{self.registry.host}/{name}", *command).stdout

    def remove(self, name):
        self.node.clear()
        self.node.cli("image", "rm", f"{self.registry.host}/{name}")

    # ---- who asks ----

    def test_plain_tls_passwords_tokens(self):
        for kind, registry in self.registries.items():
            with self.subTest(kind):
                self.registry = registry
                registry.copy("oci-archive:" + self.busybox_tar, "a/b:1")
                self.pull("a/b:1")
                self.assertEqual(self.says("a/b:1", "echo", kind), kind + "\n")
                self.remove("a/b:1")
                if registry.auth:
                    done = self.node.cli("image", "pull", f"{registry.host}/a/b:1", check=False, env={"DOCKER_CONFIG": self.folder})
                    self.assertIn("Unauthenticated: ", done.stderr)
                done = self.pull("a/none:1", check=False)
                self.assertEqual(done.returncode, 125)
                self.assertRegex(done.stderr, "manifest unknown|not known|requested access|name unknown")
        self.assertTrue(any("scope=repository%3Aa%2Fb%3Apull" in a for a in self.registries["token"].tokens.asked))

    def test_tls_that_nobody_has_told_of(self):
        with realregistry.RealRegistry(tls=self.pair) as registry:
            done = self.node.cli("image", "pull", f"{registry.host}/a/b:1", check=False)
        self.assertEqual(125, done.returncode)
        self.assertRegex(done.stderr, f"registry {registry.host} .*which came without TLS: hosts.toml or a certificate below certs.d")

    def test_http_2_where_there_is_tls(self):
        """By the registry's own log of who asked for what."""
        for kind, protocol in (("plain", "HTTP/1.1"), ("tls, basic", "HTTP/2.0")):
            with self.subTest(kind):
                self.registry = self.registries[kind]
                self.put("h:1", [MKIMAGE.tar_of({str(n): kind.encode()}) for n in range(5)])
                self.pull("h:1")
                self.as_user("image", "push", f"{self.registry.host}/h:1", f"{self.registry.host}/pushed:1")
                # A line for each request, as web servers write it.
                asked = [l.split('"')[1].split() for l in self.registry.said().splitlines() if l.startswith("127.") and "nacre/" in l]
                for name, method, least in (("h", "GET", 6), ("pushed", "PUT", 1)):
                    spoken = [a[2] for a in asked if a[0] == method and a[1].startswith(f"/v2/{name}/")]
                    self.assertGreaterEqual(len(spoken), least, asked)
                    self.assertEqual({protocol}, set(spoken))
                self.remove("h:1")

    def test_copies_among_them(self):
        """An image for two machines, from each to each and within one: the same bytes there, as skopeo sees them."""
        plain = self.registries["plain"]
        tars = [images.make(self.path(f"copy-{a}.tar"), "--busybox", "--cmd", "sh", "--arch", a) for a in ("amd64", "arm64")]
        for a, tar in zip(("amd64", "arm64"), tars):
            plain.copy("oci-archive:" + tar, f"copies/from:{a}")
        entries = []
        for a in ("amd64", "arm64"):
            data = self.raw(plain, f"copies/from:{a}")
            entries.append({"mediaType": json.loads(data)["mediaType"], "digest": fakeregistry.digest(data), "size": len(data),
                            "platform": {"os": "linux", "architecture": a}})
        index = json.dumps({"schemaVersion": 2, "mediaType": fakeregistry.INDEX, "manifests": entries}).encode()
        run("curl", "-sf", "-X", "PUT", "-H", "Content-Type: " + fakeregistry.INDEX, "--data-binary", "@-",
            f"http://{plain.host}/v2/copies/from/manifests/all", input=index)
        with tempfile.TemporaryDirectory() as folder:
            login = base64.b64encode(f"{realregistry.USER}:{realregistry.PASSWORD}".encode()).decode()
            with open(folder + "/config.json", "w", encoding="utf-8") as f:
                json.dump({"auths": {r.host: {"auth": login} for r in self.registries.values() if r.auth}}, f)
            last = plain.host + "/copies/from:all"
            for registry, name in ((self.registries["tls, basic"], "copies/a:1"), (self.registries["token"], "copies/b:1"),
                                   (self.registries["token"], "copies/c:1"), (plain, "copies/d:1")):
                with self.subTest(name):
                    done = self.node.cli("image", "copy", last, f"{registry.host}/{name}", seconds=120, env={"DOCKER_CONFIG": folder})
                    self.assertEqual(fakeregistry.digest(index), done.stdout.strip())
                    if name == "copies/c:1":
                        self.assertNotIn(" MB copied", done.stderr)
                    self.assertEqual(index, self.raw(registry, name))
                    run("skopeo", "--insecure-policy", "copy", "-q", "--all", "--src-tls-verify=false",
                        *(("--src-creds", f"{realregistry.USER}:{realregistry.PASSWORD}") if registry.auth else ()),
                        f"docker://{registry.host}/{name}", "dir:" + tempfile.mkdtemp(dir=self.folder))
                    last = f"{registry.host}/{name}"

    def test_who_signed(self):
        """A signature that lies in each of them, and whoever may not see it."""
        keys = cosign.Keys(self.folder, "ours", "theirs")
        for kind, registry in self.registries.items():
            with self.subTest(kind):
                self.registry, name = registry, registry.host + "/signed:1"
                registry.copy("oci-archive:" + self.busybox_tar, "signed:1")
                root = fakeregistry.digest(self.raw(registry, "signed:1"))

                def verify(key, check=True, name=name):
                    return self.as_user("-o", "json", "image", "verify", "--key", keys.public(key), name, check=check)
                self.assertEqual(1, verify("ours", check=False).returncode)
                cosign.sign(Uploads(self, registry), "signed", root, keys, "ours")
                said = json.loads(verify("ours").stdout)["verdict"]
                self.assertEqual(["signed", root, [registry.host + "/signed"]],
                                 [said["verdict"], said["digest"], [s["identity"] for s in said["signers"]]])
                done = verify("theirs", check=False)
                self.assertEqual(1, done.returncode)
                self.assertIn("none of the keys", done.stderr)
                if registry.auth:
                    done = self.node.cli("image", "verify", "--key", keys.public("ours"), name, check=False, env={"DOCKER_CONFIG": self.folder})
                    self.assertEqual(125, done.returncode)
                    self.assertIn("Unauthenticated: ", done.stderr)

    def raw(self, registry, name):
        return run("skopeo", "--insecure-policy", "inspect", "--raw", "--tls-verify=false",
                   *(("--creds", f"{realregistry.USER}:{realregistry.PASSWORD}") if registry.auth else ()), f"docker://{registry.host}/{name}")

    # ---- forms ----

    def test_forms_that_skopeo_makes(self):
        for n, options in enumerate((("--format", "v2s2"), ("--format", "oci"), ("--format", "oci", "--dest-compress-format", "zstd"))):
            with self.subTest(options):
                with open(self.path(f"f{n}"), "wb") as f:
                    f.write(b"%d\n" % n * 100000)
                # What is not compressed there is compressed on the way.
                tar = images.make(self.path(f"f{n}.tar"), "--busybox", "--cmd", "sh", "--file", self.path(f"f{n}") + ":/noise", "--compress", "none")
                self.registry.copy("oci-archive:" + tar, f"forms:{n}", *options)
                self.pull(f"forms:{n}")
                kinds = {l["mediaType"] for l in self.manifest(f"forms:{n}")["layers"]}
                self.assertEqual({("vnd.docker" in k, "zstd" in k) for k in kinds}, {("v2s2" in options, "--dest-compress-format" in options)})
                self.assertEqual(self.says(f"forms:{n}", "echo", "x"), "x\n")
                self.remove(f"forms:{n}")

    def test_chunked(self):
        """zstd:chunked by this skopeo, unless it is told otherwise, wants a window of 32 MiB. It loses what a tar has behind its end
        mark, as Python's has, and leaves the diff id as it was: such a layer is refused, so this tar ends there."""
        mkimage = images.module()
        padded = mkimage.build_tar(mkimage.busybox_entries())
        end = -(-len(padded.rstrip(b"\0")) // 512) * 512 + 1024
        layer = mkimage.Layer(padded[:end], "none")
        tar = self.path("window.tar")
        mkimage.write_files(tar, mkimage.oci_files([layer], mkimage.make_config([layer], {"Cmd": ["sh"]}), "window"))
        self.registry.copy("oci-archive:" + tar, "window:1", "--format", "oci", "--dest-compress-format", "zstd:chunked")
        self.pull("window:1")
        self.assertEqual(self.says("window:1", "echo", "x"), "x\n")
        self.remove("window:1")

    def manifest(self, name):
        return json.loads(run("skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{self.registry.host}/{name}"))

    def test_not_compressed(self):
        tar = images.make(self.path("plain.tar"), "--busybox", "--cmd", "sh", "--compress", "none")
        run("skopeo", "--insecure-policy", "copy", "-q", "oci-archive:" + tar, "dir:" + self.path("plain"), "--dest-decompress")
        with open(self.path("plain/manifest.json"), encoding="utf-8") as f:
            self.assertTrue(all(l["mediaType"].endswith(".tar") for l in json.load(f)["layers"]))
        self.registry.copy("dir:" + self.path("plain"), "plain:1", "--preserve-digests")
        self.assertTrue(all(l["mediaType"].endswith(".tar") for l in self.manifest("plain:1")["layers"]))
        self.pull("plain:1")
        self.assertEqual(self.says("plain:1", "echo", "x"), "x\n")
        self.remove("plain:1")

    def stand_in(self, archive, repository, tag):
        """A registry that has the image of an archive of ours, at once."""
        registry = self.enterContext(fakeregistry.FakeRegistry())
        with tarfile.open(archive) as t:
            files = {m.name: t.extractfile(m).read() for m in t.getmembers() if m.isfile()}
        registry.blobs = {"sha256:" + os.path.basename(n): d for n, d in files.items() if "/sha256/" in n}
        entry, = json.loads(files["index.json"])["manifests"]
        registry.put_manifest(repository, registry.blobs[entry["digest"]], entry["mediaType"], tag)
        return registry

    def test_two_hundred_layers(self):
        folder = self.path("many")
        os.mkdir(folder)
        files = []
        for n in range(200):
            with open(f"{folder}/{n}", "w", encoding="ascii") as f:
                f.write(str(n))
            files += ["--file", f"{folder}/{n}:/n/{n}"]
        tar = images.make(self.path("many.tar"), "--busybox", "--cmd", "sh", *files, "--layers", "200")
        if SWEEP:
            self.registry.copy("oci-archive:" + tar, "many:1")
        else:
            # skopeo and the registry take a minute for it.
            self.registry = self.stand_in(tar, "many", "1")
        self.pull("many:1")
        self.assertEqual(self.says("many:1", "sh", "-c", "ls /n | wc -l; cat /n/199"), "200\n199")
        self.remove("many:1")

    def gnu_tar(self, folder, *options):
        return run("tar", "-C", folder, "--format=pax", "--numeric-owner", "-c", *options, ".")

    def put(self, name, tars):
        """An image of busybox and these tars, through an archive of ours and skopeo."""
        layers = [MKIMAGE.Layer(MKIMAGE.build_tar(MKIMAGE.busybox_entries()))] + [MKIMAGE.Layer(t) for t in tars]
        path = self.path(name.replace(":", "-") + ".tar")
        MKIMAGE.write_image(path, layers, {}, "docker.io/x/" + name, "oci")
        self.registry.copy("oci-archive:" + path, name)

    def test_a_sparse_file_of_16_gigabytes(self):
        folder = self.path("sparse")
        os.mkdir(folder)
        with open(folder + "/sparse", "wb") as f:
            f.write(b"begin")
            f.truncate(SPARSE)
            f.seek(SPARSE - 3)
            f.write(b"end")
        self.put("sparse:1", [self.gnu_tar(folder, "--sparse")])
        self.pull("sparse:1")
        said = self.says("sparse:1", "sh", "-c", "stat -c '%s %b' /sparse; head -c 5 /sparse; tail -c 3 /sparse").split()
        self.assertEqual((said[0], said[2]), (str(SPARSE), "beginend"))
        self.assertLess(int(said[1]) * 512, 1 << 20)
        self.remove("sparse:1")

    def test_what_files_have(self):
        """Attributes, ACLs, capabilities, devices, links, names and times that only PAX can write."""
        folder = self.path("has")
        os.mkdir(folder)
        for name in ("user", "cap", "z" * 120, UMLAUT):
            with open(f"{folder}/{name}", "wb") as f:
                f.write(b"x")
        # A header, then one entry each for owner, user 7, group, mask and others.
        acl = b"\2\0\0\0" + b"".join(t.to_bytes(2, "little") + p.to_bytes(2, "little") + i.to_bytes(4, "little")
                                     for t, p, i in ((1, 6, 2**32 - 1), (2, 4, 7), (4, 4, 2**32 - 1), (16, 4, 2**32 - 1), (32, 4, 2**32 - 1)))
        attributes = {"user": ("user.note", b"hello"), "cap": ("security.capability", b"\1\0\0\2\0\4\0\0" + bytes(12))}
        for name, (key, value) in attributes.items():
            os.setxattr(f"{folder}/{name}", key, value)
        os.link(folder + "/user", folder + "/hard")
        os.symlink("user", folder + "/soft")
        os.mkfifo(folder + "/fifo")
        os.mknod(folder + "/null", 0o20666, os.makedev(1, 3))
        os.chown(f"{folder}/{UMLAUT}", 3000000, 3000001)
        os.utime(f"{folder}/{UMLAUT}", ns=(1234567890_123456789, 1234567890_123456789))
        # As star writes them; GNU tar leaves out the number of a user whom it knows by name.
        info, listed = tarfile.TarInfo("acl"), io.BytesIO()
        info.pax_headers = {"SCHILY.acl.access": "user::rw-,user:lp:r--:7,group::r--,mask::r--,other::r--"}
        with tarfile.open(fileobj=listed, mode="w", format=tarfile.PAX_FORMAT) as t:
            t.addfile(info)
        self.put("has:1", [self.gnu_tar(folder, "--xattrs", "--xattrs-include=*"), listed.getvalue()])
        self.pull("has:1")
        said = self.says("has:1", "stat", "-c", "%n %F %u:%g %h %Y", "/hard", "/soft", "/fifo", "/" + "z" * 120)
        for words in ("/hard regular file 0:0 2", "/soft symbolic link", "/fifo fifo"):
            self.assertIn(words, said)
        self.assertEqual(self.says("has:1", "stat", "-c", "%u:%g %Y", "/" + UMLAUT), "3000000:3000001 1234567890\n")
        found = [f"{self.node.root}/layers/{l}" for l in os.listdir(self.node.root + "/layers")]
        top, = [f for f in found if os.path.exists(f"{f}/{UMLAUT}")]
        self.assertEqual(os.stat(f"{top}/{UMLAUT}").st_mtime_ns, 1234567890_123456789)
        for name, (key, value) in attributes.items():
            self.assertEqual(os.getxattr(f"{top}/{name}", key), value, name)
        listed, = [f + "/acl" for f in found if os.path.exists(f + "/acl")]
        self.assertEqual(os.getxattr(listed, "system.posix_acl_access"), acl)
        # A device of an image is none (tests/image/test_hostile.py).
        self.assertFalse(os.path.exists(top + "/null"))
        self.remove("has:1")

    # ---- several, and none ----

    def test_platforms_and_artifacts(self):
        folder = self.path("index")
        entries = []
        for architecture in ("arm64", "amd64"):
            tar = images.make(self.path(architecture + ".tar"), "--busybox", "--cmd", "sh", "--label", f"is={architecture}", "--arch", architecture)
            self.registry.copy("oci-archive:" + tar, f"index:{architecture}")
            data = run("skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{self.registry.host}/index:{architecture}")
            entries.append({"mediaType": MKIMAGE.MANIFEST, "digest": MKIMAGE.digest(data), "size": len(data),
                            "platform": {"os": "linux", "architecture": architecture}})
        run("skopeo", "--insecure-policy", "copy", "-q", "--src-tls-verify=false", f"docker://{self.registry.host}/index:amd64", f"oci:{folder}:amd64")
        run("skopeo", "--insecure-policy", "copy", "-q", "--src-tls-verify=false", f"docker://{self.registry.host}/index:arm64", f"oci:{folder}:arm64")
        index = MKIMAGE.dump({"schemaVersion": 2, "mediaType": MKIMAGE.INDEX, "manifests": entries})
        blob = f"{folder}/blobs/sha256/{MKIMAGE.digest(index)[7:]}"
        with open(blob, "wb") as f:
            f.write(index)
        with open(folder + "/index.json", "wb") as f:
            f.write(MKIMAGE.dump({"schemaVersion": 2, "manifests": [{"mediaType": MKIMAGE.INDEX, "digest": MKIMAGE.digest(index), "size": len(index),
                                                                     "annotations": {"org.opencontainers.image.ref.name": "all"}}]}))
        self.registry.copy(f"oci:{folder}:all", "index:all", "--all")
        machine = MKIMAGE.machine()
        self.pull("index:all")
        shown = self.node.json("image", "inspect", f"{self.registry.host}/index:all")
        self.assertIn(f'"is": "{machine}"', json.dumps(shown))
        self.remove("index:all")
        done = self.node.cli("image", "pull", f"{self.registry.host}/index@{MKIMAGE.digest(index)}")
        self.node.cli("image", "rm", done.stdout.strip())

    def test_an_artifact_is_no_image(self):
        folder = self.path("artifact")
        os.makedirs(folder + "/blobs/sha256")

        def put(data):
            with open(f"{folder}/blobs/sha256/{MKIMAGE.digest(data)[7:]}", "wb") as f:
                f.write(data)
            return {"digest": MKIMAGE.digest(data), "size": len(data)}
        manifest = put(MKIMAGE.dump({"schemaVersion": 2, "mediaType": MKIMAGE.MANIFEST, "config": {"mediaType": EMPTY, **put(b"{}")},
                                     "layers": [{"mediaType": "application/spdx+json", **put(b"a bill")}]}))
        with open(folder + "/index.json", "wb") as f:
            f.write(MKIMAGE.dump({"schemaVersion": 2, "manifests": [{"mediaType": MKIMAGE.MANIFEST, **manifest}]}))
        with open(folder + "/oci-layout", "w", encoding="ascii") as f:
            f.write('{"imageLayoutVersion": "1.0.0"}')
        self.registry.copy(f"oci:{folder}", "artifact:1")
        done = self.pull("artifact:1", check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn(f'it is no image: its configuration has the type "{EMPTY}"', done.stderr)

    # ---- other makers ----

    def test_umoci(self):
        layout = self.path("umoci")
        run("skopeo", "--insecure-policy", "copy", "-q", "oci-archive:" + self.busybox_tar, f"oci:{layout}:base")
        run("umoci", "unpack", "--image", f"{layout}:base", self.path("bundle"))
        root = self.path("bundle/rootfs")
        with open(root + "/made", "w", encoding="ascii") as f:
            f.write("by umoci\n")
        os.setxattr(root + "/made", "user.by", b"umoci")
        os.unlink(root + "/etc/group")
        shutil.rmtree(root + "/tmp")
        run("umoci", "repack", "--image", f"{layout}:made", self.path("bundle"))
        run("umoci", "config", "--image", f"{layout}:made", "--config.env", "MAKER=umoci", "--config.workingdir", "/etc")
        self.registry.copy(f"oci:{layout}:made", "umoci:1")
        self.pull("umoci:1")
        self.assertEqual(self.says("umoci:1", "sh", "-c", "cat /made; ls -d /tmp group 2>&1 | wc -l; echo $MAKER; pwd"),
                         "by umoci\n2\numoci\n/etc\n")
        self.remove("umoci:1")

    @unittest.skipUnless(shutil.which("buildah"), "buildah is not installed")
    def test_buildah(self):
        own = ["--root", self.path("buildah"), "--runroot", self.path("buildah-run"), "--storage-driver", "vfs"]
        env = {**os.environ, "HOME": self.folder, "TMPDIR": self.folder, "BUILDAH_ISOLATION": "chroot"}
        policy = self.path("policy.json")
        with open(policy, "w", encoding="ascii") as f:
            f.write('{"default": [{"type": "insecureAcceptAnything"}]}')
        made = run("buildah", *own, "from", "--signature-policy", policy, "scratch", env=env).decode().strip()
        run("buildah", *own, "copy", made, "/bin/busybox", "/bin/busybox", env=env)
        with open(self.path("text"), "w", encoding="ascii") as f:
            f.write("by buildah\n")
        run("buildah", *own, "copy", "--chown", "12:34", made, self.path("text"), "/text", env=env)
        run("buildah", *own, "config", "--user", "12:34", "--cmd", "/bin/busybox cat /text", made, env=env)
        for form in ("oci", "docker"):
            with self.subTest(form):
                run("buildah", *own, "commit", "--signature-policy", policy, "--format", form, "--tls-verify=false", made,
                    f"docker://{self.registry.host}/buildah:{form}", env=env)
                self.pull(f"buildah:{form}")
                self.assertEqual(self.node.cli("run", "--rm", f"{self.registry.host}/buildah:{form}").stdout, "by buildah\n")
                self.remove(f"buildah:{form}")
