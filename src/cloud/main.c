/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nacre-cloud: speaks to a cloud for the daemon (doc/decisions/cloud.md). The daemon starts it in
 * new namespaces, but in the machine's network, with a socket as descriptor 3, and speaks
 * wire/message/cloudmsg.h with it. It reads keys and certificates of the machine, closes a sandbox
 * around itself, and only then is a stranger heard. Some threads take requests from the socket,
 * each one at a time; the process ends with the socket.
 */

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "cloud/http.h"
#include "cloud/provider.h"
#include "cloud/service.h"
#include "fetch/job/sandbox.h"

#define CLOUD_SOCKET_FD 3
#define CLOUD_THREADS 4
#define CLOUD_STACK (512 << 10)

struct program {
	const struct cloud_provider *provider;
	void *account;
	pthread_t workers[CLOUD_THREADS];
	size_t n_workers;
};

/* The length of a packet, 0 at the end. */
static ssize_t program_receive(uint8_t *packet)
{
	ssize_t n;

	do
		n = recv(CLOUD_SOCKET_FD, packet, CLOUDMSG_SIZE_MAX, 0);
	while (n < 0 && errno == EINTR);
	return n;
}

static bool program_send(const struct buf *b)
{
	ssize_t n;

	do
		n = send(CLOUD_SOCKET_FD, buf_data(b), b->len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n >= 0;
}

static void *program_work(void *arg)
{
	struct program *p = arg;
	uint8_t *packet = malloc(CLOUDMSG_SIZE_MAX);
	struct error err = ERROR_INIT;
	void *self = NULL;
	bool goes_on = packet && p->provider->attach(&self, p->account, &err) == 0;

	while (goes_on) {
		struct cloudmsg q;
		ssize_t n = program_receive(packet);

		goes_on = n > 0;
		if (goes_on && cloudmsg_read(&q, packet, (size_t)n) == 0)
			goes_on = service_serve(p->provider, self, &q, program_send);
	}
	/* The daemon is gone, or its next helper finds another key. What other threads ask
	 * meanwhile can be asked again. */
	_exit(EXIT_SUCCESS);
}

static int program_run(struct program *p, struct error *err)
{
	pthread_attr_t attributes;

	if (pthread_attr_init(&attributes) != 0)
		return error_set(err, -ENOMEM, "start a thread");
	(void)pthread_attr_setstacksize(&attributes, CLOUD_STACK);
	while (p->n_workers < CLOUD_THREADS &&
	       pthread_create(&p->workers[p->n_workers], &attributes, program_work, p) == 0)
		p->n_workers++;
	(void)pthread_attr_destroy(&attributes);
	if (p->n_workers == 0)
		return error_set(err, -EAGAIN, "start a thread");
	for (size_t i = 0; i < p->n_workers; i++)
		(void)pthread_join(p->workers[i], NULL);
	return 0;
}

static int program_find(struct program *p, const char *name, struct error *err)
{
	static const struct cloud_provider *const all[] = { &ec2_provider, &gce_provider,
							    &vsphere_provider };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (str_eq(all[i]->name, name))
			p->provider = all[i];
	return p->provider ? 0
			   : error_refuse(err, ERROR_INVALID, "there is no cloud \"%.16s\"", name);
}

/* The daemon's first word, and what is read for it. */
static int program_begin(struct program *p, struct error *err)
{
	static uint8_t packet[CLOUDMSG_SIZE_MAX];
	ssize_t n = program_receive(packet);
	struct cloudmsg q;
	int r;

	if (n <= 0 || cloudmsg_read(&q, packet, (size_t)n) < 0 ||
	    !str_eq(cloudmsg_get(&q, "verb"), "begin"))
		return error_refuse(err, ERROR_INVALID, "the daemon has not said begin");
	r = http_begin(err);
	if (r == 0)
		r = program_find(p, cloudmsg_get(&q, "provider"), err);
	if (r == 0)
		r = p->provider->open(&p->account, &q, err);
	if (r == 0)
		r = sandbox_enter(SANDBOX_NETWORK, -1, -1, 0, err);
	return r;
}

/* The first question, and those that wait behind it, get the same answer. Then this process ends,
 * and the next one may find what was missing. */
static void program_refuse_all(const struct error *err)
{
	static uint8_t packet[CLOUDMSG_SIZE_MAX];
	struct cloudmsg q;
	ssize_t n = program_receive(packet);

	while (n > 0) {
		if (cloudmsg_read(&q, packet, (size_t)n) == 0)
			service_refuse(&q, err, program_send);
		n = recv(CLOUD_SOCKET_FD, packet, sizeof(packet), MSG_DONTWAIT);
	}
}

int main(int argc, char **argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	static struct program p;
	struct error err = ERROR_INIT;
	int r;

	(void)argv;
	if (fd_open_standard("nacre-cloud") < 0)
		return EXIT_FAILURE;
	if (argc != 1 || fcntl(CLOUD_SOCKET_FD, F_SETFD, FD_CLOEXEC) < 0) {
		(void)fprintf(stderr, "nacre-cloud is started by nacre\n");
		return 2;
	}
	(void)sigaction(SIGPIPE, &ignore, NULL);
	(void)mallopt(M_ARENA_MAX, 2);
	r = program_begin(&p, &err);
	if (r == 0)
		r = program_run(&p, &err);
	if (r < 0)
		program_refuse_all(&err);
	if (p.account)
		p.provider->close(p.account);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
