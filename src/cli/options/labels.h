/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_LABELS_H
#define NACRE_CLI_LABELS_H

#include "api/nacre.pb-c.h"
#include "api/runtime.pb-c.h"
#include "base/text/args.h"
#include "base/text/json.h"

/* Labels of what is made, and as they are shown. */

/* Rows for the options of a command. */
#define OPTIONS_LABELS                                                                             \
	{ "label", 'l', "NAME[=VALUE]", "give it a label; may be given again" },                   \
	{                                                                                          \
		"label-file", 0, "FILE", "give it labels, from lines NAME[=VALUE]"                 \
	}

struct labels {
	Aurae__Runtime__V0__Meta__LabelsEntry **list;
	size_t n;
};

/* Puts what --label-file and --label ask for into the message, in this order: a later value takes
 * the place of an earlier one. The message lasts as long as *l. ERROR_INVALID names the option. */
int labels_init(struct labels *l, Aurae__Runtime__V0__Meta *meta, const struct args *a,
		struct error *err);
void labels_done(struct labels *l);

/* As an object. */
void labels_view(struct json *j, const char *key, const Nacre__V1__Workload *w);
/* "a=b,c=d", as docker writes it. The caller frees it. */
char *labels_words(const Nacre__V1__Workload *w);

#endif
