/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_AGENT_H
#define NACRE_WIRE_AGENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * Messages to the guest agent of QEMU in a machine, and its answers: lines of JSON. The answers are
 * not trusted: a line of at most AGENT_LINE_MAX bytes, which costs at most AGENT_COST_MAX while it
 * is looked at. Pure.
 */

#define AGENT_PORT "org.qemu.guest_agent.0"
#define AGENT_LINE_MAX 4096
#define AGENT_COST_MAX (256 * 1024)
#define AGENT_WORDS_SIZE 128

enum agent_kind {
	AGENT_NUMBER, /* it has heard "sync" */
	AGENT_REFUSAL,
	AGENT_OTHER, /* an answer that is neither */
};

struct agent_answer {
	enum agent_kind kind;
	uint64_t number;
	char words[AGENT_WORDS_SIZE]; /* of a refusal: printable ASCII */
};

/* A line without its end. ERROR_INVALID for what is no answer at all, -ENOMEM. */
int agent_read(struct agent_answer *ret, const uint8_t *line, size_t len, struct error *err);

/* The words that ask for an answer with that number, and those that end its guest; their length. */
size_t agent_sync(char ret[AGENT_LINE_MAX], uint64_t number);
size_t agent_shutdown(char ret[AGENT_LINE_MAX]);

#endif
