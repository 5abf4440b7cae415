/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_VSPHERE_CALL_H
#define NACRE_CLOUD_VSPHERE_CALL_H

#include <pthread.h>
#include <stdbool.h>

#include "base/memory/buf.h"
#include "base/time/clock.h"
#include "cloud/http.h"
#include "cloud/provider.h"
#include "cloud/vsphere_key.h"
#include "cloud/xml.h"

/*
 * One request of vCenter's API (SOAP, the namespace urn:vim25), sent and sent again: after a lost
 * answer, a server's fault, a session that has ended, until VSPHERE_PATIENCE is over. What takes
 * longer is a task there, which is waited for. One object for each thread; all have one session.
 *
 * A session ends when nobody has asked anything for some time, and when vCenter starts again. The
 * request that hears of it (NotAuthenticated) was not carried out: it is sent once more with a new
 * session. A password that is refused is not shown again for VSPHERE_REFUSED_PAUSE, since vCenter
 * locks accounts.
 */

#define VSPHERE_SPACE "urn:vim25"
#define VSPHERE_ANSWER_MAX (8 << 20)
#define VSPHERE_PATIENCE (45 * NSEC_PER_SEC)
#define VSPHERE_REFUSED_PAUSE (60 * NSEC_PER_SEC)
#define VSPHERE_ID_MAX 79 /* of an object in vCenter, "vm-1017" */

struct vsphere_session {
	char cookie[512]; /* "NAME=VALUE"; "": there is none */
	char manager[VSPHERE_ID_MAX + 1], collector[VSPHERE_ID_MAX + 1], search[VSPHERE_ID_MAX + 1];
};

/* The state that all threads share. */
struct vsphere_account {
	struct url endpoint;
	char datacenter[64];
	struct buf authorities;
	bool has_pin;
	uint8_t pin[HTTP_PIN_SIZE];
	struct vsphere_key key;
	pthread_mutex_t lock; /* of what follows */
	struct vsphere_session session;
	struct error refusal; /* of the last login */
	nsec_t refused;       /* by the monotonic clock; 0: it was not refused */
};

struct vsphere {
	struct vsphere_account *account;
	struct http http;
};

/* An object and a method of it. */
struct vsphere_request {
	const char *method;
	const char *type, *id; /* id NULL: the session's PropertyCollector or SearchIndex */
	const char *arguments; /* XML */
	bool once;             /* a try whose result is unknown is not repeated */
};

/* *ret: the response element, in the arena. f->code is the name of a fault ("DuplicateName"). */
int vsphere_call(struct vsphere *v, const struct vsphere_request *q, struct arena *arena,
		 const struct xml_node **ret, struct cloud_fault *f, struct error *err);
/* The same for a method that begins a task, which is waited for; where that takes too long
 * f->unknown. The error of the task is the result. */
int vsphere_task(struct vsphere *v, const struct vsphere_request *q, struct cloud_fault *f,
		 struct error *err);

struct vsphere_objects {
	const struct xml_node **at;
	size_t n;
};

/* The objects of all pages of a RetrievePropertiesEx, in the arena. spec: the specSet element. */
int vsphere_retrieve(struct vsphere *v, const char *spec, struct arena *arena,
		     struct vsphere_objects *ret, struct cloud_fault *f, struct error *err);
/* The value of a property in an object (NULL is fine), or NULL. */
const struct xml_node *vsphere_property(const struct xml_node *object, const char *name);
/* The text of it, or "". */
const char *vsphere_text(const struct xml_node *object, const char *name);
/* An element with this text. */
int vsphere_put(struct buf *b, const char *tag, const char *text);
/* Whether it is an id of an object of vCenter. */
bool vsphere_is_id(const char *id);

/* ---- pure, for tests ---- */

/* The result that an answer stands for: 0 with the response element of that method, or the error;
 * *ret_again where a retry makes sense. root NULL: none that can be read. */
int vsphere_judge(int status, const char *method, const struct xml_node *root,
		  const struct xml_node **ret, struct cloud_fault *f, bool *ret_again,
		  struct error *err);
/* That of the property info of a task: 1 it has succeeded, 0 it goes on, or its error. */
int vsphere_judge_task(const struct xml_node *object, struct cloud_fault *f, bool *ret_again,
		       struct error *err);

#endif
