/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_SYSIO_RAW_H
#define NACRE_BASE_SYSIO_RAW_H

/* The includes and definitions that both forms of sysio need for system calls. Nobody else includes
 * this. */

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#endif
