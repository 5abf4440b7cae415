/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_WHEN_H
#define NACRE_CLI_WHEN_H

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * A moment as users type it, in the forms that docker takes:
 *
 *   1h30m, 10s, 1.5h          so long ago: decimal numbers, each with a unit (h, m, s, ms, us, ns)
 *   1136073845, 1136073845.5  seconds since 1970
 *   2026-01-31T10:00:00.5Z    RFC 3339; the fraction, the seconds, the minutes and the whole time
 *                             of the day may be left out. Without a zone the time is local
 *
 * now: the wall clock. ERROR_INVALID with the option's name in front.
 */
int when_parse(const char *option, const char *text, nsec_t now, nsec_t *ret, struct error *err);

#endif
