/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/kubelet_mount.h"

#include "base/macros.h"
#include "unit.h"

#define PODS "/var/lib/kubelet/pods/u-1/"
#define LABEL_60 "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff"

static void recognised(void)
{
	static const struct {
		const char *path;
		enum cri_kubelet_kind kind;
		const char *name;
	} cases[] = {
		{ PODS "volumes/kubernetes.io~empty-dir/work", CRI_KUBELET_EMPTY_DIR, "ework" },
		{ PODS "volumes/kubernetes.io~empty-dir/" LABEL_60 "123", CRI_KUBELET_EMPTY_DIR,
		  "e" LABEL_60 "123" },
		{ PODS "containers/main/00c0ffee", CRI_KUBELET_TERMINATION, "t00c0ffee" },
		{ PODS "etc-hosts", CRI_KUBELET_HOSTS, "" },
		{ "/pods/x/pods/u-1/etc-hosts", CRI_KUBELET_HOSTS, "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cri_kubelet_mount m;

		CHECK(cri_kubelet_mount_parse(cases[i].path, "u-1", &m));
		CHECK_INT(m.kind, cases[i].kind);
		CHECK_STR(m.name, cases[i].name);
	}
}

static void not_recognised(void)
{
	static const char *const paths[] = {
		PODS "volumes/kubernetes.io~empty-dir/",
		PODS "volumes/kubernetes.io~empty-dir/a/b",
		PODS "volumes/kubernetes.io~empty-dir/..",
		PODS "volumes/kubernetes.io~empty-dir/-a",
		PODS "volumes/kubernetes.io~empty-dir/" LABEL_60 "1234",
		PODS "volumes/kubernetes.io~secret/a",
		PODS "volume-subpaths/work/main/0",
		PODS "containers/main",
		PODS "containers//1",
		PODS "containers/main/../../etc-hosts",
		PODS "etc-hosts/",
		PODS "",
		"var/lib/kubelet/pods/u-1/etc-hosts",
		"/var/lib/kubelet/pods/u-12/etc-hosts",
		"/data",
	};
	struct cri_kubelet_mount m;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		CHECK(!cri_kubelet_mount_parse(paths[i], "u-1", &m));
	CHECK(!cri_kubelet_mount_parse("/pods//etc-hosts", "", &m));
}

UNIT_MAIN({ "recognised", recognised }, { "not recognised", not_recognised })
