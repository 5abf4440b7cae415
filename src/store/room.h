/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STORE_ROOM_H
#define NACRE_STORE_ROOM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Room on a full disk, for what is written then too: a file NAME-reserve beside a database. It goes
 * where a write finds no room, and comes back when there is some again. Private to src/store.
 */
struct store_room {
	int dir_fd; /* of its own; -1: none */
	char name[64];
};

#define STORE_ROOM_INIT                                                                            \
	{                                                                                          \
		.dir_fd = -1                                                                       \
	}

/* 0, or a negative errno: no descriptor is free. */
int store_room_init(struct store_room *r, int dir_fd, const char *name);
void store_room_done(struct store_room *r);
/* Where it is not there; without room it stays so. */
void store_room_make(const struct store_room *r);
/* Whether there was some. */
bool store_room_use(const struct store_room *r);
bool store_room_is_there(const struct store_room *r);
/* So many bytes of a file are allocated behind its end, as far as there is room. */
void store_room_extend(const struct store_room *r, const char *file, size_t bytes);

#endif
