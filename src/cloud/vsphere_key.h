/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_VSPHERE_KEY_H
#define NACRE_CLOUD_VSPHERE_KEY_H

#include <stddef.h>

#include "base/log/error.h"

/*
 * The name and the password that a vCenter is shown, from the first of these that has both:
 *
 *   1. the file that the configuration names: lines of "GOVC_USERNAME=NAME" and
 *      "GOVC_PASSWORD=PASSWORD", as a shell reads them, with "export " in front or not
 *   2. GOVC_USERNAME and GOVC_PASSWORD of the environment
 *
 * They are read once, before the sandbox closes.
 */

#define VSPHERE_NAME_MAX 255
#define VSPHERE_PASSWORD_MAX 255

struct vsphere_key {
	char name[VSPHERE_NAME_MAX + 1];
	char password[VSPHERE_PASSWORD_MAX + 1];
};

/* path: of the file; "": none. ERROR_PRECONDITION: there is no key, or the file has none. */
int vsphere_key_open(struct vsphere_key *k, const char *path, struct error *err);
/* ERROR_INVALID with the line, or that one of both is missing. */
int vsphere_key_read(struct vsphere_key *k, const char *text, size_t len, struct error *err);

#endif
