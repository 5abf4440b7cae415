/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "unit.h"

static int load(const char *text, struct config *c, struct error *err)
{
	char path[] = "/tmp/nacre-config-test-XXXXXX";
	_cleanup_fd_ int fd = mkstemp(path);
	int r;

	CHECK(fd >= 0);
	CHECK_INT(fd_write_full(fd, text, strlen(text)), 0);
	config_init(c);
	if (err)
		*err = (struct error)ERROR_INIT;
	r = config_load(c, path, false, err);
	(void)unlink(path);
	return r;
}

static void reads_every_key(void)
{
	struct error err;
	static struct config c;

	CHECK_INT(load("log:\n  level: debug\n  form: json\ndrain: 250ms\ncgroup: /a/b\nlibexec: "
		       "/x\nspare: no\nsecurity:\n  profile: restricted\nimages:\n  reserve: "
		       "3GiB\n  root: auto\n",
		       &c, &err),
		  0);
	CHECK_INT(c.log_level, LOG_DEBUG);
	CHECK_INT(c.log_form, LOG_FORM_JSON);
	CHECK_INT(c.drain, 250 * NSEC_PER_MSEC);
	CHECK_STR(c.cgroup, "/a/b");
	CHECK_STR(c.libexec, "/x");
	CHECK(!c.spare);
	CHECK_STR(c.security_profile, "restricted");
	CHECK_INT(c.images.reserve, (uint64_t)3 << 30);
	CHECK_INT(c.images.root, IMAGE_ROOT_AUTO);
	CHECK_INT(load("images:\n  root: erofs\n", &c, &err), 0);
	CHECK_INT(c.images.root, IMAGE_ROOT_EROFS);
}

static void reads_where_plugins_are(void)
{
	struct error err;
	static struct config c;

	CHECK_INT(load("cri:\n  network: cni\n", &c, NULL), 0);
	CHECK(!c.cri.builtin_network);
	CHECK(c.cri.plugin_network && c.network.plugins);
	CHECK_INT(load("network:\n  cni:\n    conf_dir: /a\n    bin_dirs: /b:/c\n", &c, NULL), 0);
	CHECK(!c.cri.plugin_network && c.network.plugins);
	CHECK_STR(c.network.conf_dir, "/a");
	CHECK_STR(c.network.bin_dirs, "/b:/c");
	CHECK(load("network:\n  cni:\n    bin_dirs: /b:c\n", &c, &err) < 0);
	CHECK(load("network:\n  cni:\n    conf_dir: c\n", &c, &err) < 0);
}

static void reads_where_metrics_are(void)
{
	static const char *const wrong[] = {
		"0.0.0.0:9464", "[::]:9464",         "127.0.0.1",
		"9464",         "/run/metrics.sock", "localhost:9464"
	};
	struct error err;
	char text[64];
	static struct config c;

	CHECK_INT(load("", &c, &err), 0);
	CHECK_STR(c.metrics.listen, "");
	CHECK_INT(c.svid_life, 3600);
	CHECK_INT(load("identity:\n  svid_life: 10s\n", &c, &err), 0);
	CHECK_INT(c.svid_life, 10);
	CHECK(load("identity:\n  svid_life: 1s\n", &c, &err) < 0);
	CHECK(load("identity:\n  svid_life: 25h\n", &c, &err) < 0);
	CHECK_INT(load("metrics:\n  listen: '[::1]:9464'\n", &c, &err), 0);
	CHECK_STR(c.metrics.listen, "[::1]:9464");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		(void)str_printf(text, sizeof(text), "metrics:\n  listen: '%s'\n", wrong[i]);
		CHECK(load(text, &c, &err) < 0);
		CHECK(strstr(err.text, "metrics.listen"));
	}
}

