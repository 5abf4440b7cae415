/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log/log_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "unit.h"

static void lines_are_kept_in_order(void)
{
	_cleanup_fd_ int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct log_ring_line line = { .number = 0 };
	uint64_t n = 0;

	log_configure(-1, LOG_DEBUG, LOG_FORM_TEXT);
	CHECK_INT(log_ring_open(wake_fd), 0);
	CHECK_INT(log_ring_open(wake_fd), -EBUSY);
	CHECK_INT(log_ring_read(&line), 0);
	log_debug("nobody is told");
	log_info("the first", LOG_INT("n", 1));
	log_warn("the second");
	CHECK_INT(log_ring_read(&line), 1);
	CHECK_INT((int64_t)line.number, 1);
	CHECK(strstr(line.text, " info the first n=1") != NULL);
	CHECK(line.at > 0);
	free(line.text);
	line.number++;
	CHECK_INT(log_ring_read(&line), 1);
	CHECK(strstr(line.text, " warn the second") != NULL);
	free(line.text);
	line.number++;
	CHECK_INT(log_ring_read(&line), 0);
	CHECK_INT((int64_t)read(wake_fd, &n, sizeof(n)), (int64_t)sizeof(n));
	CHECK_INT((int64_t)n, 2);
	log_ring_close();
	log_info("after it");
	CHECK_INT(log_ring_read(&line), 0);
}

static void old_ones_go(void)
{
	_cleanup_fd_ int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct log_ring_line line = { .number = 1 };

	CHECK_INT(log_ring_open(wake_fd), 0);
	for (int i = 1; i <= LOG_RING_LINES + 10; i++)
		log_info("line", LOG_INT("n", i));
	CHECK_INT(log_ring_read(&line), 1);
	CHECK_INT((int64_t)line.number, 11);
	CHECK(strstr(line.text, "n=11") != NULL);
	free(line.text);
	log_ring_close();
	log_configure(STDERR_FILENO, LOG_INFO, LOG_FORM_TEXT);
}

UNIT_MAIN({ "lines are kept in order", lines_are_kept_in_order }, { "old lines go", old_ones_go })
