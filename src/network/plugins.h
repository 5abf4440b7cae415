/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_PLUGINS_H
#define NACRE_NETWORK_PLUGINS_H

#include "base/log/error.h"
#include "network/attachment.h"

/*
 * Networks that plugins of CNI make (doc/decisions/cni.md). A program, nacre-cni, runs them, reads
 * what they write and keeps a record of what is to be undone; here is the daemon's end of the
 * conversation (wire/message/cnimsg.h), which never waits for it. An attachment of such a network
 * is one as any other, and its network is a struct of its own, of no number and in no list.
 *
 * The program has the privilege that the daemon had when it started it, so it is started before the
 * daemon gives that up, and not again. It ends with the daemon.
 */

struct loop;
struct plugins;

struct plugins_config {
	struct loop *loop;
	const char *program;   /* path of nacre-cni */
	const char *conf_dir;  /* of configurations */
	const char *bin_dirs;  /* of plugins, parted by ':' */
	const char *state_dir; /* of its records */
	const char *netns_dir; /* where network namespaces get names */
};

/* err NULL for success. */
typedef void (*plugins_fn)(void *userdata, const struct error *err);

/* Starts the program, and tells it nothing yet. */
int plugins_new(struct plugins **ret, const struct plugins_config *config, struct error *err);
/* All attachments to such networks are adopted by now: any other one that has a record is undone.
 * Once. -ENOMEM. */
int plugins_begin(struct plugins *p);
/* Attachments that it was at are freed. NULL is fine. */
struct plugins *plugins_free(struct plugins *p);

/* Whether the first network can be had: 0, or ERROR_PRECONDITION with the reason. */
int plugins_is_ready(const struct plugins *p, struct error *err);

/* Private to this area: what network/attach.h and network/plug.h do with an attachment of plugins.
 */
int plugins_attach(struct plugins *p, const struct network_wish *wish, const char *owner,
		   struct attachment **ret, struct error *err);
/* One with nothing but who it is and where it is to be. */
int plugins_new_attachment(struct plugins *p, const struct network_wish *wish, const char *owner,
			   struct attachment **ret, struct error *err);
/* Takes up an attachment that was read from its text: PLUGGED where it has an address, else
 * RESERVED again. */
void plugins_adopt(struct plugins *p, struct attachment *a);
/* -ENOMEM at once, netns_fd is taken over. */
int plugins_plug(struct attachment *a, int netns_fd, plugins_fn done, void *userdata);
/* -ENOMEM at once: what there is of it goes when the daemon starts again. */
int plugins_unplug(struct attachment *a, plugins_fn done, void *userdata);

#endif
