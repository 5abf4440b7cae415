/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/race_watch.h"

/* Of the sanitizer's runtime, which has no header for them. */
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);

void race_watch_end(void)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}
