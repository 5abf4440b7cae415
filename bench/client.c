/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Times calls of a running daemon over its socket, from the request to the answer:
 *
 *   client SOCKET [--rest MS] start IMAGE N
 *                                 RunPod with one container that sleeps
 *   client SOCKET fill IMAGE N    the same, and the pods stay
 *   client SOCKET cell IMAGE N    RunCell with one, in the instance INSTANCE that runs already
 *   client SOCKET exec POD N      Exec of /bin/true until its exit code is told
 *   client SOCKET info - N        Info: nothing but the way there and back
 *
 * What was started is removed again, outside of the timing. With --rest it waits for so long before
 * each call, and a node that has done what was to be done behind the last one answers it.
 *
 * Prints one JSON object with times in microseconds, as bare does.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "api/runtime.pb-c.h"
#include "cli/remote/client.h"
#include "cli/remote/target.h"

#define ROUNDS_MAX 10000
/* Made by bench/run. */
#define INSTANCE "bench-instance"

static double times[ROUNDS_MAX];

static int times_compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int times_print(const char *mode, size_t n)
{
	qsort(times, n, sizeof(times[0]), times_compare);
	return printf("{\"mode\":\"%s\",\"n\":%zu,\"min_us\":%.1f,\"median_us\":%.1f,\"p90_us\":%."
		      "1f}\n",
		      mode, n, times[0], times[n / 2], times[n * 9 / 10]) < 0;
}

static int fail(const char *what, const struct error *err)
{
	(void)fprintf(stderr, "client: %s: %s\n", what, error_text(err));
	return EXIT_FAILURE;
}

static int remove_it(struct client *c, char *name, struct error *err)
{
	Nacre__V1__RemoveRequest q = NACRE__V1__REMOVE_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__RemoveResponse *m = NULL;

	q.target = name;
	q.force = true;
	m = client_ask(c, "/nacre.v1.WorkloadService/Remove", &q.base,
		       &nacre__v1__remove_response__descriptor, err);
	return m ? 0 : err->code;
}

static int must_run(const Aurae__Runtime__V0__ContainerStatus *status, struct error *err)
{
	if (strcmp(status->state, "running") == 0)
		return 0;
	return error_refuse(err, ERROR_FAULT, "the container is %s: %s", status->state,
			    status->reason);
}

/* A container that sleeps. */
struct sleeper {
	char program[12], seconds[8];
	char *command[2];
	Aurae__Runtime__V0__Container container, *containers[1];
};

static void sleeper_init(struct sleeper *s, char *image)
{
	*s = (struct sleeper){ .program = "/bin/sleep", .seconds = "1000" };
	s->command[0] = s->program;
	s->command[1] = s->seconds;
	aurae__runtime__v0__container__init(&s->container);
	s->container.image = image;
	s->container.command = s->command;
	s->container.n_command = ARRAY_SIZE(s->command);
	s->containers[0] = &s->container;
}

static int start_named(struct client *c, char *image, char *name, size_t i, struct error *err)
{
	Aurae__Runtime__V0__RunPodRequest q = AURAE__RUNTIME__V0__RUN_POD_REQUEST__INIT;
	Aurae__Runtime__V0__Meta meta = AURAE__RUNTIME__V0__META__INIT;
	_cleanup_message_ Aurae__Runtime__V0__RunPodResponse *m = NULL;
	struct sleeper sleeper;
	nsec_t begin;

	sleeper_init(&sleeper, image);
	meta.name = name;
	q.meta = &meta;
	q.containers = sleeper.containers;
	q.n_containers = 1;

	begin = clock_mono();
	m = client_ask(c, "/aurae.runtime.v0.RuntimeService/RunPod", &q.base,
		       &aurae__runtime__v0__run_pod_response__descriptor, err);
	times[i] = (double)(clock_mono() - begin) / 1000;
	return !m || must_run(m->containers[0], err) < 0 ? err->code : 0;
}

static int start_one(struct client *c, char *image, size_t i, struct error *err)
{
	char name[32];
	int r;

	(void)snprintf(name, sizeof(name), "bench-%zu", i);
	r = start_named(c, image, name, i, err);
	return r < 0 ? r : remove_it(c, name, err);
}

static int fill_one(struct client *c, char *image, size_t i, struct error *err)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "fill-%zu", i);
	return start_named(c, image, name, i, err);
}

