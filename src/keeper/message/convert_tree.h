/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CONVERT_TREE_H
#define NACRE_KEEPER_CONVERT_TREE_H

#include "api/instance.pb-c.h"
#include "base/file/tree.h"

/* Files as messages, and back: what is read may come from anybody. */

struct tree_list;

#define CONVERT_PATH_MAX 4095U

/* Points into *from. */
void convert_entry(Nacre__V1__CopyEntry *to, const struct tree_entry *from);
/* Its path and target are copies, which take the place of *path and *target; its map lies in the
 * message. ERROR_INVALID names the field, "entry.path". */
int convert_entry_back(struct tree_entry *ret, const Nacre__V1__CopyEntry *from, char **path,
		       char **target, struct error *err);

/* All of a volume, for the request: it points into the list. Release with convert_files_done().
 * -ENOMEM. */
struct convert_files {
	Nacre__Instance__V1__VolumeFile *messages, **list;
	Nacre__V1__CopyEntry *entries;
};
int convert_files(struct convert_files *ret, Nacre__Instance__V1__PutFilesRequest *to,
		  const struct tree_list *from);
void convert_files_done(struct convert_files *f);
/* A list of its own, in the limits of a volume (cell/spec.h). ERROR_INVALID names `volume` or
 * `files`. */
int convert_files_back(struct tree_list *ret, const Nacre__Instance__V1__PutFilesRequest *from,
		       struct error *err);

#endif
