/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_BOOTMSG_H
#define NACRE_WIRE_BOOTMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/text/id.h"
#include "base/text/parse.h"

/*
 * Messages between a node and the guest in one of its virtual machines on the boot port, the
 * virtio-serial port BOOTMSG_PORT: a stream of frames, each a length of four bytes and a body of so
 * many. It is spoken before the guest has anything to encrypt with, and by both ends with a
 * stranger: the guest may be hostile, and what it says is checked here before anybody looks at it.
 *
 * The node begins with BOOT, once, or with a NIC or a LINK and then BOOT. The guest answers READY
 * when its keeper serves, or FAILED; FAILED may also come later, and is the last word of a guest
 * that cannot go on. STOP asks the guest to end in order: workloads, then file systems, then the
 * power. A guest that a template is made of (provider/vm_template.h) is the first to speak:
 * WAITING, when all that it can do without BOOT is done.
 */

#define BOOTMSG_PORT "org.nacre.boot"
#define BOOTMSG_VERSION 1

/* Limits that both sides keep. */
#define BOOTMSG_BODY_MAX 65536
#define BOOTMSG_FRAME_MAX (4 + BOOTMSG_BODY_MAX)
#define BOOTMSG_ENTROPY_MIN 64
#define BOOTMSG_ENTROPY_MAX 512
#define BOOTMSG_TOKEN_SIZE 32
#define BOOTMSG_BUNDLE_MAX 8 /* certificates */
#define BOOTMSG_CERT_MAX 4096
#define BOOTMSG_SPIFFE_MAX 2048 /* bytes of an id */
#define BOOTMSG_MTU_MIN 576
#define BOOTMSG_WORD_MAX 128 /* bytes of a version, of a kernel's release */
#define BOOTMSG_ADDRESS_MAX 64
#define BOOTMSG_DEVICE_MAX 15 /* bytes of a device's name */
/* How old BOOT may be for a machine in a cloud: so long its token enrols. */
#define BOOTMSG_FAR_LIFE_NS (UINT64_C(900) * 1000000000)

enum bootmsg_type {
	BOOTMSG_BOOT,
	BOOTMSG_READY,
	BOOTMSG_FAILED,
	BOOTMSG_STOP,
	BOOTMSG_WAITING,
	BOOTMSG_NIC,
	BOOTMSG_LINK,
	BOOTMSG_TYPE_COUNT
};

struct bootmsg_blob {
	const uint8_t *data;
	size_t len;
};

struct bootmsg_list {
	struct bootmsg_blob item[BOOTMSG_BUNDLE_MAX];
	size_t n;
};

/* Texts and blobs of a decoded message lie in the bytes that it was read from. */
struct bootmsg {
	enum bootmsg_type type;
	union {
		struct bootmsg_boot {
			struct bootmsg_blob entropy; /* fresh for this boot, never used again */
			uint64_t wall_clock_ns;      /* since 1970 */
			const char *hostname;        /* a label */
			const char *title;           /* of the instance: a path of names */
			const char *instance_id;     /* ID_LEN hexadecimal digits */
			uint8_t address[4];          /* of the guest */
			uint32_t prefix;             /* of its network: 1 to 32 */
			uint8_t gateway[4];          /* the node's end */
			uint8_t mac[6];              /* of the interface with that address */
			uint32_t mtu;                /* BOOTMSG_MTU_MIN to 65535 */
			uint8_t token[BOOTMSG_TOKEN_SIZE]; /* enrols once */
			struct bootmsg_list
				bundle;        /* DER of the certificates to trust; at least one */
			const char *parent_id; /* SPIFFE id that the node's end must have */
			const char *own_id;    /* SPIFFE id that the guest will have */
		} boot;
		struct {
			const char *version; /* of nacre in the guest */
			const char *kernel;  /* release */
		} ready;
		struct {
			const char *text; /* a sentence for a person */
		} failed;
		struct bootmsg_nic {
			uint8_t mac[6];      /* of the second network device */
			uint32_t mtu;        /* BOOTMSG_MTU_MIN to 65535 */
			const char *address; /* with its length; "": none */
			const char *gateway; /* of everybody else; "": none */
		} nic;
		/* Of a pod on a network of the node: one device, as the pod of a port has it
		 * (net/port/port.h). */
		struct bootmsg_link {
			uint8_t device[6];  /* the MAC that it has */
			uint8_t mac[6];     /* that it gets */
			uint32_t mtu;       /* BOOTMSG_MTU_MIN to 65535 */
			uint32_t leads_out; /* 1: the default routes are by it */
			const char *name;   /* that it gets */
			/* Of IPv4, with the length of its network; "": they come later, and the
			 * node reaches the guest by a device of another name. */
			const char *address;
			const char *gateway;  /* of IPv4; "" likewise */
			const char *address6; /* with the length of its network; "": none */
		} link;
	};
};

/* Whether it is for a machine in a cloud, which has its address from there and reaches the node
 * over networks of others: address, gateway and MAC are zeroes. */
static inline bool bootmsg_is_far(const struct bootmsg_boot *b)
{
	return !(b->address[0] | b->address[1] | b->address[2] | b->address[3]);
}

/* Writes the whole frame into `frame`, which has room for BOOTMSG_FRAME_MAX bytes: its length, or
 * ERROR_INVALID where a member breaks its rule. */
int bootmsg_encode(const struct bootmsg *m, uint8_t *frame, struct error *err);

/*
 * The frame at the front of a stream: the bytes that it takes, or 0 while it is not there whole.
 * -EBADMSG with what is wrong, as soon as it shows; nothing behind it can be read then.
 * -EPROTONOSUPPORT for a frame of another BOOTMSG_VERSION. data must live as long as *ret.
 */
int bootmsg_next(struct bootmsg *ret, const uint8_t *data, size_t len, struct error *err);

#endif
