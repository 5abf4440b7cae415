/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CLIENT_FILES_H
#define NACRE_KEEPER_CLIENT_FILES_H

#include "instance/peer.h"

/* Of a peer: volumes that are given as the files that are in them, and files of its containers. */

bool client_takes_files(struct peer *p);
bool client_takes_hosts(struct peer *p);
void client_put_hosts(struct peer *p, const char *id, const char *block, peer_done_fn done,
		      void *userdata);
void client_put_link(struct peer *p, const struct peer_link *link, peer_done_fn done,
		     void *userdata);
void client_put_disk(struct peer *p, const struct peer_piece *piece, peer_done_fn done,
		     void *userdata);
void client_put_files(struct peer *p, const char *volume, const struct tree_list *files,
		      peer_done_fn done, void *userdata);

#endif
