/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_SCRAPE_H
#define NACRE_WIRE_SCRAPE_H

#include <stddef.h>

/* Of one page of metrics, as the daemon makes it and nacre-gate takes it. */
#define SCRAPE_PAGE_MAX ((size_t)64 * 1024 * 1024)

#endif
