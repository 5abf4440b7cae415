/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_PLATFORM_H
#define NACRE_IMAGE_PLATFORM_H

#include <sys/utsname.h>

/* The architecture of this machine as OCI names it: "amd64". Lives as long as *u. */
const char *platform_architecture(const struct utsname *u);

#endif
