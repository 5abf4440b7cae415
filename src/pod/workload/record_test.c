/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/workload_bed_test.h"

#include "pod/workload/alloc.h"
#include "pod/workload/record.h"

/* Records that read well, but for what a test changes in them. */
static struct run_workload workload_record;
static struct run_container container_record;

static void known(void)
{
	workload_record = (struct run_workload){ .id = "11111111111111111111111111111111",
						 .path = "shop",
						 .kind = "cell",
						 .state_word = "exited",
						 .state = WORKLOAD_EXITED,
						 .network = "own",
						 .restart = "no",
						 .instance_kind = "" };
	container_record = (struct run_container){ .id = "22222222222222222222222222222222",
						   .workload = workload_record.id,
						   .name = "main",
						   .state = CONTAINER_EXITED,
						   .state_word = "exited",
						   .health = "",
						   .role = "",
						   .restart = "no" };
}

static struct {
	unsigned n;
	enum workload_kind kind;
	enum health_status health;
	bool is_debug, is_init;
	char network[8];
} got;

static int on_workload(void *userdata, struct workload *w, const char *instance_id,
		       const char *attachment)
{
	const struct pod_container *c = w->containers[0];

	(void)userdata;
	(void)instance_id;
	(void)attachment;
	got.n++;
	got.kind = w->kind;
	got.health = c->health_status;
	got.is_debug = c->is_debug;
	got.is_init = c->is_init;
	(void)str_copy(got.network, sizeof(got.network), w->network);
	workload_unmake(w);
	return 0;
}

static int read_back(struct error *err)
{
	int r;

	*err = (struct error)ERROR_INIT;
	memset(&got, 0, sizeof(got));
	CHECK_INT(run_store_put_workload(store, &workload_record, err), 0);
	CHECK_INT(run_store_put_container(store, &container_record, err), 0);
	r = record_each(store, on_workload, NULL, err);
	CHECK_INT(run_store_drop_workload(store, workload_record.id, NULL), 0);
	return r;
}

static void reads_what_it_knows(void)
{
	struct error err;

	begin();
	known();
	CHECK_INT(read_back(&err), 0);
	CHECK_INT(got.n, 1);
	CHECK_INT(got.kind, WORKLOAD_CELL);
	CHECK_STR(got.network, "own");
	workload_record.kind = "pod";
	workload_record.instance_kind = "vm";
	workload_record.network = "none";
	container_record.health = "unhealthy";
	/* A debug container that runs is recorded like any other. */
	container_record.role = "debug";
	CHECK_INT(read_back(&err), 0);
	CHECK_INT(got.kind, WORKLOAD_POD);
	CHECK_STR(got.network, "none");
	CHECK_INT(got.health, HEALTH_UNHEALTHY);
	CHECK(got.is_debug && !got.is_init);
	container_record.role = "init";
	CHECK_INT(read_back(&err), 0);
	CHECK(got.is_init && !got.is_debug);
	finish();
}

static void refused(const char *text)
{
	struct error err;

	CHECK_INT(read_back(&err), -EBADMSG);
	CHECK(strstr(err.text, text) != NULL);
	CHECK_INT(got.n, 0);
	known();
}

static void an_unknown_value_is_an_error(void)
{
	begin();
	known();
	workload_record.kind = "swarm";
	refused("the record of workload 1111");
	workload_record.network = "mesh";
	refused("the record of workload 1111");
	workload_record.network = "";
	refused("the record of workload 1111");
	workload_record.restart = "sometimes";
	refused("the record of workload 1111");
	workload_record.instance_kind = "jail";
	refused("the record of workload 1111");
	workload_record.state = WORKLOAD_STATE_COUNT;
	refused("the record of workload 1111");
	container_record.health = "tired";
	refused("the record of container 2222");
	container_record.role = "guest";
	refused("the record of container 2222");
	container_record.restart = "sometimes";
	refused("the record of container 2222");
	container_record.state = -1;
	refused("the record of container 2222");
	container_record.volumes = "33";
	refused("the record of container 2222");
	finish();
}

UNIT_MAIN({ "reads_what_it_knows", reads_what_it_knows },
	  { "an_unknown_value_is_an_error", an_unknown_value_is_an_error })