static void reads_what_pid_1_sets_up(void)
{
	static const char *const wrong[] = {
		"hostname: 'a b'",
		"hostname: -a",
		"interfaces: [ '' ]",
		"interfaces: [ 'eth0/1 dhcp' ]",
		"interfaces: [ 'a b' ]",
		"interfaces: [ 'a 1.2.3.4' ]",
		"interfaces: [ 'a via' ]",
		"interfaces: [ 'a via 1.2.3.4/24' ]",
		"interfaces: [ a, 'a dhcp' ]",
		"interfaces: [ 'a via 1.2.3.4 via 1.2.3.5' ]",
		"interfaces: [ 'a mtu 67' ]",
		"interfaces: [ 'a mtu' ]",
		"interfaces: [ 'a 10.0.0.1/8 10.0.0.2/8 10.0.0.3/8 10.0.0.4/8 10.0.0.5/8' ]",
		"interfaces: [ a, b, c, d, e, f, g, h, i ]",
		"dhcp_client: [ udhcpc ]",
		"dhcp_client: [ /a, '' ]",
		"dhcp_patience: 999ms",
		"stop_within: 0s",
		"network_within: 2h",
	};
	const struct system_interface *i;
	struct error err;
	static struct config c;
	char text[256];

	CHECK_INT(load("", &c, &err), 0);
	CHECK_INT(c.sys.n_interfaces, 0);
	CHECK_INT(c.sys.stop_within, 60 * NSEC_PER_SEC);
	CHECK_INT(load("system:\n  hostname: node-1.example\n  interfaces:\n"
		       "    - eth0 dhcp auto\n"
		       "    - eth1 192.0.2.2/24 via 192.0.2.1 fd00::2/64 via fd00::1 mtu 1400\n"
		       "  dhcp_client: [ /sbin/udhcpc, -i, '%i' ]\n  stop_within: 5s\n",
		       &c, &err),
		  0);
	CHECK_STR(c.sys.hostname, "node-1.example");
	CHECK_INT(c.sys.n_interfaces, 2);
	CHECK(c.sys.interfaces[0].dhcp && c.sys.interfaces[0].autoconf);
	i = &c.sys.interfaces[1];
	CHECK_STR(i->name, "eth1");
	CHECK(!i->dhcp && !i->autoconf);
	CHECK_INT(i->n_addresses, 2);
	CHECK_INT(i->n_gateways, 2);
	CHECK_INT(i->mtu, 1400);
	CHECK_INT(c.sys.n_dhcp_client, 3);
	CHECK(memcmp(c.sys.dhcp_client, "/sbin/udhcpc\0-i\0%i", 19) == 0);
	CHECK_INT(c.sys.stop_within, 5 * NSEC_PER_SEC);
	for (size_t k = 0; k < ARRAY_SIZE(wrong); k++) {
		(void)str_printf(text, sizeof(text), "system:\n  %s\n", wrong[k]);
		CHECK(load(text, &c, &err) < 0);
		CHECK(strstr(err.text, ":2: system."));
	}
}

/* A node has one, and what that needs must be there. */
static void reads_which_cloud(void)
{
	static const char *const wrong[] = {
		"cloud:\n  ec2:\n    subnet: s\n",
		"cloud:\n  gce:\n    zone: z-a\n",
		"cloud:\n  gce:\n    project: p\n",
		"cloud:\n  gce:\n    project: p/q\n    zone: z-a\n",
		"cloud:\n  gce:\n    credentials: a.json\n    project: p\n    zone: z-a\n",
		"cloud:\n  ec2:\n    region: r\n  gce:\n    project: p\n    zone: z-a\n",
		"cloud:\n  vsphere:\n    datacenter: d\n    endpoint: https://v/sdk\n",
		"cloud:\n  vsphere:\n    datacenter: d\n    resource_pool: p\n",
		"cloud:\n  vsphere:\n    endpoint: https://v/sdk\n    resource_pool: p\n",
		"cloud:\n  vsphere:\n    thumbprint: AA:BB\n",
		("cloud:\n  ec2:\n    region: r\n  vsphere:\n    datacenter: d\n    endpoint: "
		 "https://v/sdk\n    resource_pool: p\n"),
		"cloud:\n  lease: 500ms\n",
		"cloud:\n  lease: 800h\n",
		"cloud:\n  boot_limit: 16m\n",
	};
	struct error err;
	static struct config c;

	CHECK_INT(load("cloud:\n  lease: 2h\n  gce:\n    project: p\n    zone: z-a\n    tags: [ t "
		       "]\n",
		       &c, NULL),
		  0);
	CHECK_STR(c.cloud.provider, "gce");
	CHECK_STR(c.cloud.region, "z-a");
	CHECK_STR(c.cloud.project, "p");
	CHECK(c.cloud.n_groups == 1 && c.cloud.lease == 7200 * NSEC_PER_SEC);
	CHECK_INT(load("cloud:\n  vsphere:\n    datacenter: My%20DC\n    endpoint: "
		       "https://v:8443/sdk\n"
		       "    resource_pool: c/Resources\n    ca_file: /etc/v.pem\n",
		       &c, NULL),
		  0);
	CHECK_STR(c.cloud.provider, "vsphere");
	CHECK_STR(c.cloud.project, "v:8443");
	CHECK_STR(c.cloud.region, "My%20DC");
	CHECK_STR(c.cloud.trust, "/etc/v.pem");
	CHECK_INT(load("cloud:\n  ec2:\n    region: r\n", &c, NULL), 0);
	CHECK_STR(c.cloud.provider, "ec2");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK(load(wrong[i], &c, &err) < 0);
}

