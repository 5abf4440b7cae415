# SPDX-License-Identifier: Apache-2.0
"""What each row of matrix.tsv shows and keeps."""
import os
import re
import smtplib
import subprocess
import threading
import time

import builder
import images
import nacre_test
from bed import Case
from nacre_test import until


class Nginx(Case):
    def start(self):
        self.run(*self.row.options, "-v", "pages:/var/www/html")

    def show(self):
        self.shows_page(8080, "a page of nginx")
        self.exec("sh", "-c", "head -c 8000000 /dev/zero >/var/www/html/large; echo changed >/var/www/html/index.html")
        # Part of a download comes before the server is asked to end, the rest after. The server is the slow one: what it has handed to
        # the kernel when it ends goes with the pod's network.
        self.exec("sh", "-c", "echo 'limit_rate 4m;' >/etc/nginx/conf.d/slow.conf && nginx -s reload")
        self.until(lambda: "gracefully shutting down" in self.log(), "the end of the workers without it")
        self.download = subprocess.Popen(["curl", "-s", "-o", self.dir + "/large", "http://127.0.0.1:8080/large"])
        until(lambda: os.path.exists(self.dir + "/large") and os.path.getsize(self.dir + "/large"), what="a download")

    def stop(self):
        took = super().stop()
        if hasattr(self, "download"):
            self.equal(0, self.download.wait())
            self.equal(8000000, os.path.getsize(self.dir + "/large"))
            del self.download
        return took

    def kept(self):
        self.shows_page(8080, "changed")


class Apache(Case):
    renew = False

    def show(self):
        self.shows_page(8081, "a page of apache")
        self.equal("www-data\n", self.page(8081, "/cgi-bin/who"))

    def kept(self):
        self.shows_page(8081, "a page of apache")
        self.has("/cgi-bin/who", self.exec("cat", "/var/log/apache2/access.log"))


class Haproxy(Case):
    OTHERS = ("nginx",)

    def start(self):
        for name in ("one", "two"):
            self.beside(name, image="nginx",
                        command=["sh", "-c", f"echo page of {name} >/var/www/html/index.html; exec nginx -g 'daemon off;'"])
        self.run(*self.row.options)

    def show(self):
        seen = set()

        def both():
            seen.add(self.page(8082))
            return seen == {"page of one\n", "page of two\n"}

        self.until(both, "answers of both")


class Postgresql(Case):
    def sql(self, text):
        return self.client("psql", "-h", "postgresql", "-U", "alice", "-d", "postgres", "-Atqc", text, env=["PGPASSWORD=secret"])

    def show(self):
        self.until(lambda: self.exec("psql", "-qc", "create role alice login superuser password 'secret'", user="postgres") == "",
                   "a server that answers")
        self.sql("create table t as select i, md5(i::text) as h from generate_series(1, 200000) i")
        self.equal("200000|true\n", self.sql("set min_parallel_table_scan_size = 0; set parallel_setup_cost = 0; set parallel_tuple_cost = 0;"
                   "select count(*), bool_and(h = md5(i::text))::text from t"))
        self.equal("1\n", self.sql("begin; delete from t where i > 1; commit; select count(*) from t"))
        self.has("PostgreSQL 15", self.host("psql", "-h", "127.0.0.1", "-U", "alice", "-d", "postgres", "-Atqc", "select version()",
                                            env={**os.environ, "PGPASSWORD": "secret"}))

    def kept(self):
        self.until(lambda: self.sql("select count(*), min(h) from t").startswith("1|c4ca42"), "the row")
        if "recovery" in self.log():
            raise AssertionError("it was not shut down:\n" + self.log())


class Mariadb(Case):
    vm_memory = "1g"
    def sql(self, text):
        return self.client("mariadb", "-h", "mariadb", "-u", "alice", "-psecret", "-Ne", text)

    def show(self):
        self.until(lambda: self.exec("mariadb", "-e", "create user alice identified by 'secret'; create database d; "
                                     "grant all on d.* to alice") == "", "a server that answers")
        self.sql("create table d.t (i int primary key) engine=innodb; insert into d.t values (1), (2)")
        self.equal("2\n", self.sql("begin; delete from d.t; rollback; select count(*) from d.t"))

    def kept(self):
        self.until(lambda: self.sql("select sum(i) from d.t") == "3\n", "the rows")
        if "crash recovery" in self.log():
            raise AssertionError("it was not shut down:\n" + self.log())


