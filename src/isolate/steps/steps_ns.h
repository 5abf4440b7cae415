/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_STEPS_NS_H
#define NACRE_ISOLATE_STEPS_NS_H

#include <stdint.h>

#include "isolate/steps/step.h"

/* Steps into namespaces and sessions; each says in steps_ns.c what it should and must not
 * do. */
/* For the spawner: the signals that are ignored; bit 0 is signal 1. */
uint64_t isolate_signals_ignored(void);
int isolate_step_signals(struct isolate_steps *s, struct error *err);
int isolate_step_unblock(struct isolate_steps *s, struct error *err);
int isolate_step_oom(struct isolate_steps *s, struct error *err);
int isolate_step_join(struct isolate_steps *s, struct error *err);
int isolate_step_cgroup_ns(struct isolate_steps *s, struct error *err);
int isolate_step_session(struct isolate_steps *s, struct error *err);
int isolate_step_keyring(struct isolate_steps *s, struct error *err);
int isolate_step_hostname(struct isolate_steps *s, struct error *err);
int isolate_step_loopback(struct isolate_steps *s, struct error *err);
int isolate_step_death_signal(struct isolate_steps *s, struct error *err);

#endif
