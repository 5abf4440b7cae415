#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Validation programs of OCI runtime-tools with nacre-oci, those that want more of a host than most give: all capabilities, a
# profile of AppArmor, labels of SELinux. Run by `make conformance` in the guest (validation.py), with what it has of both.

cd /validation || exit 1
ln -sf nacre /bin/nacre-oci
export RUNTIME=/bin/nacre-oci TMPDIR=/tmp

if [ -d /sys/fs/selinux ]; then
	cat selinux >/sys/fs/selinux/load
else
	cat apparmor >/sys/kernel/security/apparmor/.load
fi

# A case passes if it ends well and says "ok", and nowhere "not ok": as validation.py judges.
passes() {
	"bin/$1" >/tmp/said 2>&1 && grep -q "^ *ok" /tmp/said && ! grep -q "not ok" /tmp/said
}

n=0
for case in $(ls bin); do
	n=$((n + 1))
	if passes "$case"; then
		echo "ok $n - $case"
	else
		echo "not ok $n - $case"
		sed 's/^/# /' /tmp/said
	fi
done
echo "1..$n"