static void reads_how_microvms_are_made(void)
{
	static const char *const wrong[] = {
		"vm:\n  memory: 63MiB\n",
		"vm:\n  memory: 2TiB\n",
		"vm:\n  cpus: 0\n",
		"vm:\n  cpus: 65\n",
		"vm:\n  guest: ../x\n",
		"vm:\n  guest: ''\n",
		"vm:\n  pods: instance\n",
		"network:\n  default: yes\n",
		"network: none\n",
		"cri:\n  network: none\n",
		"vm:\n  pods: ''\n",
		"vm: yes\n",
		"vm:\n  templates: 1\n",
		"vm:\n  pool: 65\n",
		"vm:\n  pool: yes\n",
		"vm:\n  pool: 1\n  templates: no\n",
		"vm:\n  hardware: yes\n",
		"vm:\n  nested: auto\n",
		"images:\n  registry_dirs: /a::/b\n",
		"images:\n  registry_dirs: a\n",
		"images:\n  policy: a.json\n",
		"images:\n  parallel_downloads: 33\n",
		"images:\n  parallel_unpacks: 0\n",
		"images:\n  no_progress_timeout: 2h\n",
		"vm:\n  heartbeat: 2s\n",
		"vm:\n  firmware: none\n",
		"trust_domain: ''\n",
		"trust_domain: A.b\n",
		"trust_domain: a/b\n",
	};
	struct error err;
	static struct config c;

	CHECK_INT(load("network:\n  default: none\n", &c, NULL), 0);
	CHECK(!c.network.by_default);
	CHECK_INT(load("network:\n  default: default\n", &c, NULL), 0);
	CHECK(c.network.by_default);
	CHECK_INT(load("cri:\n  network: builtin\n", &c, NULL), 0);
	CHECK(c.cri.builtin_network);
	CHECK_INT(load("", &c, &err), 0);
	CHECK(!c.cri.builtin_network && !c.cri.plugin_network && !c.network.plugins);
	CHECK_INT(c.vm.memory, 256 << 20);
	CHECK_INT(c.vm.cpus, 1);
	CHECK(c.vm.templates);
	CHECK_INT(c.vm.pool, 0);
	CHECK_STR(c.vm.guest, "");
	CHECK(c.network.by_default);
	CHECK_INT(c.vm.pods, INSTANCE_KIND_COUNT);
	CHECK_STR(c.trust_domain, "nacre.local");
	CHECK_INT(load("trust_domain: a-1.b_c\nvm:\n  memory: 64MiB\n  cpus: 64\n"
		       "  guest: 6.1.0-49_x+y\n  pods: vm\n  templates: no\n  "
		       "hardware: no\n  "
		       "heartbeat: no\n",
		       &c, &err),
		  0);
	CHECK_INT(c.vm.memory, 64 << 20);
	CHECK_INT(c.vm.cpus, 64);
	CHECK_STR(c.vm.guest, "6.1.0-49_x+y");
	CHECK_INT(c.vm.pods, INSTANCE_VM);
	CHECK(c.vm.no_hardware);
	CHECK(!c.vm.nested);
	CHECK(!c.vm.templates);
	CHECK(c.vm.heartbeat == NSEC_NEVER);
	CHECK_STR(c.trust_domain, "a-1.b_c");
	CHECK_INT(load("vm:\n  pods: auto\n  pool: 64\n  guest: default\n  hardware: auto\n  "
		       "nested: yes\n  heartbeat: 3s\n",
		       &c, &err),
		  0);
	CHECK_STR(c.vm.guest, "");
	CHECK_INT(c.vm.pods, INSTANCE_KIND_COUNT);
	CHECK_INT(c.vm.pool, 64);
	CHECK(c.vm.nested);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK(load(wrong[i], &c, &err) < 0);
}

