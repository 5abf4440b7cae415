/* SPDX-License-Identifier: Apache-2.0 */
#include "clouds/helper.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/memory/list.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"

#define HELPER_MESSAGES_PER_TURN 32
#define CAP(name) (UINT64_C(1) << (name))
/* What closing its sandbox needs, and reading the keys of another user. */
#define HELPER_CAPS                                                                                \
	(CAP(CAP_SYS_ADMIN) | CAP(CAP_SETPCAP) | CAP(CAP_SETUID) | CAP(CAP_SETGID) |               \
	 CAP(CAP_DAC_READ_SEARCH) | CAP(CAP_DAC_OVERRIDE))

struct cloud_question {
	struct list link; /* cloud_helper.questions, in the order in which they are sent */
	uint64_t number;
	struct buf packet; /* until it was sent */
	bool sent;
	const struct cloud_question_ops *ops; /* NULL: it was forgotten */
	void *userdata;
};

struct cloud_helper {
	struct loop *loop;
	char *program, *provider, *project, *region, *endpoint, *profile, *trust;
	bool running;
	struct isolate_child child;
	int sock_fd;
	struct loop_fd sock;
	struct loop_child watch;
	struct loop_timer again;
	struct loop_defer lost; /* it could not be started */
	nsec_t pause;
	nsec_t cloud_time, time_at; /* that it told, by its clock, and when, by the monotonic one */
	struct list questions;
	uint64_t n_questions;
};

/* The environment of the daemon, as far as it says where keys are. */
static const char *const helper_variables[] = {
	"HOME",
	"AWS_ACCESS_KEY_ID",
	"AWS_SECRET_ACCESS_KEY",
	"AWS_SESSION_TOKEN",
	"AWS_PROFILE",
	"AWS_SHARED_CREDENTIALS_FILE",
	"AWS_CONFIG_FILE",
	"AWS_CA_BUNDLE",
	"AWS_EC2_METADATA_DISABLED",
	"AWS_EC2_METADATA_SERVICE_ENDPOINT",
	"GOOGLE_APPLICATION_CREDENTIALS",
	"GCE_METADATA_HOST",
	"GOVC_USERNAME",
	"GOVC_PASSWORD",
	"SSL_CERT_FILE",
};

/* ---- questions ---- */

static struct cloud_question *cloud_question_free(struct cloud_question *q)
{
	list_remove(&q->link);
	buf_done(&q->packet);
	free(q);
	return NULL;
}

struct cloud_question *cloud_question_forget(struct cloud_question *q)
{
	if (q)
		q->ops = NULL;
	return NULL;
}

static void cloud_question_end(struct cloud_question *q, const struct cloudmsg *m,
			       const struct error *err)
{
	const struct cloud_question_ops *ops = q->ops;
	void *userdata = q->userdata;

	(void)cloud_question_free(q);
	if (ops)
		ops->on_done(userdata, m, err);
}

bool cloud_answer_is_unknown(const struct cloudmsg *m)
{
	return !m || str_eq(cloudmsg_get(m, "unknown"), "yes");
}

