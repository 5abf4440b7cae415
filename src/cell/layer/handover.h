/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_HANDOVER_H
#define NACRE_CELL_HANDOVER_H

#include "base/log/error.h"
#include "base/process/handover.h"
#include "cell/container/cell.h"
#include "cell/container/container.h"

/*
 * A cell and its containers on their way to the next program of their keeper
 * (base/process/handover.h). Every member of the structs is in a table of handover.c, or is named
 * there with the reason why it is not; tools/handover looks whether one was forgotten.
 */

/* The cell must be BARE or MADE, and no container of it busy. 0, -ENOMEM or -ENOBUFS. */
int handover_write_cell(struct handover_writer *w, const struct cell *cell) _must_check_;

/* The cell and its containers, filled; nothing is listened to yet (container_resume()). The
 * descriptors are as those of cell_new(). */
int handover_read_cell(struct handover_reader *r, const struct container_host *host, int layer_fd,
		       int shm_parent_fd, int shm_fd, struct cell **ret, struct error *err);
/* Frees a cell that was read, and its containers. Nothing is killed or unmounted. */
void handover_drop_cell(struct cell *cell);

#endif
