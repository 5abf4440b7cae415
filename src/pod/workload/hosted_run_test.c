/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/hosted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "pod/workload/hosted_cloud.h"
#include "pod/workload/life.h"
#include "unit.h"

/* ---- what stands in for the others ---- */

struct foreign {
	const struct foreign_events *events;
	void *userdata;
};

static struct {
	struct foreign one;
	bool there;
	int result;
	unsigned n_asked, n_killed, n_cleaned, n_lost, n_answers, n_scheduled;
	bool is_up; /* of the last answer */
	struct container_status status;
	char reason[WORKLOAD_REASON_MAX];
} bed;

int foreign_start(struct foreign **ret, struct foreigns *all, const char *id, const char *title,
		  const struct foreign_spec *spec, const struct foreign_events *events,
		  void *userdata, struct error *err)
{
	if (bed.result < 0)
		return error_set(err, bed.result, "start it");
	bed.one = (struct foreign){ events, userdata };
	bed.there = true;
	*ret = &bed.one;
	return 0;
}

int foreign_adopt(struct foreign **ret, struct foreigns *all, const char *id, const char *title,
		  const struct foreign_events *events, void *userdata, struct error *err)
{
	return foreign_start(ret, all, id, title, NULL, events, userdata, err);
}

struct foreign *foreign_free(struct foreign *f)
{
	bed.there = bed.there && !f;
	return NULL;
}

void foreign_ask_to_end(struct foreign *f)
{
	bed.n_asked++;
}

void foreign_kill(struct foreign *f)
{
	bed.n_killed++;
}

int foreign_clean(struct foreigns *all, const char *id, const char *title)
{
	bed.n_cleaned++;
	return bed.result;
}

void foreigns_sweep(struct foreigns *all, bool (*knows_id)(void *userdata, const char *id),
		    bool (*knows_name)(void *userdata, const char *name), void *userdata)
{
	CHECK(knows_id(userdata, "1") && !knows_id(userdata, "2"));
	/* What is no machine has no group of one. */
	CHECK(knows_name(userdata, "v") && !knows_name(userdata, "pod") &&
	      !knows_name(userdata, "w"));
}

/* None of these is in a cloud. */
int hosted_cloud_start(struct workload *of, struct error *err)
{
	return error_set(err, -ENOSYS, "a machine in a cloud");
}

int hosted_cloud_adopt(struct workload *of, struct error *err)
{
	return error_set(err, -ENOSYS, "a machine in a cloud");
}

void hosted_cloud_end(struct hosted_cloud *m)
{
	CHECK(!m);
}

int hosted_cloud_take_down(struct workload *of)
{
	return -ENOSYS;
}

struct hosted_cloud *hosted_cloud_free(struct hosted_cloud *m)
{
	CHECK(!m);
	return NULL;
}

void hosted_cloud_sweep(struct workloads *of)
{
	CHECK(of != NULL);
}

static void lose(struct workload *w, const char *reason)
{
	bed.n_lost++;
	(void)str_copy(bed.reason, sizeof(bed.reason), reason);
}

static void answer(struct pod_container *c, const struct container_view *view, const char *reason)
{
	bed.n_answers++;
	bed.is_up = view && view->status.state == CONTAINER_RUNNING;
	c->starting = false;
	(void)str_copy(bed.reason, sizeof(bed.reason), reason);
}

static void update(struct pod_container *c, const struct container_status *status)
{
	bed.status = *status;
	c->status = *status;
}

static const struct hosted_ops ops = { .answer = answer, .update = update, .lose = lose };

void loop_defer_schedule(struct loop_defer *d)
{
	bed.n_scheduled++;
}

/* ---- a workload of one machine ---- */

static struct pod_container container;
static struct workloads all;
static struct workload w;

static bool begin(void)
{
	static struct pod_container *containers[] = { &container };
	struct error err = ERROR_INIT;

	memset(&bed, 0, sizeof(bed));
	container = (struct pod_container){ .name = "machine", .workload = &w };
	w = (struct workload){ .all = &all,
			       .id = "1",
			       .path = "renamed",
			       .handle = "v",
			       .kind = WORKLOAD_VM,
			       .state = WORKLOAD_STARTING,
			       .containers = containers,
			       .n_containers = 1,
			       .wish = hosted_wish_new() };
	if (!w.wish)
		return false;
	w.wish->disks[0].fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_INT(hosted_start(&w, &ops, &err), 0);
	CHECK(container.starting);
	CHECK_INT(w.n_starting, 1);
	return true;
}

