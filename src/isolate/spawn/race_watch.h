/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_RACE_WATCH_H
#define NACRE_ISOLATE_RACE_WATCH_H

/*
 * A build with ThreadSanitizer, and a process that was cloned by the raw call: its memory and its
 * descriptors are a copy, the sanitizer's records of them with it. What a thread of the parent did
 * at that moment would be a race with the one thread that there is here. Does nothing in any other
 * build.
 */

/* Ends the watch in this process, until it executes a program. */
void race_watch_end(void);

#endif
