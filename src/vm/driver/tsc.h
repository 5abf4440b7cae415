/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_TSC_H
#define NACRE_VM_TSC_H

/*
 * The rate of this host's time stamp counter in kHz. A guest under emulation reads the host's
 * counter, and one that measures it at boot hangs whenever the host is busy; so it is told. The
 * first call takes some 20 ms, during which the caller sleeps; later ones remember.
 */
unsigned tsc_khz(void);

#endif
