/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_PLUG_H
#define NACRE_POD_PLUG_H

#include "pod/make.h"
#include "pod/model.h"

/*
 * The network of a workload: reserved before it is recorded, made while its keeper makes ready its
 * containers, given back when nothing of it lives any more. Private to this area.
 *
 * A container begins only when its pod is plugged in: the keeper is not given what it waits for
 * (keeper/late.h), or is not asked.
 */

/* Reserves what the spec asks for (network/attachment.h), if anything. */
int plug_reserve(struct workload *w, struct networks *networks, const struct workload_spec *spec,
		 struct error *err);
/* That of an earlier life, from the text of its record. */
int plug_adopt(struct workload *w, struct networks *networks, const char *text, struct error *err);
/* Begins, once the process is there whose network namespace it is. 1: it is not over yet, and the
 * workload's defer is scheduled when it is; 0; or why it failed. */
int plug_is_awaited(struct workload *w, struct error *err);
/* Whether its address is not known before it is plugged in, so that no file can have it. */
bool plug_chooses_address(const struct workload *w);
/* Nothing of it lives any more. Whether that is over for its network too; else the workload's
 * defer is scheduled when it is. */
bool plug_is_released(struct workload *w);

/* The network namespace of the keeper of an instance of kind cell, whose number has not become
 * another process's. ERROR_UNAVAILABLE: it has ended. */
int plug_open_netns(const struct instance *i, struct error *err);

#endif
