/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "oci/cmd/handlers.h"
#include "oci/config/given.h"

/* A container as ours are: the default capabilities, masked paths and mounts of the house. */

static void spec_strings(struct json *j, const char *key, const char *const *list)
{
	json_put_array(j, key);
	for (; *list; list++)
		json_put_string(j, NULL, *list);
	json_put_end(j);
}

static void spec_process(struct json *j)
{
	static const char *const caps[] = { "CAP_CHOWN",   "CAP_DAC_OVERRIDE",     "CAP_FSETID",
					    "CAP_FOWNER",  "CAP_SETGID",           "CAP_SETUID",
					    "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_KILL",
					    NULL };
	static const char *const env[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm",
		NULL
	};
	static const char *const sets[] = { "bounding", "effective", "permitted" };
	static const char *const args[] = { "sh", NULL };

	json_put_object(j, "process");
	json_put_bool(j, "terminal", true);
	json_put_object(j, "user");
	json_put_integer(j, "uid", 0);
	json_put_integer(j, "gid", 0);
	json_put_end(j);
	spec_strings(j, "args", args);
	spec_strings(j, "env", env);
	json_put_string(j, "cwd", "/");
	json_put_object(j, "capabilities");
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		spec_strings(j, sets[i], caps);
	json_put_end(j);
	json_put_array(j, "rlimits");
	json_put_object(j, NULL);
	json_put_string(j, "type", "RLIMIT_NOFILE");
	json_put_integer(j, "hard", 1024);
	json_put_integer(j, "soft", 1024);
	json_put_end(j);
	json_put_end(j);
	json_put_bool(j, "noNewPrivileges", true);
	json_put_end(j);
}

struct spec_mount {
	const char *destination, *type, *source;
	const char *options[9];
};

static const struct spec_mount spec_proc = {
	"/proc", "proc", "proc", { "nosuid", "noexec", "nodev", NULL }
};
static const struct spec_mount spec_mounts[] = {
	{ "/dev", "tmpfs", "tmpfs", { "nosuid", "strictatime", "mode=755", "size=65536k", NULL } },
	{ "/dev/pts",
	  "devpts",
	  "devpts",
	  { "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5", NULL } },
	{ "/dev/shm",
	  "tmpfs",
	  "shm",
	  { "nosuid", "noexec", "nodev", "mode=1777", "size=65536k", NULL } },
	{ "/dev/mqueue", "mqueue", "mqueue", { "nosuid", "noexec", "nodev", NULL } },
	{ "/sys", "sysfs", "sysfs", { "nosuid", "noexec", "nodev", "ro", NULL } },
	{ "/sys/fs/cgroup",
	  "cgroup",
	  "cgroup",
	  { "nosuid", "noexec", "nodev", "relatime", "ro", NULL } },
};

static void spec_mount(struct json *j, const struct spec_mount *m)
{
	json_put_object(j, NULL);
	json_put_string(j, "destination", m->destination);
	json_put_string(j, "type", m->type);
	json_put_string(j, "source", m->source);
	spec_strings(j, "options", m->options);
	json_put_end(j);
}

static void spec_id_map(struct json *j, const char *key, unsigned outside)
{
	json_put_array(j, key);
	json_put_object(j, NULL);
	json_put_integer(j, "containerID", 0);
	json_put_unsigned(j, "hostID", outside);
	json_put_integer(j, "size", 1);
	json_put_end(j);
	json_put_end(j);
}

static void spec_linux(struct json *j, bool rootless)
{
	static const char *const namespaces[] = { "pid",   "network", "ipc", "uts",
						  "mount", "cgroup",  "user" };
	static const char *const masked[] = { "/proc/acpi",
					      "/proc/asound",
					      "/proc/kcore",
					      "/proc/keys",
					      "/proc/latency_stats",
					      "/proc/timer_list",
					      "/proc/timer_stats",
					      "/proc/sched_debug",
					      "/sys/firmware",
					      "/proc/scsi",
					      "/proc/interrupts",
					      "/sys/devices/virtual/powercap",
					      NULL };
	static const char *const readonly[] = { "/proc/bus",           "/proc/fs",
						"/proc/irq",           "/proc/sys",
						"/proc/sysrq-trigger", NULL };

	json_put_object(j, "linux");
	if (rootless) {
		spec_id_map(j, "uidMappings", geteuid());
		spec_id_map(j, "gidMappings", getegid());
	}
	json_put_array(j, "namespaces");
	for (size_t i = 0; i < ARRAY_SIZE(namespaces) - !rootless; i++) {
		json_put_object(j, NULL);
		json_put_string(j, "type", namespaces[i]);
		json_put_end(j);
	}
	json_put_end(j);
	spec_strings(j, "maskedPaths", masked);
	spec_strings(j, "readonlyPaths", readonly);
	json_put_end(j);
}

static void spec_document(struct json *j, bool rootless)
{
	json_put_object(j, NULL);
	json_put_string(j, "ociVersion", "1.2.0");
	spec_process(j);
	json_put_object(j, "root");
	json_put_string(j, "path", "rootfs");
	json_put_bool(j, "readonly", true);
	json_put_end(j);
	json_put_string(j, "hostname", "nacre");
	json_put_array(j, "mounts");
	spec_mount(j, &spec_proc);
	for (size_t i = 0; i < ARRAY_SIZE(spec_mounts); i++)
		spec_mount(j, &spec_mounts[i]);
	json_put_end(j);
	spec_linux(j, rootless);
	json_put_end(j);
}

int oci_spec(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_str_ char *text = NULL;
	const char *bundle = args_value(args, "bundle") ?: ".";
	_cleanup_str_ char *path = str_format("%s/config.json", bundle);
	_cleanup_fd_ int fd = -1;
	struct json j = JSON_INIT(NULL);
	size_t len = 0;
	int r;

	(void)oci;
	j.to = open_memstream(&text, &len);
	if (!path || !j.to)
		return error_set(err, -ENOMEM, "write config.json");
	spec_document(&j, args_flag(args, "rootless"));
	if (fclose(j.to) != 0)
		return error_set(err, -ENOMEM, "write config.json");
	fd = given_open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		return error_set(err, fd, "make %s", path);
	r = fd_write_full(fd, text, len);
	return r < 0 ? error_set(err, r, "write %s", path) : EXIT_SUCCESS;
}
