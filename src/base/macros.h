/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_MACROS_H
#define NACRE_BASE_MACROS_H

/*
 * The few macros that everything else is written with. Statement expressions live here and nowhere
 * else.
 */

#include <stddef.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _printf_(fmt, args) __attribute__((format(printf, fmt, args)))
#define _must_check_ __attribute__((warn_unused_result))
#define _unused_ __attribute__((unused))
#define _noreturn_ __attribute__((noreturn))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define MIN(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) min_a_ = (a);                                                        \
		__typeof__(b) min_b_ = (b);                                                        \
		min_a_ < min_b_ ? min_a_ : min_b_;                                                 \
	})

#define MAX(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) max_a_ = (a);                                                        \
		__typeof__(b) max_b_ = (b);                                                        \
		max_a_ > max_b_ ? max_a_ : max_b_;                                                 \
	})

/* The struct of type `type` whose member `member` `ptr` points to. */
#define container_of(ptr, type, member)                                                            \
	({                                                                                         \
		__typeof__(((type *)0)->member) *of_ = (ptr);                                      \
		(type *)(void *)((char *)of_ - offsetof(type, member));                            \
	})

/* Hands an owned pointer on: yields it and leaves NULL behind, so that its cleanup does nothing. */
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

/* The same for a descriptor: leaves -1 behind. */
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

#endif
