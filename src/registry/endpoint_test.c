/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/endpoint.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"
#include "wire/message/fetchmsg.h"

static char top[] = "/tmp/nacre-endpoint-XXXXXX";
static char *dirs[] = { top, NULL };

static void opens(void)
{
	if (!mkdtemp(top))
		abort();
}

static void put(const char *host, const char *name, const char *text)
{
	char path[512];
	int fd;

	(void)str_printf(path, sizeof(path), "%s/%s", top, host);
	(void)mkdir(path, 0755);
	(void)str_printf(path, sizeof(path), "%s/%s/%s", top, host, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	(void)close(fd);
}

static bool load(struct endpoints *e, const char *host, uint32_t flags, struct error *err)
{
	const struct endpoint_config config = { .host = host, .host_flags = flags, .dirs = dirs };

	*e = (struct endpoints)ENDPOINTS_INIT;
	*err = (struct error)ERROR_INIT;
	return endpoints_load(e, &config, err) == 0;
}

/* "https://host:port/path", with what sets it apart. */
static const char *told(const struct endpoints *e, size_t i)
{
	static char text[URL_SIZE + 64];
	char url[URL_SIZE];

	if (i >= e->n)
		return "none";
	url_format(&e->list[i].root, url);
	(void)str_printf(text, sizeof(text), "%s%s%s as %s", url,
			 e->list[i].mirror ? " mirror" : "", e->list[i].insecure ? " insecure" : "",
			 e->list[i].credentials);
	return text;
}

static void the_registry_itself(void)
{
	static const struct {
		const char *host;
		uint32_t flags;
		const char *told;
	} cases[] = {
		{ "far.example", 0, "https://far.example/v2 as far.example" },
		{ "far.example:5000", 0, "https://far.example:5000/v2 as far.example:5000" },
		{ "far.example", FETCH_HOST_PLAIN, "http://far.example/v2 as far.example" },
		{ "far.example", FETCH_HOST_INSECURE,
		  "https://far.example/v2 insecure as far.example" },
		/* Nobody has put certificates there. */
		{ "127.0.0.1:5000", 0, "http://127.0.0.1:5000/v2 as 127.0.0.1:5000" },
		{ "localhost:5000", 0, "http://localhost:5000/v2 as localhost:5000" },
		{ "docker.io", 0, "https://registry-1.docker.io/v2 as docker.io" },
	};
	struct endpoints e;
	struct error err;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK(load(&e, cases[i].host, cases[i].flags, &err));
		CHECK_INT(e.n, 1);
		CHECK_STR(told(&e, 0), cases[i].told);
		endpoints_done(&e);
	}
}

static void mirrors_come_first_and_have_their_own_credentials(void)
{
	static const struct endpoint_mirror mirrors[] = {
		{ "far.example", "https://m1.example/base/", FETCH_CAN_PULL, 0 },
		{ "other.example", "https://m2.example", FETCH_CAN_FLAGS, 0 },
		{ "far.example", "http://127.0.0.1:5001", FETCH_CAN_FLAGS, 0 },
	};
	static const struct endpoint_mirror plain = { "far.example", "http://m3.example",
						      FETCH_CAN_FLAGS, 0 };
	struct endpoint_config config = { .host = "far.example",
					  .mirrors = mirrors,
					  .n_mirrors = ARRAY_SIZE(mirrors) };
	struct endpoints e = ENDPOINTS_INIT;
	struct error err = ERROR_INIT;

	CHECK_INT(endpoints_load(&e, &config, &err), 0);
	CHECK_INT(e.n, 3);
	CHECK_STR(told(&e, 0), "https://m1.example/base/v2 mirror as m1.example");
	CHECK(e.n > 0 && e.list[0].can == FETCH_CAN_PULL);
	CHECK_STR(told(&e, 1), "http://127.0.0.1:5001/v2 mirror as 127.0.0.1:5001");
	CHECK_STR(told(&e, 2), "https://far.example/v2 as far.example");
	endpoints_done(&e);
	/* Bytes of somebody else over a wire that anybody reads are for who asks for them by name.
	 */
	config.mirrors = &plain;
	config.n_mirrors = 1;
	e = (struct endpoints)ENDPOINTS_INIT;
	err = (struct error)ERROR_INIT;
	CHECK(endpoints_load(&e, &config, &err) < 0);
	CHECK(err.kind == ERROR_PRECONDITION || err.code == -ENOMEM);
	endpoints_done(&e);
}