class Redis(Case):
    def show(self):
        self.until(lambda: self.talk(6379, "PING\r\n") == ["+PONG\r\n"], "PONG")
        self.equal(["+OK\r\n", "$5\r\nvalue\r\n", "+Background saving started\r\n"], self.talk(6379, "SET key value\r\n", "GET key\r\n", "BGSAVE\r\n"))
        self.until(lambda: "rdb_last_bgsave_status:ok" in self.client("redis-cli", "-h", "redis", "info", "persistence"), "a save")

    def kept(self):
        self.until(lambda: self.client("redis-cli", "-h", "redis", "get", "key") == "value\n", "the key")


class Memcached(Case):
    def show(self):
        self.until(lambda: self.talk(11211, "set key 0 0 5\r\nvalue\r\n") == ["STORED\r\n"], "STORED")
        self.has("value", self.talk(11211, "get key\r\n", end=b"END\r\n")[0])


class Rabbitmq(Case):
    vm_memory = "1g"
    start_seconds = 180
    URL = "--url=amqp://guest:guest@rabbitmq"

    def show(self):
        self.until(lambda: "q1" in self.client("amqp-declare-queue", self.URL, "-d", "-q", "q1"), "a queue")
        self.client("amqp-publish", self.URL, "-r", "q1", "-p", "-b", "first")
        self.client("amqp-publish", self.URL, "-r", "q1", "-p", "-b", "second")
        self.equal("first", self.client("amqp-get", self.URL, "-q", "q1"))

    def kept(self):
        self.until(lambda: self.client("amqp-get", self.URL, "-q", "q1") == "second", "the message")


class Mosquitto(Case):
    def get(self):
        return self.client("mosquitto_sub", "-h", "mosquitto", "-t", "a/b", "-C", "1", "-W", "5")

    def show(self):
        self.until(lambda: self.client("mosquitto_pub", "-h", "mosquitto", "-t", "a/b", "-r", "-q", "1", "-m", "hello") == "", "a broker")
        self.equal("hello\n", self.get())

    def kept(self):
        self.until(lambda: self.get() == "hello\n", "the message")


class Etcd(Case):
    def etcdctl(self, *words):
        return self.client("etcdctl", "--endpoints", "http://etcd:2379", *words, env=["ETCDCTL_API=3"])

    def show(self):
        self.until(lambda: self.etcdctl("put", "key", "one") == "OK\n", "a server")
        self.etcdctl("put", "key", "two")
        self.equal("key\ntwo\n", self.etcdctl("get", "key"))
        self.has("one", self.client("sh", "-c", "timeout 5 etcdctl --endpoints http://etcd:2379 watch --rev=1 key; true", env=["ETCDCTL_API=3"]))

    def kept(self):
        self.until(lambda: self.etcdctl("get", "key") == "key\ntwo\n", "the key")


class Prometheus(Case):
    vm_memory = "1g"
    def samples(self, ago=""):
        text = self.page(9090, f"/api/v1/query?query=count_over_time(up[1h]{ago})")
        found = re.search(r'"value":\[[\d.]+,"(\d+)"\]', text)
        return int(found.group(1)) if found else 0

    def show(self):
        self.until(lambda: self.samples() >= 3, "samples")
        self.first = time.time()

    def kept(self):
        self.until(lambda: self.samples() >= 1, "samples")
        # The first two samples are older than this server.
        text = self.until(lambda: self.page(9090, f"/api/v1/query?query=count_over_time(up[1h])&time={self.first}"), "a query")
        self.has('"value"', text)


class Openjdk(Case):
    vm_memory = "1g"
    start_seconds = 120

    def start(self):
        # A limit of memory, where a host can have one.
        self.limit = [] if self.kind == "vm" else ["-m", "512m"] if "memory" in nacre_test.host.read(nacre_test.host.cgroup_root() + "/cgroup.controllers").split() else []
        self.run(*self.row.options, *self.limit)

    def show(self):
        self.until(lambda: self.page(8083).startswith("java "), "a page")
        processors, memory = self.page(8083).split()[1:]
        # A microVM has as many as it was given.
        self.equal(os.cpu_count() if self.kind != "vm" else int(self.exec("nproc")), int(processors))
        # A quarter of the limit.
        if self.limit:
            self.equal(True, int(memory) <= 128 << 20)


class Tomcat(Case):
    vm_memory = "1g"
    start_seconds = 180

    def show(self):
        self.shows_page(8084, "42 by Apache Tomcat/10", "/app/")


class Node(Case):
    def show(self):
        self.shows_page(8085, "node 42 0")


class Python(Case):
    vm_memory = "1g"
    renew = False
    start_seconds = 180

    def show(self):
        self.shows_page(8086, "python 285")

    def kept(self):
        self.show()
        self.has("project", self.exec("/venv/bin/pip", "list"))


