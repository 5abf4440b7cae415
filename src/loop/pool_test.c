/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/pool.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/macros.h"
#include "unit.h"

#define N_MANY 500

struct job {
	struct pool_work work;
	unsigned at;
	bool done;
};

static struct loop *pool_loop;
static struct pool *pool;
static struct job jobs[N_MANY];
static atomic_uint n_run, n_wrong_order, n_unblocked, n_on_loop, n_begun;
static unsigned n_done;
static pthread_t loop_thread;

static void pool_begin(unsigned n_max)
{
	atomic_store(&n_run, 0);
	n_done = 0;
	memset(jobs, 0, sizeof(jobs));
	loop_thread = pthread_self();
	CHECK(loop_new(&pool_loop) == 0);
	CHECK(pool_new(&pool, pool_loop, n_max) == 0);
}

static void pool_end(void)
{
	pool = pool_free(pool);
	pool_loop = loop_free(pool_loop);
}

/* The kernel's truth. */
static unsigned threads_now(void)
{
	DIR *d = opendir("/proc/self/task");
	unsigned n = 0;

	if (!d)
		abort();
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n - 2;
}

/* A thread that was joined may be seen for a moment longer. */
static bool threads_are(unsigned n)
{
	for (int i = 0; i < 20000 && threads_now() != n; i++)
		(void)usleep(1000);
	return threads_now() == n;
}

static void *thread_nothing(void *arg)
{
	return arg;
}

/* The number of threads without ours; a sanitizer adds one of its own with the first. */
static unsigned threads_before(void)
{
	unsigned before = threads_now();
	pthread_t t;

	CHECK(pthread_create(&t, NULL, thread_nothing, NULL) == 0);
	(void)pthread_join(t, NULL);
	for (int i = 0; i < 100 && threads_now() > before; i++)
		(void)usleep(1000);
	return threads_now();
}

static void job_run(struct pool_work *work)
{
	struct job *j = container_of(work, struct job, work);
	sigset_t set;

	if (atomic_fetch_add(&n_run, 1) != j->at)
		atomic_fetch_add(&n_wrong_order, 1);
	(void)pthread_sigmask(SIG_BLOCK, NULL, &set);
	if (!sigismember(&set, SIGTERM) || !sigismember(&set, SIGUSR1))
		atomic_fetch_add(&n_unblocked, 1);
	if (pthread_equal(pthread_self(), loop_thread))
		atomic_fetch_add(&n_on_loop, 1);
}

static void job_done(struct pool_work *work)
{
	struct job *j = container_of(work, struct job, work);

	CHECK(!work->busy);
	CHECK(pthread_equal(pthread_self(), loop_thread));
	j->done = true;
	n_done++;
}

static void job_submit(unsigned i, pool_work_fn run, pool_work_fn done)
{
	jobs[i].at = i;
	jobs[i].work.run = run;
	jobs[i].work.done = done;
	pool_submit(pool, &jobs[i].work);
}

static void works_run_in_order(void)
{
	unsigned before = threads_before();

	pool_begin(1);
	CHECK(threads_are(before));
	for (unsigned i = 0; i < N_MANY; i++)
		job_submit(i, job_run, job_done);
	CHECK(jobs[0].work.busy);
	CHECK_INT(n_done, 0);
	CHECK(threads_are(before + 1));
	while (n_done < N_MANY)
		loop_turn(pool_loop, true);
	CHECK_INT(n_wrong_order, 0);
	CHECK_INT(n_unblocked, 0);
	CHECK_INT(n_on_loop, 0);
	pool_end();
	CHECK(threads_are(before));
}

static void many_threads_at_most(void)
{
	unsigned before = threads_before();

	pool_begin(3);
	for (unsigned i = 0; i < N_MANY; i++)
		job_submit(i, job_run, job_done);
	CHECK(threads_now() <= before + 3);
	while (n_done < N_MANY)
		loop_turn(pool_loop, true);
	CHECK_INT(atomic_load(&n_run), N_MANY);
	pool_end();
}

static atomic_uint sleep_usec;

static void job_sleep(struct pool_work *work)
{
	atomic_fetch_add(&n_begun, 1);
	(void)usleep(atomic_load(&sleep_usec));
	atomic_fetch_add(&n_run, 1);
}

/* A pool that is freed while the first of two jobs runs; false where that had ended before. */
static bool freed_while_one_runs(void)
{
	bool in_time;

	pool_begin(1);
	atomic_store(&n_begun, 0);
	job_submit(0, job_sleep, job_done);
	/* A thread that could not be made at once is made when the loop turns. */
	while (atomic_load(&n_begun) == 0) {
		loop_turn(pool_loop, false);
		(void)usleep(1000);
	}
	job_submit(1, job_sleep, job_done);
	pool_end();
	in_time = atomic_load(&n_run) == 1;
	if (in_time)
		CHECK(!jobs[1].done);
	CHECK(jobs[0].done);
	CHECK(!jobs[1].work.busy);
	return in_time;
}

static void free_waits_and_drops(void)
{
	atomic_store(&sleep_usec, 100000);
	while (!freed_while_one_runs() && atomic_load(&sleep_usec) < 20000000)
		atomic_store(&sleep_usec, 4 * atomic_load(&sleep_usec));
	CHECK_INT(atomic_load(&n_run), 1);
}

