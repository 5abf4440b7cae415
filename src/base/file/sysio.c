/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/sysio.h"

#include "base/file/sysio_raw.h"

#define SYSIO_BEFORE(name, failed)
#include "base/file/sysio_calls.h"
