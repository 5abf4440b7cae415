/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_IMPLIED_H
#define NACRE_WIRE_IMPLIED_H

/*
 * Directories that a layer has because something lies in them, and says nothing about: `tmp` of a
 * layer with `tmp/x` alone. An overlay shows the attributes of the highest directory of a path, so
 * such a one must get those that lie below it, which whoever unpacks a layer does not see. The
 * unpacking helper marks it and writes its path, ended by NUL, into a file in the root of the
 * layer: "" for the root itself. No entry of an archive can have that file's name, nor is the mark
 * one that an overlay shows. The core gives the directories what they lack (image/rootfs/repair.h),
 * and takes file and marks away.
 */
#define IMPLIED_FILE ".wh..wh.nacre-implied"
#define IMPLIED_MARK "user.overlay.nacre-implied"
#define IMPLIED_PATH_MAX 4095

#endif
