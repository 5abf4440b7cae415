/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sysio.h"

#include "base/sysio_raw.h"

#define SYSIO_BEFORE(name, failed)
#include "base/sysio_calls.h"
