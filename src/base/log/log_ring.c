/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log/log_ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/macros.h"

static struct log_ring {
	pthread_mutex_t lock;
	struct log_ring_line lines[LOG_RING_LINES];
	uint64_t next; /* number of the next line; 0: nothing is kept */
	int wake_fd;
} ring = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A line that there is no memory for is missing. */
static void log_ring_take(enum log_level level, const char *line, size_t len)
{
	char *text = level == LOG_DEBUG ? NULL : strndup(line, len);
	struct log_ring_line *at;
	uint64_t one = 1;

	if (!text)
		return;
	(void)pthread_mutex_lock(&ring.lock);
	if (ring.next == 0) {
		free(text);
	} else {
		at = &ring.lines[ring.next % LOG_RING_LINES];
		free(at->text);
		*at = (struct log_ring_line){ ring.next++, clock_real(), text };
		if (write(ring.wake_fd, &one, sizeof(one)) < 0) {
			/* It is full, and who reads it is woken by that too. */
		}
	}
	(void)pthread_mutex_unlock(&ring.lock);
}

int log_ring_open(int wake_fd)
{
	if (ring.next)
		return -EBUSY;
	(void)pthread_mutex_lock(&ring.lock);
	ring.next = 1;
	ring.wake_fd = wake_fd;
	(void)pthread_mutex_unlock(&ring.lock);
	log_set_tap(log_ring_take);
	return 0;
}

void log_ring_close(void)
{
	log_set_tap(NULL);
	(void)pthread_mutex_lock(&ring.lock);
	for (size_t i = 0; i < LOG_RING_LINES; i++) {
		free(ring.lines[i].text);
		ring.lines[i] = (struct log_ring_line){ .text = NULL };
	}
	ring.next = 0;
	(void)pthread_mutex_unlock(&ring.lock);
}

int log_ring_read(struct log_ring_line *line)
{
	uint64_t first, number;
	int r = 0;

	(void)pthread_mutex_lock(&ring.lock);
	first = ring.next > LOG_RING_LINES ? ring.next - LOG_RING_LINES : 1;
	number = MAX(line->number, first);
	if (number < ring.next) {
		const struct log_ring_line *at = &ring.lines[number % LOG_RING_LINES];

		*line = (struct log_ring_line){ number, at->at, strdup(at->text) };
		r = line->text ? 1 : -ENOMEM;
	}
	(void)pthread_mutex_unlock(&ring.lock);
	return r;
}
