/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_CLOUDMSG_H
#define NACRE_WIRE_CLOUDMSG_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/memory/buf.h"
#include "wire/message/keyed.h"

/*
 * Messages between the daemon and nacre-cloud: packets of a SOCK_SEQPACKET socket, of words as
 * keyed.h has them. The helper has read what strangers wrote, so the daemon checks its packets as
 * well.
 *
 * The daemon says first, once:
 *   verb=begin      provider ("ec2", "gce", "vsphere"), region (of gce the zone, of vsphere the
 *                   datacenter), project (of gce; of vsphere the host of endpoint); endpoint and
 *                   profile (of the others the file of a key), "" for the usual ones; trust (of
 *                   vsphere: the file of authorities, or the SHA-256 of a certificate)
 * and then, each with a `number` that the answer has again:
 *   verb=create     token, image, type; provider and project for the record alone; subnet,
 *                   folder, pool, datastore, cpus, memory (MiB; these five of vsphere),
 *                   key-name, instance-profile where there is one; user-data (base64) likewise;
 *                   spot=yes of a machine that the cloud may take back (not of vsphere);
 *                   group and tag ("KEY=VALUE") any number of times; dry-run=yes makes nothing
 *   verb=list       tag, any number of times: machines that have them all
 *   verb=terminate  id
 *   verb=console    id
 *   verb=tag        id, any number of times; tag ("KEY=VALUE"), which they all get
 *
 * The answer to list is any number of verb=vm (number, id, token, state, type, address, zone,
 * launched, reason, tag) in front of the last message, which each request gets once:
 *   verb=done       number; where it failed kind (enum error_kind), text, and code where the cloud
 *                   gave one; unknown=yes where the cloud may have done it all the same;
 *                   doubt=yes where asking again tells no more, and a list does. create:
 *                   id, state, type, address, zone. console: output (base64), time.
 * Each has `now` where the cloud has told the time with an answer: seconds since 1970.
 */

#define CLOUDMSG_SIZE_MAX 131072
#define CLOUDMSG_WORDS_MAX 256
#define CLOUDMSG_CONSOLE_MAX 65536 /* bytes behind `output`, the last ones */
/* A text of the cloud: an id, a state, an address, a zone, a type. */
#define CLOUDMSG_TEXT_MAX 127

struct cloudmsg {
	struct keyed words;
};

/* As cnimsg.h. */
int cloudmsg_put(struct buf *b, const char *key, const char *fmt, ...) _printf_(3, 4) _must_check_;
int cloudmsg_read(struct cloudmsg *ret, const void *data, size_t len);
const char *cloudmsg_get(const struct cloudmsg *m, const char *key);
const char *cloudmsg_next(const struct cloudmsg *m, const char *key, const char **at);

#endif
