/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/race_watch.h"

void race_watch_end(void)
{
}
