/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_EXPOSITION_H
#define NACRE_WIRE_EXPOSITION_H

#include <stddef.h>

#include "base/memory/buf.h"

/*
 * Prometheus' text exposition format, version 0.0.4: a value that writes families of samples into a
 * buffer. Samples of a family follow each other, and a family without samples is left out. The
 * first error of the buffer stays, and nothing is written any more.
 */

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"
/* The last line, a comment in this format: what has none was cut off. */
#define EXPOSITION_END "# EOF\n"

struct exposition_label {
	const char *name;
	const char *value; /* UTF-8; NULL: the sample does not have the label */
};

struct exposition {
	struct buf *out;
	const char *name, *kind, *help; /* of the family */
	int result;                     /* 0, -ENOMEM or -ENOBUFS */
	unsigned char has_head;
};

void exposition_init(struct exposition *e, struct buf *out);
/* kind: "counter", "gauge", "histogram". The texts must live until the next family. */
void exposition_family(struct exposition *e, const char *name, const char *kind, const char *help);
/* suffix: "", or of a histogram's parts: "_bucket", "_sum", "_count". */
void exposition_sample(struct exposition *e, const char *suffix,
		       const struct exposition_label *labels, size_t n_labels, double value);
/* EXPOSITION_END; returns e->result. */
int exposition_end(struct exposition *e);

#endif
