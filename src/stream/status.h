/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_STATUS_H
#define NACRE_STREAM_STATUS_H

/* How a command ended, as a Status of Kubernetes in JSON. words NULL: well. exit_code NULL: there
 * is none. The caller frees it; NULL without memory. */
char *status_text(const char *words, const int *exit_code);

#endif