static int release_fds[2];

static void job_hang(struct pool_work *work)
{
	char byte;

	atomic_fetch_add(&n_begun, 1);
	while (read(release_fds[0], &byte, 1) < 0)
		;
	atomic_fetch_add(&n_run, 1);
}

/* The thread that is in it ends with the process, or when the kernel gives it back. */
static void leaves_what_does_not_end(void)
{
	unsigned before = threads_before();
	/* Its thread writes to it once more, when it does not belong to this one any longer. */
	static struct job hung = { .work = { .run = job_hang, .done = job_done } };

	CHECK(pipe2(release_fds, O_CLOEXEC) == 0);
	for (unsigned n = 0; n < 2; n++) {
		pool_begin(1);
		atomic_store(&n_begun, 0);
		if (n == 0)
			pool_submit(pool, &hung.work);
		else
			job_submit(0, job_run, job_done);
		while (n == 0 ? atomic_load(&n_begun) == 0 : n_done == 0)
			loop_turn(pool_loop, false);
		if (n == 0)
			job_submit(1, job_run, job_done);
		pool = pool_leave(pool);
		pool_loop = loop_free(pool_loop);
		CHECK(jobs[0].done == (n == 1) && !jobs[1].done);
		CHECK(!jobs[1].work.busy);
		if (n == 1)
			continue;
		CHECK(hung.work.busy && !hung.done);
		CHECK(write(release_fds[1], "", 1) == 1);
		while (atomic_load(&n_run) == 0)
			(void)usleep(1000);
		CHECK(threads_are(before));
	}
	(void)close(release_fds[0]);
	(void)close(release_fds[1]);
}

static void job_done_frees(struct pool_work *work)
{
	job_done(work);
	pool = pool_free(pool);
}

static void freed_within_done(void)
{
	pool_begin(2);
	job_submit(0, job_run, job_done_frees);
	job_submit(1, job_run, job_done);
	while (pool)
		loop_turn(pool_loop, true);
	loop_turn(pool_loop, false);
	pool_end();
}

static void job_done_again(struct pool_work *work)
{
	n_done++;
	if (n_done < 5)
		pool_submit(pool, work);
}

static void submitted_within_done(void)
{
	pool_begin(2);
	job_submit(0, job_run, job_done_again);
	while (n_done < 5)
		loop_turn(pool_loop, true);
	CHECK_INT(atomic_load(&n_run), 5);
	pool_end();
}

static void time_over(struct loop_timer *t)
{
	loop_quit(t->loop, 0);
}

/* Ends after the idle seconds, and the pool makes a new one when it is needed. */
static void idle_threads_end(void)
{
	unsigned before = threads_before();
	struct loop_timer t;
	nsec_t begun;

	pool_begin(2);
	begun = clock_mono();
	job_submit(0, job_run, job_done);
	job_submit(1, job_run, job_done);
	loop_timer_init(&t, pool_loop, time_over);
	loop_timer_set(&t, NSEC_PER_SEC);
	(void)loop_run(pool_loop);
	CHECK(threads_now() > before || clock_mono() - begun > 4 * NSEC_PER_SEC);
	loop_timer_set(&t, 5 * NSEC_PER_SEC);
	(void)loop_run(pool_loop);
	CHECK(threads_are(before));
	job_submit(2, job_run, job_done);
	while (n_done < 3)
		loop_turn(pool_loop, true);
	loop_timer_done(&t);
	pool_end();
}

static pid_t renewed_tids[2];
static atomic_uint n_old_thread;

static void note_thread(struct pool_work *work)
{
	struct job *j = container_of(work, struct job, work);

	if (j->at < 2)
		renewed_tids[j->at] = gettid();
	else if (gettid() == renewed_tids[0] || gettid() == renewed_tids[1])
		atomic_fetch_add(&n_old_thread, 1);
	atomic_fetch_add(&n_run, 1);
}

static void count_done(struct pool_work *work)
{
	container_of(work, struct job, work)->done = true;
	n_done++;
}

static void submit_noting(unsigned at)
{
	jobs[at] = (struct job){ .work = { .run = note_thread, .done = count_done }, .at = at };
	pool_submit(pool, &jobs[at].work);
}

/* With a queue behind it: what a thread that ends does not take is taken by another. */
static void renewed_threads_end(void)
{
	pool_begin(2);
	submit_noting(0);
	submit_noting(1);
	while (n_done < 2)
		loop_turn(pool_loop, true);
	pool_renew(pool);
	for (unsigned i = 2; i < 50; i++)
		submit_noting(i);
	while (n_done < 50)
		loop_turn(pool_loop, true);
	CHECK_INT(atomic_load(&n_run), 50);
	CHECK_INT(atomic_load(&n_old_thread), 0);
	pool_renew(pool);
	pool_end();
}

UNIT_MAIN({ "works run in order, off the loop, without signals", works_run_in_order },
	  { "not more threads than allowed", many_threads_at_most },
	  { "free waits for the work in hand", free_waits_and_drops },
	  { "what does not end is left", leaves_what_does_not_end },
	  { "freed within done", freed_within_done },
	  { "submitted within done", submitted_within_done },
	  { "renewed threads end", renewed_threads_end }, { "idle threads end", idle_threads_end })
