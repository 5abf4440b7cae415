/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_self.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/random.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "base/time/clock.h"

#define SELF_MACHINE_ID_BYTES 16
/* Longer than any boot that is waited for. */
#define SELF_CLOCK_AHEAD (300 * NSEC_PER_SEC)

/* Mixes it in, counts it in full, and has the generator that everybody reads start anew from it:
 * until then clones of a template go on giving the same bytes. */
static int self_stir(const struct bootmsg_blob *entropy, struct error *err)
{
	union {
		struct rand_pool_info info;
		uint8_t room[sizeof(struct rand_pool_info) + BOOTMSG_ENTROPY_MAX];
	} pool = { .info = { .entropy_count = (int)entropy->len * 8,
			     .buf_size = (int)entropy->len } };
	_cleanup_fd_ int fd = -1;
	int r = 0;

	fd = sysio_openat(AT_FDCWD, "/dev/random", O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "open /dev/random");
	memcpy(pool.room + sizeof(pool.info), entropy->data, entropy->len);
	if (ioctl(fd, RNDADDENTROPY, &pool) < 0 || ioctl(fd, RNDRESEEDCRNG) < 0)
		r = error_set(err, -errno, "stir the random bytes of the node into the kernel's");
	explicit_bzero(&pool, sizeof(pool));
	return r;
}

static int self_write_etc(const char *name, const char *text, struct error *err)
{
	_cleanup_fd_ int etc_fd = -1, fd = -1;
	int r;

	etc_fd = sysio_openat(AT_FDCWD, "/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (etc_fd < 0)
		return error_set(err, -errno, "open /etc");
	fd = sysio_openat(etc_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
			  0444);
	if (fd < 0)
		return error_set(err, -errno, "make /etc/%s", name);
	r = fd_write_full(fd, text, strlen(text));
	return r < 0 ? error_set(err, r, "write /etc/%s", name) : 0;
}

static int self_machine_id(struct error *err)
{
	uint8_t bytes[SELF_MACHINE_ID_BYTES];
	char text[2 * SELF_MACHINE_ID_BYTES + 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return error_set(err, -errno, "draw a machine id");
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)str_printf(text + 2 * i, sizeof(text) - 2 * i, "%02x", bytes[i]);
	text[sizeof(text) - 2] = '\n';
	text[sizeof(text) - 1] = '\0';
	return self_write_etc("machine-id", text, err);
}

static int self_name(const char *hostname, struct error *err)
{
	char line[NAME_LABEL_MAX + 2];

	if (sethostname(hostname, strlen(hostname)) < 0)
		return error_set(err, -errno, "set the host name");
	(void)str_printf(line, sizeof(line), "%s\n", hostname);
	return self_write_etc("hostname", line, err);
}

/* The node's word is as old as what the machine has done since: one that has booted has a clock
 * from its hardware, which is right, and ahead of that. One that goes on from a template is behind.
 */
static int self_set_clock(nsec_t told, nsec_t ahead, struct error *err)
{
	nsec_t now = clock_real();
	int r;

	if (now >= told && now - told < ahead)
		return 0;
	r = clock_set_real(told);
	return r < 0 ? error_set(err, r, "set the clock") : 0;
}

int guest_self_assume(const struct bootmsg_boot *boot, struct error *err)
{
	int r;

	r = self_stir(&boot->entropy, err);
	if (r < 0)
		return r;
	/* What a cloud makes of an order takes its time: this one is not older than that. */
	r = self_set_clock(boot->wall_clock_ns,
			   bootmsg_is_far(boot) ? (nsec_t)BOOTMSG_FAR_LIFE_NS : SELF_CLOCK_AHEAD,
			   err);
	if (r < 0)
		return r;
	r = self_name(boot->hostname, err);
	if (r < 0)
		return r;
	return self_machine_id(err);
}
