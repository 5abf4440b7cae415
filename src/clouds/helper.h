/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUDS_HELPER_H
#define NACRE_CLOUDS_HELPER_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "wire/message/cloudmsg.h"

/*
 * The daemon's end of the conversation with nacre-cloud (wire/message/cloudmsg.h). The helper is
 * started once, ahead of the first question, and again where it has ended: with a pause that grows
 * to HELPER_PAUSE_MAX while it answers nothing. A question that was not sent yet waits for it. One
 * that was sent fails with ERROR_UNAVAILABLE, and whether the cloud has done it is not known.
 */

struct cloud_helper;
struct cloud_question;
struct loop;

#define HELPER_PAUSE_FIRST (100 * NSEC_PER_MSEC)
#define HELPER_PAUSE_MAX (10 * NSEC_PER_SEC)

struct cloud_helper_config {
	struct loop *loop;
	const char *program; /* path of nacre-cloud; these are copied */
	const char *provider, *project, *region, *endpoint, *profile, *trust;
};

/* Callbacks for the answer to a question. Neither is called within the call that asks. */
struct cloud_question_ops {
	/* Each machine of a list; or NULL. */
	void (*on_vm)(void *userdata, const struct cloudmsg *m);
	/* Once, last: err NULL for success. m: the words of the answer, or NULL without one. */
	void (*on_done)(void *userdata, const struct cloudmsg *m, const struct error *err);
};

int cloud_helper_new(struct cloud_helper **ret, const struct cloud_helper_config *config,
		     struct error *err);
/* Questions end without an answer. Takes NULL, returns NULL. */
struct cloud_helper *cloud_helper_free(struct cloud_helper *h);

/* Takes what is in `words` (cloudmsg_put(), from verb on). The question is forgotten with its
 * on_done. -ENOMEM. */
int cloud_helper_ask(struct cloud_helper *h, struct buf *words,
		     const struct cloud_question_ops *ops, void *userdata,
		     struct cloud_question **ret);
/* Nobody is told of it any more; it is asked all the same. Takes NULL, returns NULL. */
struct cloud_question *cloud_question_forget(struct cloud_question *q);

/* Whether the cloud may have done what failed. m as on_done has it. */
bool cloud_answer_is_unknown(const struct cloudmsg *m);

/* The cloud's clock, in seconds since 1970. false: it has not told its time yet. */
bool cloud_helper_time(const struct cloud_helper *h, uint64_t *ret);

#endif
