/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_REPAIR_H
#define NACRE_IMAGE_REPAIR_H

#include "base/log/error.h"

/*
 * Gives the directories of an unpacked layer that its archive only implied (wire/message/implied.h)
 * owner, mode, attributes and time of what they lie on; where that is a link, which such a
 * directory hides as any other would, those of the directory that it leads to inside of the image.
 */

/* The repairs that a layer needs; for the root alone `lower_fd` may be the highest layer below. */
enum repair_need { REPAIR_NOTHING, REPAIR_ROOT, REPAIR_MORE };
enum repair_need repair_look(int layer_fd);
/*
 * On the pool. layer_fd: a detached mount, since the list is the helper's word. lower_fd: what the
 * layers below are together, -1 where there are none. A directory that lies on nothing stays as it
 * was made. Nothing is synced.
 */
int repair_run(int layer_fd, int lower_fd, struct error *err);

#endif