static int cell_one(struct client *c, char *image, size_t i, struct error *err)
{
	Aurae__Runtime__V0__RunCellRequest q = AURAE__RUNTIME__V0__RUN_CELL_REQUEST__INIT;
	Aurae__Runtime__V0__Meta meta = AURAE__RUNTIME__V0__META__INIT;
	_cleanup_message_ Aurae__Runtime__V0__RunCellResponse *m = NULL;
	struct sleeper sleeper;
	char name[32], instance[] = INSTANCE, path[sizeof(instance) + sizeof(name)];
	nsec_t begin;

	(void)snprintf(name, sizeof(name), "cell-%zu", i);
	(void)snprintf(path, sizeof(path), "%s/%s", instance, name);
	sleeper_init(&sleeper, image);
	meta.name = name;
	q.meta = &meta;
	q.instance = instance;
	q.containers = sleeper.containers;
	q.n_containers = 1;

	begin = clock_mono();
	m = client_ask(c, "/aurae.runtime.v0.RuntimeService/RunCell", &q.base,
		       &aurae__runtime__v0__run_cell_response__descriptor, err);
	times[i] = (double)(clock_mono() - begin) / 1000;
	if (!m || must_run(m->containers[0], err) < 0)
		return err->code;
	return remove_it(c, path, err);
}

static int exec_one(struct client *c, char *pod, size_t i, struct error *err)
{
	Nacre__V1__ExecRequest q = NACRE__V1__EXEC_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ExecResponse *m = NULL;
	char program[] = "/bin/true";
	char *command[] = { program };
	nsec_t begin = clock_mono();

	q.target = pod;
	q.command = command;
	q.n_command = 1;
	m = client_ask(c, "/nacre.v1.WorkloadService/Exec", &q.base,
		       &nacre__v1__exec_response__descriptor, err);
	times[i] = (double)(clock_mono() - begin) / 1000;
	if (!m)
		return err->code;
	return m->exit && m->exit->exit_code == 0
		       ? 0
		       : error_refuse(err, ERROR_FAULT, "true did not end well");
}

static int info_one(struct client *c, char *nothing, size_t i, struct error *err)
{
	Nacre__V1__InfoRequest q = NACRE__V1__INFO_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InfoResponse *m = NULL;
	nsec_t begin = clock_mono();

	m = client_ask(c, "/nacre.v1.NodeService/Info", &q.base,
		       &nacre__v1__info_response__descriptor, err);
	times[i] = (double)(clock_mono() - begin) / 1000;
	return m ? 0 : err->code;
}

static const struct mode {
	const char *name;
	int (*one)(struct client *c, char *what, size_t i, struct error *err);
} modes[] = {
	{ "start", start_one }, { "fill", fill_one }, { "cell", cell_one },
	{ "exec", exec_one },   { "info", info_one },
};

static const struct mode *mode_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (strcmp(modes[i].name, name) == 0)
			return &modes[i];
	return NULL;
}

int main(int argc, char **argv)
{
	bool rests = argc == 7 && strcmp(argv[2], "--rest") == 0;
	char **args = argv + (rests ? 4 : 2);
	const struct mode *mode = argc == 5 || rests ? mode_find(args[0]) : NULL;
	useconds_t rest = rests ? (useconds_t)strtoul(argv[3], NULL, 10) * 1000 : 0;
	struct error err = ERROR_INIT;
	_cleanup_client_ struct client *c = NULL;
	size_t n;

	if (!mode) {
		(void)fprintf(
			stderr,
			"Usage: client SOCKET [--rest MS] "
			"start IMAGE N | fill IMAGE N | cell IMAGE N | exec POD N | info - N\n");
		return EXIT_FAILURE;
	}
	n = strtoul(args[2], NULL, 10);
	if (n == 0 || n > ROUNDS_MAX)
		return EXIT_FAILURE;
	c = client_open(&(struct client_target){ .socket = argv[1] }, &err);
	if (!c)
		return fail(argv[1], &err);
	for (size_t i = 0; i < n; i++) {
		if (rest)
			(void)usleep(rest);
		if (mode->one(c, args[1], i, &err) < 0)
			return fail(args[0], &err);
	}
	return times_print(args[0], n);
}
