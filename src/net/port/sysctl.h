/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_SYSCTL_H
#define NACRE_NET_SYSCTL_H

#include "base/log/error.h"

/*
 * The settings below /proc/sys/net of the network namespace in which the calling thread stands, in
 * a /proc of our own, which nobody can have mounted upon. Names are relative to that directory:
 * "ipv6/conf/all/forwarding".
 */

/* A detached mount; it shows the namespace of whoever opens a file in it. */
int sysctl_open(struct error *err) _must_check_;
/* -ENOENT: this kernel, or a link of that name, has no such setting. */
int sysctl_read(int proc_fd, const char *name, long *ret, struct error *err) _must_check_;
/* The same. */
int sysctl_write(int proc_fd, const char *name, const char *value, struct error *err) _must_check_;

#endif
