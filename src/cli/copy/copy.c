/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/copy.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/output/alloc.h"
#include "cli/output/text.h"
#include "cli/table/command.h"

void copy_warn(struct copy *c, const char *path, const char *why)
{
	progress_done(&c->progress);
	(void)cli_complain("cp: %s is left out: %s", path, why);
	c->n_left_out++;
}

void copy_tell(struct copy *c)
{
	char bytes[TEXT_SIZE];

	if (c->quiet)
		return;
	text_bytes(bytes, c->n_bytes);
	progress_tell(&c->progress, "%" PRIu64 " %s, %s: %s", c->n_entries,
		      c->n_entries == 1 ? "entry" : "entries", bytes, c->file ? c->file : "");
}

void copy_set_file(struct copy *c, const char *path)
{
	free(c->file);
	c->file = xstrdup(path);
}
