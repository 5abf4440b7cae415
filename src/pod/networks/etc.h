/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_ETC_H
#define NACRE_POD_ETC_H

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "cell/spec.h"
#include "pod/networks/etc_wish.h"

/*
 * The files below /etc that say where a container runs: hosts, hostname and resolv.conf. They are
 * the node's whatever the image has there. This unit makes their text, and nothing else does; a
 * container gets them as files of its own layer, here by etc_fill(), in a machine as files of its
 * spec (pod/workload/remote.h). They are no mounts: programs that replace such a file by another
 * one of the name work, they count as what the container wrote, and a volume on one of them or on
 * /etc covers them.
 *
 * hosts     localhost, and the workload's name as 127.0.0.1, or as its addresses on a network
 * hostname  that name, or another one that was asked for (pod/networks/etc_wish.h)
 *
 * Both with a network of the host's, too; hosts then begins with that of the host. Requested
 * entries stand behind, and then the names of the network. The contents of resolv.conf depend on
 * the network, where no name server was asked for:
 */
enum etc_network {
	/* Loopback alone: no name server (resolvers then ask 127.0.0.1, where a container of the
	 * same pod may listen), and one attempt of a second, since those of musl do not see that
	 * nobody is there. */
	ETC_NETWORK_LOOPBACK,
	/* Another one than the host's, which may lead to its servers (a machine's, or one of the
	 * node's): the host's file without the servers that only the host reaches, and without
	 * those behind the third, with at most 32 search domains in 2048 bytes. Where it has no
	 * others (the stub of systemd-resolved at 127.0.0.53), the file that the stub is fed from;
	 * where there is none, as LOOPBACK. */
	ETC_NETWORK_ROUTED,
	/* The host's: its file, byte for byte. */
	ETC_NETWORK_HOST,
};

#define ETC_FILES 3
/* A file of the host that is larger counts as missing. */
#define ETC_HOST_MAX ((size_t)4 << 20)

struct attachment;

struct etc {
	uint64_t names; /* of etc_make_for(): what stands for the block of names */
	struct buf texts[ETC_FILES];
	struct container_file files[ETC_FILES]; /* with those texts */
};

#define ETC_INIT                                                                                   \
	{                                                                                          \
		.texts = { BUF_INIT, BUF_INIT, BUF_INIT }                                          \
	}

struct etc_place {
	const char *name; /* the workload's */
	enum etc_network network;
	/* The root of the host, for the networks that look there. A file that cannot be read there
	 * counts as missing. */
	int host_fd;
	/* On a network of the node; NULL: it is on none. */
	const struct attachment *attachment;
	const struct etc_wish *wish; /* NULL: none */
	const struct buf *names;     /* block of hosts (pod/networks/names.h); NULL: none */
};

/* Into an etc that has nothing yet. -ENOMEM. */
int etc_make(struct etc *etc, const struct etc_place *place, struct error *err);
void etc_done(struct etc *etc);

/* The same for the containers of a workload that has its instance. */
struct workload;
enum etc_network etc_network_of(const struct workload *w);
int etc_make_for(struct etc *etc, const struct workload *w, struct error *err);

/*
 * Puts the files into a root, in the place of whatever is there (base/file/rootfd.h, rootfd_put()).
 * A link at /etc is resolved inside of the root. Where /etc is no directory there are none.
 * ERROR_PRECONDITION: one of them is a directory with something in it.
 */
int etc_fill(int root_fd, const struct etc *etc, struct error *err);

#endif
