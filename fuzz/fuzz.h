/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FUZZ_H
#define NACRE_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * A fuzz target is a file with this function. `make fuzz` links it with libFuzzer; every other
 * build links it with replay.c, which gives it the files of its corpus (fuzz/corpus/NAME), as a
 * unit test. What must hold and does not ends the process by fuzz_need().
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An input that is taken apart bit by bit. */
struct fuzz_input {
	const uint8_t *at;
	size_t len;
};

static inline void fuzz_need(int held)
{
	if (!held)
		abort();
}

static inline unsigned fuzz_byte(struct fuzz_input *in)
{
	if (in->len == 0)
		return 0;
	in->len--;
	return *in->at++;
}

/* At most len bytes. */
static inline struct fuzz_input fuzz_bytes(struct fuzz_input *in, size_t len)
{
	struct fuzz_input part = { .at = in->at, .len = len < in->len ? len : in->len };

	in->at += part.len;
	in->len -= part.len;
	return part;
}

/* Up to the next such byte, which is dropped. */
static inline struct fuzz_input fuzz_until(struct fuzz_input *in, uint8_t byte)
{
	const uint8_t *end = in->len > 0 ? memchr(in->at, byte, in->len) : NULL;
	struct fuzz_input part = fuzz_bytes(in, end ? (size_t)(end - in->at) : in->len);

	if (end)
		(void)fuzz_byte(in);
	return part;
}

/* A copy as a string, to be freed; it ends at the first NUL. */
static inline char *fuzz_str(struct fuzz_input part)
{
	char *s = malloc(part.len + 1);

	fuzz_need(s != NULL);
	if (part.len > 0)
		memcpy(s, part.at, part.len);
	s[part.len] = '\0';
	return s;
}

#endif
