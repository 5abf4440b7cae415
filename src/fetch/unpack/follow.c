/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/follow.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/macros.h"

#define FOLLOW_NUMBERS 64 /* that are taken at once; the last one counts */

static int follow_poll(const struct follow *f, struct error *err)
{
	struct pollfd fds[] = { { .fd = f->pipe_fd, .events = POLLIN },
				{ .fd = f->stop_fd, .events = POLLIN } };
	int n;

	do {
		n = poll(fds, ARRAY_SIZE(fds), -1);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, -errno, "wait for the blob");
	return fds[1].revents ? error_set(err, -ECANCELED, "wait for the blob") : 0;
}

static int follow_take(struct follow *f, const uint64_t *numbers, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (numbers[i] < f->good || numbers[i] > f->size)
			return error_set(err, -EPROTO, "wait for the blob");
		f->good = numbers[i];
	}
	return 0;
}

static int follow_next(struct follow *f, struct error *err)
{
	uint64_t numbers[FOLLOW_NUMBERS];
	ssize_t n;
	int r;

	r = follow_poll(f, err);
	if (r < 0)
		return r;
	do {
		n = read(f->pipe_fd, numbers, sizeof(numbers));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, -errno, "wait for the blob");
	if (n == 0)
		return error_refuse(err, ERROR_INVALID,
				    "the blob is cut: %llu bytes of %llu have come",
				    (unsigned long long)f->good, (unsigned long long)f->size);
	if ((size_t)n % sizeof(numbers[0]))
		return error_set(err, -EPROTO, "wait for the blob");
	return follow_take(f, numbers, (size_t)n / sizeof(numbers[0]), err);
}

int follow_wait(struct follow *f, uint64_t pos, struct error *err)
{
	while (f->good <= pos && f->good < f->size) {
		int r = follow_next(f, err);

		if (r < 0)
			return r;
	}
	return 0;
}
