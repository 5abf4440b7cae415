/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/probe/probe_record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "vm/driver/jail.h"
#include "vm/qemu/qemu.h"

/* Four lines: of which host it holds, of which guest, the verdict, the sentence. */
#define PROBE_FILE "virtualization"
#define PROBE_FILE_NEW "virtualization.new"
#define PROBE_FILE_MAX 1024
#define PROBE_KEY_MAX 255

static const char *const probe_words[] = {
	[PROBE_UNTRIED] = "untried",
	[PROBE_WORKS] = "works",
	[PROBE_NO_DEVICE] = "no-device",
	[PROBE_NO_GUEST] = "no-guest",
};
static_assert(ARRAY_SIZE(probe_words) == PROBE_VERDICT_COUNT, "a word for each verdict");

/* The kernel by its release and build, QEMU by its file. */
static int probe_key(char key[PROBE_KEY_MAX + 1])
{
	_cleanup_fd_ int host_fd = jail_open_host(NULL), fd = -1;
	struct utsname name;
	struct stat st;

	if (host_fd < 0)
		return host_fd;
	fd = rootfd_open(host_fd, QEMU_PROGRAM, O_PATH, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || uname(&name) < 0)
		return -errno;
	(void)str_printf(key, PROBE_KEY_MAX + 1, "%s %s, QEMU of %" PRIu64 " bytes, %" PRId64,
			 name.release, name.version, (uint64_t)st.st_size,
			 (int64_t)st.st_mtim.tv_sec);
	str_clean(key);
	return 0;
}

void probe_look(struct probe_record *ret)
{
	_cleanup_fd_ int host_fd = jail_open_host(NULL), fd = -1;

	*ret = (struct probe_record){ .verdict = PROBE_UNTRIED };
	fd = host_fd < 0 ? host_fd : rootfd_open(host_fd, "dev/kvm", O_RDWR, 0);
	if (fd < 0) {
		ret->verdict = PROBE_NO_DEVICE;
		(void)snprintf(ret->text, sizeof(ret->text), "/dev/kvm: %s", strerror(-fd));
		return;
	}
	(void)str_copy(ret->text, sizeof(ret->text),
		       "KVM opens; whether a guest comes up has not been tried");
}

static int probe_parse(struct probe_record *ret, char *text, const char *key, const char *of)
{
	char *rest = text;
	const char *host = strsep(&rest, "\n"), *guest = rest ? strsep(&rest, "\n") : NULL;
	const char *word = rest ? strsep(&rest, "\n") : NULL;
	const char *sentence = rest ? strsep(&rest, "\n") : NULL;

	if (!sentence || !str_eq(host, key) || (of && !str_eq(guest, of)) ||
	    !str_is_clean(sentence))
		return -ENOENT;
	for (int i = PROBE_UNTRIED + 1; i < PROBE_VERDICT_COUNT; i++) {
		if (!str_eq(word, probe_words[i]))
			continue;
		ret->verdict = (enum probe_verdict)i;
		(void)str_copy(ret->text, sizeof(ret->text), sentence);
		return 0;
	}
	return -ENOENT;
}

void probe_read(struct probe_record *ret, int root_fd, const char *of)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char key[PROBE_KEY_MAX + 1];

	probe_look(ret);
	if (ret->verdict != PROBE_UNTRIED || probe_key(key) < 0 ||
	    fd_read_file(root_fd, PROBE_FILE, PROBE_FILE_MAX, &b) < 0)
		return;
	text = buf_take_str(&b);
	if (text)
		(void)probe_parse(ret, text, key, of);
}

int probe_write(const struct probe_record *record, int root_fd, const char *of, struct error *err)
{
	char key[PROBE_KEY_MAX + 1], text[PROBE_FILE_MAX];
	_cleanup_fd_ int fd = -1;
	int n, r = probe_key(key);

	if (r < 0)
		return error_set(err, r, "look at QEMU");
	n = str_printf(text, sizeof(text), "%s\n%s\n%s\n%s\n", key, of,
		       probe_words[record->verdict], record->text);
	if (n < 0)
		return error_set(err, n, "write " PROBE_FILE);
	fd = sysio_openat(root_fd, PROBE_FILE_NEW,
			  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return error_set(err, -errno, "make " PROBE_FILE_NEW);
	r = fd_write_full(fd, text, (size_t)n);
	if (r == 0 && sysio_fsync(fd) < 0)
		r = -errno;
	if (r == 0 && sysio_renameat(root_fd, PROBE_FILE_NEW, root_fd, PROBE_FILE) < 0)
		r = -errno;
	return r < 0 ? error_set(err, r, "write " PROBE_FILE) : 0;
}