class Php(Case):
    def start(self):
        self.cli("pod", "--name", self.name, *self.kind_options(), *self.row.options, "main=php", "--", "web=php", "nginx", "-g", "daemon off;")

    def show(self):
        self.shows_page(8087, "php fpm-fcgi 36")

    def log(self):
        done = self.node.cli("logs", "--container", "main", self.name)
        return done.stdout + done.stderr


class Ruby(Case):
    def show(self):
        self.shows_page(8088, "ruby 42")


class Golang(Case):
    start_seconds = 240

    def start(self):
        self.beside("build", command=["sh", "-c", "cd /srv && CGO_ENABLED=0 GO111MODULE=off go build -o /srv/server server.go"])
        self.equal("0", self.cli("wait", "build", seconds=240).split()[-1])
        self.cli("cp", "build:/srv/server", self.dir + "/server")
        archive = images.make(self.dir + "/empty.tar", "--file", self.dir + "/server:/server:0755", "--cmd", "/server", "--name", "empty")
        self.node.import_image(archive, "empty")
        self.run(*self.row.options, image="empty")

    def show(self):
        self.shows_page(8089, "go 1")


class Gcc(Case):
    vm_memory = "1g"

    def show(self):
        self.equal("0", self.cli("wait", self.name, seconds=600).split()[-1])
        self.has("# PASS:", self.log())
        self.cli("cp", f"{self.name}:/srv", self.dir + "/srv")
        deb = [f for f in os.listdir(self.dir + "/srv") if re.match(r"hello_.*\.deb$", f)]
        self.has("Package: hello\n", self.host("dpkg-deb", "-f", self.dir + "/srv/" + deb[0]))


class Sshd(Case):
    renew = False

    def ssh(self, *words):
        return self.host("ssh", *self.options, "-p", "2222", "alice@127.0.0.1", *words)

    def show(self):
        self.options = self.key("/home/alice", "alice")
        self.equal("alice\n", self.until(lambda: self.ssh("id", "-un"), "a login"))
        # A terminal of its own, a number of it, and its size.
        self.has("/dev/pts/", self.host("ssh", "-tt", *self.options, "-p", "2222", "alice@127.0.0.1", "tty"))
        builder.write(self.dir + "/file", "content\n")
        self.host("scp", *self.options, "-P", "2222", self.dir + "/file", "alice@127.0.0.1:/tmp/file")
        self.equal("content\n", self.exec("cat", "/tmp/file"))

    def kept(self):
        # The host's key is known: another one would be refused.
        self.equal("alice\n", self.until(lambda: self.ssh("id", "-un"), "a login"))


class Cron(Case):
    def show(self):
        self.until(lambda: "system root\n" in self.exec("cat", "/tmp/system"), "the system's job", 130)
        self.until(lambda: "user alice\n" in self.exec("cat", "/tmp/user"), "the user's job", 130)


class Systemd(Case):
    vm_memory = "1g"
    renew = False
    start_seconds = 120

    def show(self):
        def running():
            state = self.exec("systemctl", "is-system-running", check=False).strip()
            if state == "degraded":
                raise AssertionError(self.exec("systemctl", "--failed", "--plain", check=False))
            return state == "running"

        self.until(running, "the state running")
        self.equal("active\n", self.exec("systemctl", "is-active", "serve.service"))
        self.has("nobody", self.exec("sh", "-c", "ps -o user= -p $(systemctl show -P MainPID serve) 2>/dev/null || "
                                     "stat -c %U /proc/$(systemctl show -P MainPID serve)"))
        self.has("first started", self.exec("journalctl", "-u", "first", "--no-pager"))
        self.exec("systemctl", "restart", "serve")
        self.has("/system.slice/serve.service", self.exec("sh", "-c", "cat /proc/$(systemctl show -P MainPID serve)/cgroup"))

    def kept(self):
        self.until(lambda: "active" in self.exec("systemctl", "is-active", "serve.service"), "the unit")
        self.equal("stopped in order\n", self.exec("cat", "/srv/stopped"))


class Postfix(Case):
    def greets(self):
        with smtplib.SMTP("127.0.0.1", 2525, timeout=20) as smtp:
            return smtp.noop()[0] == 250

    def show(self):
        def send():
            with smtplib.SMTP("127.0.0.1", 2525, timeout=20) as smtp:
                return smtp.sendmail("bob@host.test", ["alice@mail.test"], "Subject: first\r\n\r\nhello alice\r\n") == {}

        self.until(send, "a message")
        self.kept()

    def kept(self):
        self.until(lambda: "hello alice" in self.exec("cat", "/var/mail/alice"), "the message")
        # It is process 1: before it has a handler SIGTERM is dropped.
        self.until(self.greets, "a server")


