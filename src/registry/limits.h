/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_LIMITS_H
#define NACRE_REGISTRY_LIMITS_H

/* Limits of the data that a registry can make us keep, of the links that we follow, and of the time
 * that we wait. */

#define REGISTRY_HEADERS_MAX (64 << 10) /* of one answer, all together */
#define REGISTRY_TOKEN_MAX (16 << 10)   /* one token, and the answer that brings it twice that */
#define REGISTRY_REDIRECTS_MAX 10
#define REGISTRY_PAGES_MAX 1000
#define REGISTRY_FILE_MAX (1 << 20) /* hosts.toml, a certificate, a key, the CA bundle */
#define REGISTRY_HOSTS_MAX 64       /* of one hosts.toml */

/* Where the core says nothing else (wire/message/fetchmsg.h, NETWORK). */
#define REGISTRY_CONNECTIONS 6
#define REGISTRY_STALL_MS 60000
#define REGISTRY_MIN_RATE 1024
#define REGISTRY_RETRIES 5
#define REGISTRY_RETRY_MS 100
#define REGISTRY_RETRY_WAIT_MS 30000
/* So long, at least, a registry that answers 429 is asked again before that is given up. */
#define REGISTRY_THROTTLED_MS 30000
#define REGISTRY_CONNECT_MS 30000

#endif