static void reads_the_policy_of_logs(void)
{
	struct error err;
	static struct config c;

	CHECK_INT(load("", &c, &err), 0);
	CHECK_INT(c.container_log.max_bytes, 16 << 20);
	CHECK_INT(c.container_log.max_files, 4);
	CHECK(!c.container_log.drop);
	CHECK_INT(c.container_log.block_for, 30 * NSEC_PER_SEC);
	CHECK_INT(load("log:\n  max_size: 64KiB\n  max_files: 1\n  when_full: drop\n"
		       "  block_for: 1ms\n",
		       &c, &err),
		  0);
	CHECK_INT(c.container_log.max_bytes, 65536);
	CHECK_INT(c.container_log.max_files, 1);
	CHECK(c.container_log.drop);
	CHECK_INT(c.container_log.block_for, NSEC_PER_MSEC);
	CHECK_INT(load("log:\n  max_size: 1024GiB\n  max_files: 1000\n  block_for: forever\n", &c,
		       &err),
		  0);
	CHECK_INT(c.container_log.block_for, NSEC_NEVER);
	CHECK_INT(load("log:\n  max_size: 65535\n", &c, &err), -EINVAL);
	CHECK_INT(load("log:\n  max_size: 1025GiB\n", &c, &err), -EINVAL);
	CHECK_INT(load("log:\n  max_files: 0\n", &c, &err), -EINVAL);
	CHECK_INT(load("log:\n  max_files: 1001\n", &c, &err), -EINVAL);
	CHECK_INT(load("log:\n  when_full: wait\n", &c, &err), -EINVAL);
	CHECK_INT(load("log:\n  block_for: 0\n", &c, &err), -EINVAL);
	CHECK_INT(load("log:\n  block_for: 25h\n", &c, &err), -EINVAL);
}

static void takes_an_empty_file(void)
{
	struct error err;
	static struct config c;

	CHECK_INT(load("", &c, &err), 0);
	CHECK_INT(load("# nothing\n", &c, &err), 0);
	CHECK_INT(c.log_level, LOG_INFO);
	CHECK_INT(c.images.root, IMAGE_ROOT_OVERLAY);
}

static void names_line_and_key(void)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "cgroup: ''\n", "cgroup: \"\" is not an absolute path" },
		{ "images:\n  reserve: much\n",
		  "images.reserve: \"much\" is not a size such as 256MiB, up to 1048576GiB, or 0" },
		{ "images:\n  root: EROFS\n",
		  "images.root: \"EROFS\" is not overlay, erofs or auto" },
		{ "security:\n  profile: privileged\n",
		  "security.profile: \"privileged\" is not baseline or restricted" },
		{ "cgroup: !/a\nspare: no\n", "cgroup: \"\" is not an absolute path" },
		{ "libexec: /a/..\n", "libexec: \"/a/..\" is not an absolute path" },
		{ "libexec: \"/a\\0b\"\n", "libexec: the value holds a NUL" },
		{ "drain: 1s\nbogus: 1\n", ":2: bogus: there is no such key" },
		{ "log:\n  level: info\n  colour: red\n", ":3: log.colour: there is no such key" },
		{ "log:\n  level: loud\n",
		  ":2: log.level: \"loud\" is not debug, info, warn or error" },
		{ "drain: soon\n", ":1: drain: \"soon\" is not a duration such as 10s" },
		{ "drain: 1s\ndrain: 2s\n", ":2: drain: the key is there twice" },
		{ "log: info\n", ":1: log: this is a section, not a value" },
		{ "drain:\n  x: 1\n", ":2: drain: this takes a value, not a section" },
		{ "cgroup: relative\n", ":1: cgroup: \"relative\" is not an absolute path" },
		{ "- a\n", ":1: : lists and aliases have no place here" },
		{ "just words\n", ":1: expected keys and values" },
		{ "log: {level: info\n", ":2: " },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err;
		static struct config c;

		CHECK(load(rows[i].text, &c, &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		if (!strstr(err.text, rows[i].says))
			CHECK_STR(err.text, rows[i].says);
	}
}

static void a_missing_file_is_an_error_when_it_was_named(void)
{
	struct error err = ERROR_INIT;
	static struct config c;

	config_init(&c);
	CHECK_INT(config_load(&c, "/nonexistent/config.yaml", true, &err), 0);
	CHECK_INT(config_load(&c, "/nonexistent/config.yaml", false, &err), -ENOENT);
	CHECK(strstr(err.text, "/nonexistent/config.yaml"));
}

UNIT_MAIN({ "reads where plugins are", reads_where_plugins_are },
	  { "reads every key", reads_every_key },
	  { "reads what pid 1 sets up", reads_what_pid_1_sets_up },
	  { "reads which cloud", reads_which_cloud },
	  { "reads how microVMs are made", reads_how_microvms_are_made },
	  { "reads where metrics are", reads_where_metrics_are },
	  { "reads the policy of logs", reads_the_policy_of_logs },
	  { "takes an empty file", takes_an_empty_file },
	  { "names line and key", names_line_and_key },
	  { "a missing file is an error when it was named",
	    a_missing_file_is_an_error_when_it_was_named })
