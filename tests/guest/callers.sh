#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian's podman and containerd with nacre-oci where there is cgroup v2 alone: what they do with limits and with the freezer
# (on a host that has both versions they would use v1 for that), and with Debian's criu, which works with Debian's kernel. Run by `make conformance` in the guest (callers.py).

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

# A program that counts what it has written, in memory alone: as many lines as its last one says, also after it was made again.
count=/images/rootfs/count2

counts_on() {
	before=$(wc -l <$count)
	until_true sh -c "[ \$(wc -l <$count) -gt $((before + 3)) ]"
	cp $count /tmp/count
	echo "$(wc -l </tmp/count) lines, the last is $(tail -n 1 /tmp/count)"
	[ "$(wc -l </tmp/count)" = "$(tail -n 1 /tmp/count)" ]
}

counts_no_more() {
	before=$(wc -l <$count)
	sleep 1
	[ "$(wc -l <$count)" = "$before" ]
}

# With streams that are there again whenever it is restored.
runs_alone() {
	nacre-oci run -d --bundle /tmp/bundle n1 </dev/null >/dev/null 2>&1
}

# Where the first process of nacre-oci's own container is.
in_group() {
	pid=$(nacre-oci state n1 | sed -n 's/.*"pid": \([0-9]*\).*/\1/p')
	grep -q "^$pid\$" "$(group_of n1)/cgroup.procs"
}

# The status of a restore that stays, of a program that ends with 9 when it is told to.
gives_status() {
	nacre-oci restore --image-path /tmp/image --work-path /tmp/work --bundle /tmp/bundle n1 </dev/null &
	until_true says running nacre-oci state n1
	nacre-oci kill n1 TERM
	wait $!
	status=$?
	echo "the status is $status"
	[ $status = 9 ]
}

# checkpoint and restore with what criu has to say about it, if it is bad
criu() {
	nacre-oci "$@" --image-path /tmp/image --work-path /tmp/work n1 </dev/null >/dev/null 2>/tmp/criu.out && return 0
	cat /tmp/criu.out
	grep -h Error /tmp/work/*.log
	return 1
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

echo 1..44
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

# criu, by hand and by podman.
cat >/images/rootfs/counter <<'EOF'
trap 'exit 9' TERM
i=0
while :; do i=$((i + 1)); echo $i >>/count2; sleep 0.05; done
EOF
: >$count
mkdir /tmp/bundle
nacre-oci spec --bundle /tmp/bundle
sed -i 's#"terminal": true#"terminal": false#; s#"path": "rootfs"#"path": "/images/rootfs"#; s#"readonly": true#"readonly": false#
	s#"sh"$#"sh", "/counter"#' /tmp/bundle/config.json
check "nacre-oci runs" runs_alone
check "its program counts" counts_on
check "its memory is written ahead" criu checkpoint --pre-dump
mv /tmp/image /tmp/ahead
check "it is written down and goes on" criu checkpoint --leave-running
check "its program counts on" counts_on
rm -rf /tmp/image
check "it is written down from there, and ends" criu checkpoint --parent-path ../ahead
check "its program stands" counts_no_more
check "it is stopped" says stopped nacre-oci state n1
check "and deleted" nacre-oci delete n1
check "it is restored" criu restore -d --bundle /tmp/bundle
check "its program counts on" counts_on
check "it is in its group" in_group
check "it is entered" says "0::/$" nacre-oci exec n1 cat /proc/self/cgroup
check "it is written down again" criu checkpoint
check "and deleted again" nacre-oci delete n1
check "restored in the foreground it gives its status" gives_status
check "nothing is left of it" gone n1
: >$count
check "podman runs" pod run -d -t --name b --network none --rootfs /images/rootfs sh /counter
check "podman checkpoints" pod container checkpoint b
check "its program stands" counts_no_more
check "podman restores" pod container restore b
check "its program counts on" counts_on
check "podman removes" pod rm -f -t 0 b
until_true sh -c '! grep -qs "^conmon" /proc/[0-9]*/comm'
