/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_GUEST_POWER_H
#define NACRE_INIT_GUEST_POWER_H

#include <stdbool.h>

#include "base/macros.h"

/* Ends the machine with its file systems written. A machine without ACPI cannot be switched off: it
 * is reset, at which a VMM without reboots ends as well. */
_noreturn_ void guest_power_off(void);
/* The same once they are written; restart: the machine starts again. */
_noreturn_ void guest_power_end(bool restart);

/* A descriptor that becomes readable when the power button is pressed, or -ENOENT: no such button
 * here. */
int guest_power_button_open(void);
/* Takes what has come; 1 where the button was pressed. */
int guest_power_button_read(int fd);

#endif
