/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_VIEW_H
#define NACRE_CLI_VIEW_H

#include <stdbool.h>

#include "api/nacre.pb-c.h"
#include "base/text/json.h"
#include "cli/output/table.h"

/* The daemon's objects as JSON and as words. The names in the JSON are a promise. */

/* Whether it has ended, so that its exit code counts. */
bool view_has_ended(const char *state);
enum table_color view_state_color(const char *state);

/* "exited (3)", "running". The caller frees it. */
char *view_state(const char *kind, const char *state, int32_t exit_code);
/* The images of its containers, parted by commas. The caller frees it. */
char *view_images(const Nacre__V1__Workload *w);
/* Its kind, with that of its wall where that is not a cell ("vm pod"). The caller frees it. */
char *view_kind(const Nacre__V1__Workload *w);
/* Of what is an instance, the kind of its wall in any case, with the release of the kernel that it
 * runs on. The caller frees it. */
char *view_level(const Nacre__V1__Workload *w, const char *kernel);
/* Its published ports; "" where there is none. The caller frees it. */
char *view_ports(const Nacre__V1__Workload *w);
/* "" where there is none. The caller frees it. */
char *view_pid(int64_t pid);

/* Prints the JSON for a workload that was started, to standard output. */
void view_started(const char *id, const char *name, const char *kind, const char *kind_reason);
void view_workload(struct json *j, const char *key, const Nacre__V1__Workload *w);
/* One of the further networks of a pod. */
void view_network(struct json *j, const Nacre__V1__WorkloadNetwork *m);
void view_port(struct json *j, const Aurae__Runtime__V0__PublishedPort *p);
void view_process(struct json *j, const Nacre__V1__Process *p);
/* A word for the letter of the kernel. */
const char *view_process_state(const char *letter);
/* A list of words. */
void view_words(struct json *j, const char *key, char *const *words, size_t n);
void view_verdict(struct json *j, const char *key, const Nacre__V1__Verdict *v);
void view_image(struct json *j, const char *key, const Nacre__V1__Image *image);

#endif
