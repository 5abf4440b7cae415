#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian's podman and containerd with nacre-oci where there is cgroup v2 alone: what they do with limits and with the freezer.
# On a host that has both versions they would use v1 for that. Run by `make conformance` in the guest (callers.py).

groups=/sys/fs/cgroup
n=0

# check NAME COMMAND...: one line of TAP
check() {
	name=$1
	shift
	n=$((n + 1))
	if "$@" >/tmp/said 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' /tmp/said
	fi
}

# until CONDITION...: within the patience that an emulated machine needs
until_true() {
	for _ in $(seq 600); do
		"$@" && return 0
		sleep 0.2
	done
	return 1
}

# The group with this in its path that processes are in, or that has groups below it.
group_of() {
	find $groups -type d -name "*$1*" | head -n 1
}

# has NAME FILE VALUE
has() {
	found=$(cat "$(group_of "$1")/$2")
	echo "$2 is $found"
	[ "$found" = "$3" ]
}

frozen() {
	grep -q "frozen $2" "$(group_of "$1")/cgroup.events"
}

# A bundle's program writes a line to /count as long as it is not frozen.
counts() {
	before=$(wc -c </images/rootfs/count)
	until_true sh -c "[ \$(wc -c </images/rootfs/count) -gt $before ]"
}

stands() {
	before=$(wc -c </images/rootfs/count)
	sleep 1
	[ "$(wc -c </images/rootfs/count)" = "$before" ]
}

program='while :; do echo x >>/count; sleep 0.05; done'
runtime=/bin/nacre-oci

pod() {
	podman --root /tmp/pod/root --runroot /tmp/pod/run --tmpdir /tmp/pod/tmp --storage-driver vfs --cgroup-manager cgroupfs \
		--events-backend none --runtime $runtime "$@"
}

ctr() {
	/bin/ctr -a /tmp/cd/sock "$@"
}

says() {
	wanted=$1
	shift
	"$@" >/tmp/out 2>&1
	cat /tmp/out
	grep -q "$wanted" /tmp/out
}

gone() {
	[ -z "$(group_of "$1")" ]
}

echo 1..21
ln -sf nacre $runtime
mkdir -p /var/tmp
: >/images/rootfs/count

# The limits of a pod's parent are not the subject: the container's are.
check "podman runs" pod run -d --name a --network none --memory 64m --pids-limit 50 --cpus 0.5 --rootfs /images/rootfs sh -c "$program"
id=$(pod inspect -f '{{.Id}}' a)
check "with a limit of memory" has "$id" memory.max 67108864
check "and one of processes" has "$id" pids.max 50
check "podman pauses" pod pause a
check "its group is frozen" frozen "$id" 1
check "and its program stands" stands
check "podman says so" says paused pod inspect -f '{{.State.Status}}' a
check "podman goes on" pod unpause a
check "its program runs" counts
check "podman updates" pod update --memory 48m --cpus 0.25 a
check "to another limit of memory" has "$id" memory.max 50331648
check "and to another share of the processors" has "$id" cpu.max "25000 100000"
check "podman removes" pod rm -f -t 0 a

mkdir -p /tmp/cd
cat >/tmp/cd/config.toml <<EOF
version = 2
root = "/tmp/cd/root"
state = "/tmp/cd/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.internal.v1.opt"]
[grpc]
address = "/tmp/cd/sock"
EOF
containerd -c /tmp/cd/config.toml >/tmp/cd/log 2>&1 &
daemon=$!
until_true test -S /tmp/cd/sock
check "containerd runs" ctr run -d --runc-binary $runtime --memory-limit 67108864 --rootfs /images/rootfs c1 sh -c "$program"
check "with a limit of memory" has c1 memory.max 67108864
check "containerd pauses" ctr task pause c1
check "and its program stands" stands
check "containerd goes on" ctr task resume c1
check "its program runs" counts
check "containerd counts" says memory.usage ctr task metrics c1
ctr task kill -s KILL c1
until_true says STOPPED ctr task ls
check "containerd removes" ctr task rm c1
ctr c rm c1
kill $daemon
wait $daemon