class Bind(Case):
    def dig(self, *words):
        return self.client("dig", "+short", "+tries=1", "@bind", *words)

    def show(self):
        self.until(lambda: self.dig("www.zone.test") == "192.0.2.80\n", "an answer by UDP")
        self.has("a long text", self.dig("+tcp", "long.zone.test", "TXT"))
        # Over the published port, as bytes: one question, one answer.
        import socket
        import struct

        question = struct.pack(">6H", 7, 0, 1, 0, 0, 0) + b"\3www\4zone\4test\0" + struct.pack(">2H", 1, 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(10)
            s.sendto(question, ("127.0.0.1", 5353))
            self.equal(True, socket.inet_aton("192.0.2.80") in s.recv(512))
        with socket.create_connection(("127.0.0.1", 5353), timeout=10) as s:
            s.sendall(struct.pack(">H", len(question)) + question)
            self.equal(True, socket.inet_aton("192.0.2.80") in s.recv(512))


class Samba(Case):
    vm_memory = "1g"
    def smb(self, *commands):
        return self.client("sh", "-c", "echo content >/tmp/file; cd /tmp; smbclient -U alice%secret //samba/share -c '" + ";".join(commands) + "' && cat /tmp/back")

    def show(self):
        self.until(lambda: "content" in self.smb("put file", "get file back"), "a file")
        self.equal("alice\n", self.exec("stat", "-c", "%U", "/srv/share/file"))

    def kept(self):
        self.until(lambda: "content" in self.smb("get file back"), "the file")


class Ffmpeg(Case):
    vm_memory = "1g"

    def show(self):
        self.equal("0", self.cli("wait", self.name, seconds=300).split()[-1])
        self.has("h264,50", self.log())


class Git(Case):
    def git(self, *words, cwd=""):
        environment = {**os.environ, "GIT_SSH_COMMAND": "ssh " + " ".join(self.options), "HOME": self.dir,
                       "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
        return self.host("git", *words, cwd=cwd or self.dir, env=environment)

    def show(self):
        self.options = self.key("/home/git", "git")
        self.until(lambda: self.git("ls-remote", "ssh://git@127.0.0.1:2223/srv/git/project.git") == "", "a repository")
        self.git("clone", "-q", "ssh://git@127.0.0.1:2223/srv/git/project.git", "one")
        builder.write(self.dir + "/one/file", "content\n" * 10000)
        for words in (["checkout", "-q", "-b", "main"], ["add", "file"], ["commit", "-q", "-m", "first"], ["push", "-q", "origin", "main"]):
            self.git(*words, cwd=self.dir + "/one")

    def kept(self):
        # A new pod has a new home: the key is given again; its host keys are the image's.
        self.until(lambda: self.key("/home/git", "git"), "a key")
        self.until(lambda: self.git("ls-remote", "ssh://git@127.0.0.1:2223/srv/git/project.git"), "the branch")
        self.git("clone", "-q", "-b", "main", "ssh://git@127.0.0.1:2223/srv/git/project.git", "two")
        self.equal(80000, os.path.getsize(self.dir + "/two/file"))


class Busybox(Case):
    def show(self):
        self.shows_page(8090, "a page of busybox")
        self.equal("a page of busybox\n", self.client("busybox", "wget", "-qO-", "http://busybox/"))


class Zombies(Case):
    def count(self):
        return self.exec("sh", "-c", "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l").strip()

    def show(self):
        self.until(lambda: "made 50" in self.log(), "orphans")
        # Without an init its own children and their orphans stay zombies: it is process 1.
        self.until(lambda: self.count() == "100", "100 zombies")
        self.cli("rm", "-f", self.name)
        for words in (["--init", self.name], ["--entrypoint", "/usr/bin/tini", self.name, "--", *self.row.command]):
            self.cli("run", "-d", "--name", self.name, *self.kind_options(), *words)
            self.until(lambda: "made 50" in self.log(), "orphans")
            # Orphans go to the init; children of the program do not.
            self.until(lambda: self.count() == "50", "50 zombies")
            if words[0] == "--init":
                self.cli("rm", "-f", self.name)


class Filecaps(Case):
    def show(self):
        # Its mode allows nothing to a user: without the file's capability no socket is had where ping's own kind is closed.
        self.has("1 received", self.exec("ping", "-c", "1", "127.0.0.1", user="alice"))
        self.equal("0\n", self.exec("sudo", "id", "-u", user="alice"))
        self.has("cap_net_raw", self.exec("getcap", "/usr/bin/ping"))
        self.exec("sh", "-c", "cp /usr/bin/cat /tmp/cat && setcap cap_dac_override=ep /tmp/cat")
        self.has("root:", self.exec("/tmp/cat", "/etc/shadow", user="alice"))


def find(name):
    return next(c for c in Case.__subclasses__() if c.__name__.lower() == name)
