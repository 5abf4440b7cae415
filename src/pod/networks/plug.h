/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_PLUG_H
#define NACRE_POD_PLUG_H

#include "base/memory/buf.h"
#include "instance/nic.h"
#include "network/plug.h"
#include "pod/workload/make.h"
#include "pod/workload/model.h"

/*
 * The network of a workload: reserved before it is recorded, made while its keeper makes ready its
 * containers, given back when nothing of it lives any more. Private to this area.
 *
 * A container begins only when its pod is plugged in: the keeper is not given what it waits for
 * (keeper/server/late.h), or is not asked.
 */

/* A record of one that is on no network any more. */
#define PLUG_NONE "none"

/* Reserves what the spec asks for (network/attachment.h), if anything: all of it, or the caller
 * frees what there is of w->attachment. The first one is eth0. */
int plug_reserve(struct workload *w, struct networks *networks, const struct workload_spec *spec,
		 struct error *err);
/* One more, behind those that it has; in the list already. "network": it is on that (ERROR_EXISTS),
 * and what network_attach() says. */
int plug_reserve_one(struct workload *w, struct networks *networks, const struct network_wish *wish,
		     struct attachment **ret, struct error *err);
/* The default routes lead to the first that is not internal, and stays. */
void plug_choose_way_out(struct workload *w);
/* Takes one out that is PLUGGED, with its device, and hands its default routes on, if they were
 * there or may_lead: as attachment_withdraw(). */
int plug_withdraw(struct workload *w, struct attachment *a, bool may_lead, plug_fn done,
		  void *userdata);

/* All of its networks as the text of a record, with its NUL: a line for each, PLUG_NONE, or "" for
 * one that never had any. -ENOMEM. */
int plug_print(const struct workload *w, struct buf *b);
/* Those of an earlier life, from that text. */
int plug_adopt(struct workload *w, struct networks *networks, const char *text, struct error *err);
/* The configuration that the guest of a machine is to give to the device of its pod's network, as
 * far as it can know it before it boots. */
void plug_tell_guest(struct workload *w, struct instance_link *ret);
/* Begins, once the process is there whose network namespace it is. 1: it is not over yet, and the
 * workload's defer is scheduled when it is; 0; or why it failed. */
int plug_is_awaited(struct workload *w, struct error *err);
/* Whether its address is not known before it is plugged in, so that no file can have it. */
bool plug_chooses_address(const struct workload *w);
/* Nothing of it lives any more. Whether that is over for its network too; else the workload's
 * defer is scheduled when it is. */
bool plug_is_released(struct workload *w);

/* Whether the network namespace of one that starts is there, and its own. */
bool plug_has_place(const struct workload *w);
/* Whether that of one that runs can be opened. */
bool plug_stands(const struct workload *w);
/* Whether what its keeper is to be told of it can be told: the namespace of a cell is there. */
bool plug_has_netns(const struct workload *w);

#endif
