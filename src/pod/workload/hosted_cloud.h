/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_HOSTED_CLOUD_H
#define NACRE_POD_HOSTED_CLOUD_H

#include "base/log/error.h"

/*
 * A workload's machine in a cloud (pod/workload/hosted.h), for hosted_run.c alone. Its record there
 * has the id of the workload among its tags, by which a later daemon finds it.
 */

struct hosted_cloud;
struct workload;
struct workloads;

int hosted_cloud_start(struct workload *w, struct error *err);
/* ERROR_UNAVAILABLE: the cloud has it no more. */
int hosted_cloud_adopt(struct workload *w, struct error *err);
/* The cloud is told to end it: it has no power button of its own. */
void hosted_cloud_end(struct hosted_cloud *m);
/* 0: nothing of it is left. -EINPROGRESS: as of hosted_take_down(). */
int hosted_cloud_take_down(struct workload *w);
/* Lets go of it; it goes on. Takes NULL, returns NULL. */
struct hosted_cloud *hosted_cloud_free(struct hosted_cloud *m);
/* Ends machines whose workload is none. */
void hosted_cloud_sweep(struct workloads *all);

#endif
