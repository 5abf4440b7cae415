/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_OUTPUT_H
#define NACRE_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

/* The standard streams as a client of them sees them. */

/* A terminal, and its user has not asked for none (NO_COLOR, TERM=dumb). */
bool output_has_color(int fd);
/* The locale says UTF-8: lines may be drawn. */
bool output_has_utf8(void);
/* Columns and lines of a terminal; 0 where fd is none, or does not tell. */
unsigned output_width(int fd);
unsigned output_height(int fd);
/* Writes all of it, waiting where fd is non-blocking. 0 or a negative errno; -EPIPE: nobody reads.
 */
int output_write(int fd, const void *data, size_t len);
/* The same, but given up with -EINTR where wake_fd is readable and nobody takes the output for
 * another patience_ms. */
int output_write_unless(int fd, const void *data, size_t len, int wake_fd, int patience_ms);
/* Writes all that is buffered for standard output. As output_write(). */
int output_flush(void);
/* The same at the end of a command. Returns the exit status: `status`, or CLI_FAILED with a
 * complaint where anything could not be written, now or before. A reader that has gone is no
 * failure. */
int output_finish(int status);

#endif
