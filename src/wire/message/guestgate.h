/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_GUESTGATE_H
#define NACRE_WIRE_GUESTGATE_H

/*
 * `nacre-gate guest` as pid 1 of a guest starts it: the program through which the node reaches the
 * guest's keeper. It makes its key in this process, enrols with the token of BOOT, and copies what
 * its verified parent says to the keeper and back. It is not started again: the token is spent, so
 * its end is the end of the guest.
 */

/* Where it is reached, on the address of BOOT. */
#define GUESTGATE_PORT 7474

/* Seconds that a handshake with it may take; in a machine that is emulated in an emulated one. They
 * are its argument, and one of the node's end; a guest finds them among the words of its kernel
 * where they are not the usual ones. */
#define GUESTGATE_PATIENCE "10"
#define GUESTGATE_PATIENCE_TWICE "120"
#define GUESTGATE_PATIENCE_WORD "NACRE_PATIENCE"
/* Seconds for which one in a cloud goes on without a new certificate from its node; its argument
 * likewise. A node that never comes back leaves no machine for longer than that. */
#define GUESTGATE_LEASE "86400"
#define GUESTGATE_LEASE_WORD "NACRE_LEASE"

/* The descriptors that it finds open. */
enum guestgate_fd {
	GUESTGATE_FD_LISTEN = 3, /* TCP, bound and listening before the guest says READY */
	GUESTGATE_FD_BOOT, /* a file with the frame BOOT (wire/message/bootmsg.h), from its start */
	GUESTGATE_FD_KEEPER, /* a directory with rpc.sock of the keeper */
	GUESTGATE_FD_END_OF_LIST
};

#endif