/* As much as the socket takes. */
static void helper_flush(struct cloud_helper *h)
{
	struct cloud_question *q;
	bool full = false;

	/* Its socket is at its end, or it is: what is asked now waits for the next one. */
	if (!h->running || !h->sock.loop)
		return;
	list_for_each (q, &h->questions, struct cloud_question, link) {
		if (q->sent || full)
			continue;
		full = send(h->sock_fd, buf_data(&q->packet), q->packet.len,
			    MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
		       (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM);
		if (full)
			continue;
		/* Where it could not be sent for another reason the helper is gone, and its end
		 * comes. */
		q->sent = true;
		buf_done(&q->packet);
	}
	loop_fd_set(&h->sock, LOOP_READ | (full ? LOOP_WRITE : 0));
}

int cloud_helper_ask(struct cloud_helper *h, struct buf *words,
		     const struct cloud_question_ops *ops, void *userdata,
		     struct cloud_question **ret)
{
	struct cloud_question *q;
	int r = cloudmsg_put(words, "number", "%llu", (unsigned long long)h->n_questions + 1);

	q = r == 0 ? calloc(1, sizeof(*q)) : NULL;
	if (!q)
		return -ENOMEM;
	*q = (struct cloud_question){
		.number = ++h->n_questions, .packet = *words, .ops = ops, .userdata = userdata
	};
	*words = (struct buf)BUF_INIT;
	list_init(&q->link);
	list_add_tail(&h->questions, &q->link);
	helper_flush(h);
	*ret = q;
	return 0;
}

/* ---- answers ---- */

static struct cloud_question *helper_find(struct cloud_helper *h, const struct cloudmsg *m)
{
	struct cloud_question *q;
	uint64_t number;

	if (parse_u64(cloudmsg_get(m, "number"), 1, UINT64_MAX, &number) < 0)
		return NULL;
	list_for_each (q, &h->questions, struct cloud_question, link)
		if (q->sent && q->number == number)
			return q;
	return NULL;
}

static void helper_note_time(struct cloud_helper *h, const struct cloudmsg *m)
{
	uint64_t now;

	if (parse_u64(cloudmsg_get(m, "now"), 1, UINT32_MAX, &now) < 0)
		return;
	h->cloud_time = (nsec_t)now * NSEC_PER_SEC;
	h->time_at = clock_mono();
}

bool cloud_helper_time(const struct cloud_helper *h, uint64_t *ret)
{
	if (!h->cloud_time)
		return false;
	*ret = (uint64_t)((h->cloud_time + (clock_mono() - h->time_at)) / NSEC_PER_SEC);
	return true;
}

static void helper_take(struct cloud_helper *h, const struct cloudmsg *m)
{
	struct cloud_question *q = helper_find(h, m);
	struct error err = ERROR_INIT;
	uint64_t kind;

	if (!q)
		return;
	h->pause = HELPER_PAUSE_FIRST;
	helper_note_time(h, m);
	if (str_eq(cloudmsg_get(m, "verb"), "vm")) {
		if (q->ops && q->ops->on_vm)
			q->ops->on_vm(q->userdata, m);
		return;
	}
	if (!*cloudmsg_get(m, "kind")) {
		cloud_question_end(q, m, NULL);
		return;
	}
	if (parse_u64(cloudmsg_get(m, "kind"), 0, ERROR_KIND_COUNT - 1, &kind) < 0)
		kind = ERROR_FAULT;
	(void)error_refuse(&err, (enum error_kind)kind, "%.500s", cloudmsg_get(m, "text"));
	cloud_question_end(q, m, &err);
}

/* 1: a message was taken; 0: none is there; negative: none comes any more. */
static int helper_receive(struct cloud_helper *h)
{
	static uint8_t packet[CLOUDMSG_SIZE_MAX];
	ssize_t n = recv(h->sock_fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
	struct cloudmsg m;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	if (cloudmsg_read(&m, packet, (size_t)n) == 0) {
		helper_take(h, &m);
		return 1;
	}
	/* Which question that was for nobody knows: its end answers all of them. */
	log_warn("nacre-cloud has said what is no message, and is ended");
	(void)pidfd_kill(h->child.pidfd, SIGKILL);
	return -EBADMSG;
}

static void helper_on_sock(struct loop_fd *source, unsigned events)
{
	struct cloud_helper *h = container_of(source, struct cloud_helper, sock);
	int r = 1;

	if (events & LOOP_WRITE)
		helper_flush(h);
	for (int i = 0; i < HELPER_MESSAGES_PER_TURN && r > 0; i++)
		r = helper_receive(h);
	/* The end of the process says the rest. */
	if (r < 0)
		loop_fd_done(&h->sock);
}

/* ---- the process ---- */

static void helper_release(struct cloud_helper *h)
{
	if (!h->running)
		return;
	h->running = false;
	loop_fd_done(&h->sock);
	loop_child_done(&h->watch);
	isolate_child_done(&h->child);
	h->sock_fd = fd_close(h->sock_fd);
}

/* What was sent is lost; what came behind waits for the next one. */
static void helper_lose(struct cloud_helper *h, bool all)
{
	struct cloud_question *q;
	struct error err = ERROR_INIT;
	uint64_t last = h->n_questions;

	(void)error_refuse(&err, ERROR_UNAVAILABLE,
			   "the program that speaks to the cloud, nacre-cloud, has ended (it is "
			   "started again; the log of the daemon says why)");
	/* Each end may ask anew, and that is not lost. */
	for (;;) {
		struct cloud_question *found = NULL;

		list_for_each (q, &h->questions, struct cloud_question, link)
			if (!found && (q->sent || all) && q->number <= last)
				found = q;
		if (!found)
			return;
		cloud_question_end(found, NULL, &err);
	}
}

static void helper_try_later(struct cloud_helper *h)
{
	loop_timer_set(&h->again, h->pause);
	h->pause = MIN(h->pause * 2, HELPER_PAUSE_MAX);
}

static void helper_on_end(struct loop_child *source, int code, int status)
{
	struct cloud_helper *h = container_of(source, struct cloud_helper, watch);

	struct error err = ERROR_INIT;
	int exit_code;

	while (helper_receive(h) > 0)
		;
	if (isolate_child_report(&h->child, &exit_code, &err) < 0)
		log_error("the program that speaks to the cloud cannot be started", LOG_ERR(&err));
	log_warn("the program that speaks to the cloud has ended; it is started again",
		 LOG_STR("program", "nacre-cloud"),
		 LOG_STR("how", code == CLD_EXITED ? "exited" : "killed"),
		 LOG_INT("status", status));
	helper_release(h);
	helper_try_later(h);
	helper_lose(h, false);
}

/*
 * Should: give the helper new namespaces of every kind but the user's, the cgroup's and the
 * network's, its socket, what the environment says of keys, and no more privilege than its first
 * steps need. Must not: hand down anything else.
 */
static int helper_spawn(struct cloud_helper *h, int sock_fd, struct error *err)
{
	_cleanup_strv_ char **env = strv_copy(NULL);
	char *argv[] = { h->program, NULL };
	struct isolate_plan plan;
	int r = env ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_SIZE(helper_variables) && r == 0; i++) {
		const char *value = getenv(helper_variables[i]);
		_cleanup_str_ char *word = NULL;

		if (!value)
			continue;
		word = str_format("%s=%s", helper_variables[i], value);
		r = word ? strv_add(&env, word) : -ENOMEM;
	}
	if (r < 0)
		return error_set(err, r, "start nacre-cloud");
	isolate_plan_init(&plan);
	plan.ns[ISOLATE_NS_PID] = ISOLATE_NEW;
	plan.ns[ISOLATE_NS_MOUNT] = ISOLATE_NEW;
	plan.ns[ISOLATE_NS_IPC] = ISOLATE_NEW;
	plan.ns[ISOLATE_NS_UTS] = ISOLATE_NEW;
	plan.argv = argv;
	plan.env = env;
	plan.caps = HELPER_CAPS;
	plan.no_new_privs = true;
	plan.new_session = true;
	plan.stdio[2] = STDERR_FILENO;
	plan.keep_fds[0] = sock_fd;
	plan.n_keep_fds = 1;
	return isolate_spawn(&plan, &h->child, err);
}

static int helper_begin(struct cloud_helper *h, int fd)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	const struct {
		const char *key, *value;
	} words[] = { { "verb", "begin" },         { "provider", h->provider },
		      { "project", h->project },   { "region", h->region },
		      { "endpoint", h->endpoint }, { "profile", h->profile },
		      { "trust", h->trust } };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(words) && r == 0; i++)
		r = cloudmsg_put(&b, words[i].key, "%s", words[i].value);
	if (r < 0)
		return r;
	return send(fd, buf_data(&b), b.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int helper_start(struct cloud_helper *h, struct error *err)
{
	_cleanup_fd_ int ours = -1;
	_cleanup_fd_ int theirs = -1;
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return error_set(err, -errno, "make a socket for nacre-cloud");
	ours = fds[0];
	theirs = fds[1];
	/* It waits in the socket until the helper reads it. */
	r = helper_begin(h, ours);
	if (r < 0)
		return error_set(err, r, "tell nacre-cloud what to do");
	r = helper_spawn(h, theirs, err);
	if (r < 0)
		return error_wrap(err, r, "start %s", h->program);
	h->sock_fd = TAKE_FD(ours);
	h->running = true;
	loop_child_init(&h->watch, h->loop, h->child.pidfd, helper_on_end);
	loop_fd_init(&h->sock, h->loop, h->sock_fd, LOOP_READ, helper_on_sock);
	helper_flush(h);
	return 0;
}

static void helper_on_lost(struct loop_defer *d)
{
	helper_lose(container_of(d, struct cloud_helper, lost), true);
}

static void helper_on_again(struct loop_timer *t)
{
	struct cloud_helper *h = container_of(t, struct cloud_helper, again);
	struct error err = ERROR_INIT;

	if (helper_start(h, &err) == 0)
		return;
	log_error("the program that speaks to the cloud cannot be started", LOG_ERR(&err));
	helper_try_later(h);
	loop_defer_schedule(&h->lost);
}

int cloud_helper_new(struct cloud_helper **ret, const struct cloud_helper_config *config,
		     struct error *err)
{
	struct cloud_helper *h = calloc(1, sizeof(*h));

	if (!h)
		return error_set(err, -ENOMEM, "clouds");
	*h = (struct cloud_helper){ .loop = config->loop,
				    .program = strdup(config->program),
				    .provider = strdup(config->provider),
				    .project = strdup(config->project),
				    .region = strdup(config->region),
				    .endpoint = strdup(config->endpoint),
				    .profile = strdup(config->profile),
				    .trust = strdup(config->trust),
				    .child = ISOLATE_CHILD_INIT,
				    .sock_fd = -1,
				    .pause = HELPER_PAUSE_FIRST };
	list_init(&h->questions);
	loop_timer_init(&h->again, h->loop, helper_on_again);
	loop_defer_init(&h->lost, h->loop, helper_on_lost);
	if (!h->program || !h->provider || !h->project || !h->region || !h->endpoint ||
	    !h->profile || !h->trust) {
		(void)cloud_helper_free(h);
		return error_set(err, -ENOMEM, "clouds");
	}
	loop_timer_set(&h->again, 0);
	*ret = h;
	return 0;
}

struct cloud_helper *cloud_helper_free(struct cloud_helper *h)
{
	if (!h)
		return NULL;
	/* Its socket is its life. */
	helper_release(h);
	loop_timer_done(&h->again);
	loop_defer_done(&h->lost);
	while (!list_empty(&h->questions))
		(void)cloud_question_free(list_first(&h->questions, struct cloud_question, link));
	free(h->program);
	free(h->provider);
	free(h->project);
	free(h->region);
	free(h->endpoint);
	free(h->profile);
	free(h->trust);
	free(h);
	return NULL;
}
