/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_PEM_H
#define NACRE_CLI_PEM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes as PEM has them (RFC 7468), a text that the caller frees. label: "CERTIFICATE". */
/* Certificates in DER, one behind the other, each as its own block. */
char *pem_certificates(const uint8_t *data, size_t len);
char *pem_text(const char *label, const uint8_t *data, size_t len);

#endif