static void ends(enum vm_end_cause cause, const char *words, const char *console)
{
	struct vm_end end = { .cause = cause, .text = "it is over" };

	(void)str_copy(end.words, sizeof(end.words), words);
	bed.one.events->on_end(bed.one.userdata, &end, console);
	CHECK(!w.machine);
	CHECK(!bed.there);
	CHECK(!w.wish);
	CHECK(bed.n_scheduled > 0);
}

/* ---- the tests ---- */

static void runs_and_powers_off(void)
{
	int fd;

	if (!begin())
		return;
	fd = w.wish->disks[0].fd;
	bed.one.events->on_up(&w, 7);
	CHECK(bed.is_up);
	/* The machine has its files now, and they are not ours any more. */
	CHECK(!w.wish && fcntl(fd, F_GETFD) < 0);
	bed.one.events->on_up(&w, 7);
	CHECK_INT(bed.n_answers, 1);
	ends(VM_END_POWERED_OFF, "", "");
	CHECK_INT(bed.status.state, CONTAINER_EXITED);
	CHECK_INT(bed.status.exit_code, 0);
	CHECK_STR(bed.status.reason, "it is over");
	CHECK_INT(bed.n_lost, 0);
}

static void is_killed(void)
{
	if (!begin())
		return;
	bed.one.events->on_up(&w, 7);
	hosted_end(&w, false);
	hosted_end(&w, true);
	CHECK_INT(bed.n_asked, 1);
	CHECK_INT(bed.n_killed, 1);
	ends(VM_END_ASKED, "", "");
	CHECK_INT(bed.status.exit_code, 137);
	CHECK_INT(bed.status.signal, 9);
	/* There is nobody to be asked. */
	hosted_end(&w, true);
	CHECK_INT(bed.n_killed, 1);
}

static void fails_by_itself(void)
{
	if (!begin())
		return;
	bed.one.events->on_up(&w, 7);
	ends(VM_END_PANIC, "words", "Kernel panic");
	CHECK_INT(bed.n_lost, 1);
	CHECK_STR(bed.reason, "it is over: words; its console ends: Kernel panic");

	if (!begin())
		return;
	ends(VM_END_NOT_STARTED, "", "");
	CHECK_INT(bed.n_lost, 0);
	CHECK_INT(bed.n_answers, 1);
	CHECK(!bed.is_up);
	CHECK_STR(bed.reason, "it is over");

	/* One that was given up is told nothing more. */
	if (!begin())
		return;
	w.state = WORKLOAD_FAILED;
	ends(VM_END_CRASHED, "", "");
	CHECK_INT(bed.n_lost + bed.n_answers, 0);
}

static void cannot_be_started(void)
{
	struct error err = ERROR_INIT;

	if (!begin())
		return;
	hosted_leave(&w);
	CHECK(!bed.there);
	container.starting = false;
	w.n_starting = 0;
	bed.result = -ENOSPC;
	CHECK_INT(hosted_adopt(&w, &ops, &err), -ENOSPC);
	w.wish = hosted_wish_new();
	if (w.wish)
		CHECK_INT(hosted_start(&w, &ops, &err), -ENOSPC);
	CHECK(!container.starting);
	CHECK_INT(w.n_starting, 0);
	hosted_leave(&w);
}

static void is_taken_down_when_it_has_ended(void)
{
	if (!begin())
		return;
	CHECK_INT(hosted_take_down(&w, &ops), -EBUSY);
	CHECK_INT(bed.n_killed, 1);
	CHECK_INT(bed.n_cleaned, 0);
	ends(VM_END_ASKED, "", "");
	bed.result = -EBUSY;
	CHECK_INT(hosted_take_down(&w, &ops), -EBUSY);
	bed.result = 0;
	CHECK_INT(hosted_take_down(&w, &ops), 0);
	CHECK_INT(bed.n_cleaned, 2);
}

static void knows_its_own(void)
{
	struct workload pod = { .kind = WORKLOAD_POD, .handle = "pod" };

	if (!begin())
		return;
	list_init(&all.list);
	list_init(&w.link);
	list_init(&pod.link);
	list_add_tail(&all.list, &w.link);
	list_add_tail(&all.list, &pod.link);
	if (map_add(&all.by_id, "1", &w) == 0)
		hosted_sweep(&all);
	map_done(&all.by_id);
	list_remove(&w.link);
	hosted_leave(&w);
}

UNIT_MAIN({ "runs_and_powers_off", runs_and_powers_off }, { "is_killed", is_killed },
	  { "fails_by_itself", fails_by_itself }, { "cannot_be_started", cannot_be_started },
	  { "is_taken_down_when_it_has_ended", is_taken_down_when_it_has_ended },
	  { "knows_its_own", knows_its_own })
