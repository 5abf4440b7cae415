/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_WHITEOUT_H
#define NACRE_FETCH_WHITEOUT_H

#include "base/log/error.h"
#include "fetch/unpack/implied.h"
#include "fetch/unpack/notes.h"

/*
 * The whiteouts of a layer, which say what of the layers below does not count. In the unpacked
 * layer a removed name is a character device 0:0, an opaque directory has the attribute
 * user.overlay.opaque.
 *
 * They are noted while the layer is unpacked, and made when its tree is known: in whatever order
 * entries and whiteouts came, what the layer has counts, a directory of it being opaque then. A
 * whiteout brings no name into being but the directories above it, and none below a name that
 * another whiteout removes, or that is no directory in this layer.
 */

#define WHITEOUT_PREFIX ".wh."
#define WHITEOUT_OPAQUE ".wh..wh..opq"

/* path: of the entry, normalised (place.h); its name begins with the prefix and is valid. */
int whiteout_note(struct notes *whiteouts, const char *path, struct error *err);
/* After the last entry. */
int whiteout_make_all(struct notes *whiteouts, struct implied *implied, struct error *err);

#endif