static void hosts_toml(void)
{
	struct endpoints e;
	struct error err;

	put("toml.example", "hosts.toml",
	    "server = \"https://real.example\"\n"
	    "[host.\"http://10.0.0.1:5000\"]\n  capabilities = [\"pull\"]\n  ca = \"own.pem\"\n"
	    "[host.\"https://toml.example\"]\n  skip_verify = true\n"
	    "[host.\"https://m.example/x/v2\"]\n"
	    "[host.\"https://m.example/y\"]\n  override_path = true\n");
	put("toml.example", "own.pem", "PEM");
	CHECK(load(&e, "toml.example", 0, &err));
	CHECK_INT(e.n, 5);
	/* Its administrator says "http" in so many words. */
	CHECK_STR(told(&e, 0), "http://10.0.0.1:5000/v2 mirror as 10.0.0.1:5000");
	CHECK(e.n > 0 && e.list[0].can == FETCH_CAN_PULL && e.list[0].ca.len == 4 &&
	      memcmp(buf_data(&e.list[0].ca), "PEM\n", 4) == 0);
	/* The registry's own host is no mirror of it. */
	CHECK_STR(told(&e, 1), "https://toml.example/v2 insecure as toml.example");
	CHECK_STR(told(&e, 2), "https://m.example/x/v2 mirror as m.example");
	CHECK_STR(told(&e, 3), "https://m.example/y mirror as m.example");
	CHECK_STR(told(&e, 4), "https://real.example/v2 as toml.example");
	endpoints_done(&e);
	put("toml.example", "hosts.toml", "[host.\"https://m.example\"]\n  ca = \"none.pem\"\n");
	CHECK(!load(&e, "toml.example", 0, &err));
	CHECK(strstr(err.text, "none.pem") || err.code == -ENOMEM);
	CHECK(err.kind == ERROR_PRECONDITION || err.code == -ENOMEM);
	endpoints_done(&e);
	put("toml.example", "hosts.toml", "[host.\"https://m.example?x=y\"]\n");
	CHECK(!load(&e, "toml.example", 0, &err));
	CHECK(strstr(err.text, "no query") || err.code == -ENOMEM);
	endpoints_done(&e);
}

static void docker_s_layout(void)
{
	struct endpoints e;
	struct error err;

	put("127.0.0.1:6000", "ca.crt", "CA");
	put("127.0.0.1:6000", "me.cert", "CERT");
	put("127.0.0.1:6000", "me.key", "KEY");
	CHECK(load(&e, "127.0.0.1:6000", 0, &err));
	/* With certificates it speaks TLS, although it is on this machine. */
	CHECK_STR(told(&e, 0), "https://127.0.0.1:6000/v2 as 127.0.0.1:6000");
	CHECK(e.n == 1 && e.list[0].ca.len == 3 && e.list[0].cert.len == 5 &&
	      e.list[0].key.len == 4);
	endpoints_done(&e);
	/* As containerd writes the port, and before the plain form. */
	put("colon.example_5000_", "ca.crt", "LONGER");
	put("colon.example:5000", "ca.crt", "CA");
	CHECK(load(&e, "colon.example:5000", 0, &err));
	CHECK(e.n == 1 && e.list[0].ca.len == 7);
	endpoints_done(&e);
	put("half.example", "me.cert", "CERT");
	CHECK(!load(&e, "half.example", 0, &err));
	CHECK(strstr(err.text, "me.key") || err.code == -ENOMEM);
	CHECK(err.kind == ERROR_PRECONDITION || err.code == -ENOMEM);
	endpoints_done(&e);
	/* For all that have none of their own. */
	put("_default", "hosts.toml", "[host.\"https://m.example\"]\n");
	CHECK(load(&e, "any.example", 0, &err));
	CHECK_STR(told(&e, 0), "https://m.example/v2 mirror as m.example");
	CHECK_STR(told(&e, 1), "https://any.example/v2 as any.example");
	endpoints_done(&e);
}

static void closes(void)
{
	CHECK_INT(scratch_remove(top), 0);
}

UNIT_MAIN({ "a directory for it", opens, true }, { "the registry itself", the_registry_itself },
	  { "mirrors come first and have their own credentials",
	    mirrors_come_first_and_have_their_own_credentials },
	  { "hosts.toml", hosts_toml }, { "Docker's layout", docker_s_layout },
	  { "which is gone", closes, true })
