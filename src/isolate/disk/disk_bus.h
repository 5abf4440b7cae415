/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_DISK_BUS_H
#define NACRE_ISOLATE_DISK_BUS_H

/*
 * Gives the next disk that has no driver to virtio_blk, by the numbers of the devices: 0, and it is
 * in /sys/block. -ENODEV where all have one. bus_fd is of /sys/bus/virtio.
 */
int disk_bring_up(int bus_fd);

#endif
