/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/name/reference.h"

#include <errno.h>

#include "unit.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define D "@sha256:" HEX
#define A63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static const struct {
	const char *text;
	const char *full; /* NULL: refused */
} cases[] = {
	{ "busybox", "docker.io/library/busybox:latest" },
	{ "busybox:1.36", "docker.io/library/busybox:1.36" },
	{ "a/b", "docker.io/a/b:latest" },
	{ "docker.io/busybox", "docker.io/library/busybox:latest" },
	{ "index.docker.io/busybox:x", "docker.io/library/busybox:x" },
	{ "docker.io/library/busybox:latest", "docker.io/library/busybox:latest" },
	{ "quay.io/a/b/c:v1.0_x-Y", "quay.io/a/b/c:v1.0_x-Y" },
	{ "localhost/x", "localhost/x:latest" },
	{ "localhost:5000/x", "localhost:5000/x:latest" },
	{ "localhost:5000/x:5000", "localhost:5000/x:5000" },
	{ "host:5000/x/y:tag" D, "host:5000/x/y:tag" D },
	{ "[::1]:5000/x", "[::1]:5000/x:latest" },
	{ "[fe80::1]/x", "[fe80::1]/x:latest" },
	{ "Upper/x", "Upper/x:latest" },
	{ "busybox" D, "docker.io/library/busybox" D },
	{ "a__b", "docker.io/library/a__b:latest" },
	{ "a_b.c---d", "docker.io/library/a_b.c---d:latest" },
	{ "xn--e1afmkfd.example/x", "xn--e1afmkfd.example/x:latest" },
	{ "localhosts/x", "docker.io/localhosts/x:latest" },
	{ "0123456789ab", "docker.io/library/0123456789ab:latest" },
	{ "sha256x", "docker.io/library/sha256x:latest" },
	{ "sha256", NULL },
	{ "sha256:" HEX, NULL },
	{ "sha256:0123456789ab", NULL },
	{ "quay.io/sha256:1", "quay.io/sha256:1" },
	{ "", NULL },
	{ ":tag", NULL },
	{ "@sha256:" HEX, NULL },
	{ "/x", NULL },
	{ "x/", NULL },
	{ "x//y", NULL },
	{ "Busybox", NULL },
	{ "x/Y", NULL },
	{ "a___b", NULL },
	{ "a..b", NULL },
	{ "a._b", NULL },
	{ "-a", NULL },
	{ "a-", NULL },
	{ "a_", NULL },
	{ ".a", NULL },
	{ "..", NULL },
	{ "../x", NULL },
	{ "a/../b", NULL },
	{ "busybox:", NULL },
	{ "busybox:.x", NULL },
	{ "busybox:-x", NULL },
	{ "busybox:a b", NULL },
	{ "busybox:a:b", NULL },
	{ "busybox@", NULL },
	{ "busybox@sha256:abc", NULL },
	{ "busybox" D D, NULL },
	{ "busybox@md5:0123456789abcdef0123456789abcdef", NULL },
	{ "a b", NULL },
	{ "a\nb", NULL },
	{ "\303\244", NULL },
	{ "http://quay.io/x", NULL },
	{ "-host.example/x", NULL },
	{ "host-.example/x", NULL },
	{ "host..example/x", NULL },
	{ "host:/x", NULL },
	{ "host:123456/x", NULL },
	{ "host:12a/x", NULL },
	{ "[::1/x", NULL },
	{ "[]/x", NULL },
	{ "[::g]/x", NULL },
	{ HEX, NULL },
	{ A63 "/" A63 "/" A63 "/" A63, NULL },
};

static void table(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err = ERROR_INIT;
		char full[REFERENCE_SIZE] = "";
		int r;

		r = reference_normalise(full, cases[i].text, &err);
		if (cases[i].full) {
			CHECK_INT(r, 0);
			CHECK_STR(full, cases[i].full);
			CHECK_STR(err.text, "");
		} else {
			CHECK_INT(r, -EINVAL);
			CHECK_INT(err.kind, ERROR_INVALID);
			CHECK_STR(full, "");
			CHECK(err.text[0]);
		}
		if (unit_failures) {
			printf("# case %zu: %s\n", i, cases[i].text);
			return;
		}
	}
}

static void full_forms_stay(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char full[REFERENCE_SIZE] = "";

		if (!cases[i].full)
			continue;
		CHECK_INT(reference_normalise(full, cases[i].full, NULL), 0);
		CHECK_STR(full, cases[i].full);
	}
}

static void limits(void)
{
	char text[REFERENCE_SIZE + 300];
	char full[REFERENCE_SIZE];

	/* "docker.io/library/" has 18 characters. */
	memset(text, 'a', sizeof(text));
	text[REFERENCE_NAME_MAX - 18] = '\0';
	CHECK_INT(reference_normalise(full, text, NULL), 0);
	memset(text, 'a', sizeof(text));
	text[REFERENCE_NAME_MAX - 17] = '\0';
	CHECK_INT(reference_normalise(full, text, NULL), -EINVAL);
	memset(text, 'a', sizeof(text));
	memcpy(text, "x:", 2);
	text[2 + REFERENCE_TAG_MAX] = '\0';
	CHECK_INT(reference_normalise(full, text, NULL), 0);
	memset(text, 'a', sizeof(text));
	memcpy(text, "x:", 2);
	text[3 + REFERENCE_TAG_MAX] = '\0';
	CHECK_INT(reference_normalise(full, text, NULL), -EINVAL);
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	CHECK_INT(reference_normalise(full, text, NULL), -EINVAL);
}

UNIT_MAIN({ "table", table }, { "full_forms_stay", full_forms_stay }, { "limits", limits })
