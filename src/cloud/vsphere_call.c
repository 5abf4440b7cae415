/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/vsphere_call.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"

#define VSPHERE_TIMEOUT_MS 20000L
#define VSPHERE_PAGE 500
#define VSPHERE_PAGES_MAX 1000
#define VSPHERE_RESTARTS_MAX 3
#define VSPHERE_MEMORY (16 << 20)
#define VSPHERE_COOKIE "vmware_soap_session="
#define SOAP_SPACE "http://schemas.xmlsoap.org/soap/envelope/"
#define SOAP_HEAD                                                                                  \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?><Envelope xmlns=\"" SOAP_SPACE "\" "            \
	"xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "                                 \
	"xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\"><Body>"

/* ---- XML ---- */

int vsphere_put(struct buf *b, const char *tag, const char *text)
{
	int r = buf_addf(b, "<%s>", tag);

	for (; *text && r == 0; text++)
		r = *text == '&'   ? buf_add_str(b, "&amp;")
		    : *text == '<' ? buf_add_str(b, "&lt;")
		    : *text == '>' ? buf_add_str(b, "&gt;")
				   : buf_add(b, text, 1);
	return r < 0 ? r : buf_addf(b, "</%.*s>", (int)strcspn(tag, " "), tag);
}

bool vsphere_is_id(const char *id)
{
	size_t n = strlen(id);

	return n > 0 && n <= VSPHERE_ID_MAX &&
	       strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") ==
		       n;
}

/* The element of that name in the same namespace. */
static const struct xml_node *soap_child(const struct xml_node *n, const char *name)
{
	const struct xml_node *c = n ? n->first : NULL;

	while (c && (!str_eq(c->name, name) || !str_eq(c->space, n->space)))
		c = c->next;
	return c;
}

const struct xml_node *vsphere_property(const struct xml_node *object, const char *name)
{
	const struct xml_node *p;

	for (p = object ? object->first : NULL; p; p = p->next)
		if (str_eq(p->name, "propSet") && str_eq(p->space, VSPHERE_SPACE) &&
		    str_eq(xml_text(p, "name"), name))
			return soap_child(p, "val");
	return NULL;
}

const char *vsphere_text(const struct xml_node *object, const char *name)
{
	const struct xml_node *p = vsphere_property(object, name);

	return p ? p->text : "";
}

/* ---- what an answer means ---- */

enum vsphere_meaning {
	VSPHERE_AGAIN,   /* it has not been done, and may be asked again */
	VSPHERE_DOUBT,   /* it may have been done */
	VSPHERE_SESSION, /* a session is needed */
	VSPHERE_KEY,     /* the account may not do that */
	VSPHERE_FULL,
	VSPHERE_WRONG,
	VSPHERE_MISSING,
	VSPHERE_STATE,
};

static const struct {
	const char *fault; /* a '*' at the end stands for any rest */
	enum vsphere_meaning meaning;
} vsphere_faults[] = {
	{ "NotAuthenticated", VSPHERE_SESSION }, { "NoPermission", VSPHERE_KEY },
	{ "InvalidLogin*", VSPHERE_KEY },        { "PasswordExpired", VSPHERE_KEY },
	{ "RestrictedVersion", VSPHERE_KEY },    { "TaskInProgress", VSPHERE_AGAIN },
	{ "ConcurrentAccess", VSPHERE_AGAIN },   { "TooManyConcurrent*", VSPHERE_AGAIN },
	{ "ResourceInUse", VSPHERE_AGAIN },      { "ManagedObjectNotFound", VSPHERE_MISSING },
	{ "Insufficient*", VSPHERE_FULL },       { "NoDiskSpace", VSPHERE_FULL },
	{ "OutOfBounds", VSPHERE_FULL },         { "NumVirtualCpusExceedsLimit", VSPHERE_FULL },
	{ "MemorySize*", VSPHERE_FULL },         { "LicenseResourceUnavailable", VSPHERE_FULL },
	{ "NotEnoughLicenses", VSPHERE_FULL },   { "InvalidPowerState", VSPHERE_STATE },
	{ "InvalidState", VSPHERE_STATE },       { "Invalid*", VSPHERE_WRONG },
	{ "NotSupported", VSPHERE_WRONG },       { "Host*", VSPHERE_DOUBT },
	{ "RequestCanceled", VSPHERE_DOUBT },    { "Timedout", VSPHERE_DOUBT },
	{ "SystemError", VSPHERE_DOUBT },        { "RuntimeFault", VSPHERE_DOUBT },
};

static enum vsphere_meaning vsphere_meaning_of(int status, const char *fault)
{
	for (size_t i = 0; *fault && i < ARRAY_SIZE(vsphere_faults); i++) {
		const char *pattern = vsphere_faults[i].fault;
		size_t n = strlen(pattern);

		if (pattern[n - 1] == '*' ? strncmp(pattern, fault, n - 1) == 0
					  : str_eq(pattern, fault))
			return vsphere_faults[i].meaning;
	}
	if (*fault)
		return VSPHERE_STATE;
	switch (status) {
	case 400:
		return VSPHERE_WRONG;
	case 401:
		return VSPHERE_SESSION;
	case 403:
		return VSPHERE_KEY;
	case 404:
		return VSPHERE_MISSING;
	case 429:
		return VSPHERE_AGAIN;
	default:
		return VSPHERE_DOUBT;
	}
}

static const struct {
	enum error_kind kind;
	const char *also;
} vsphere_meanings[] = {
	[VSPHERE_AGAIN] = { ERROR_UNAVAILABLE, "" },
	[VSPHERE_DOUBT] = { ERROR_UNAVAILABLE, "" },
	[VSPHERE_SESSION] = { ERROR_UNAVAILABLE, "" },
	[VSPHERE_KEY] = { ERROR_PRECONDITION,
			  " (the account of the daemon: doc/cloud.md has the role that it needs)" },
	[VSPHERE_FULL] = { ERROR_EXHAUSTED, "" },
	[VSPHERE_WRONG] = { ERROR_INVALID, "" },
	[VSPHERE_MISSING] = { ERROR_NOT_FOUND, "" },
	[VSPHERE_STATE] = { ERROR_PRECONDITION, "" },
};

/* What vCenter says is for people; "privilege" is what an account lacks. */
static int vsphere_refuse(int status, const char *fault, const char *text, const char *privilege,
			  struct cloud_fault *f, bool *ret_again, struct error *err)
{
	enum vsphere_meaning meaning;

	if (strlen(fault) >= sizeof(f->code) || !str_is_clean(fault))
		fault = "";
	(void)str_copy(f->code, sizeof(f->code), fault);
	meaning = vsphere_meaning_of(status, fault);
	f->unknown = meaning == VSPHERE_DOUBT;
	*ret_again = meaning == VSPHERE_AGAIN || meaning == VSPHERE_DOUBT;
	if (*fault)
		return error_refuse(err, vsphere_meanings[meaning].kind,
				    "the cloud says %s: %.300s%s%.80s%s", fault, text,
				    *privilege ? ": " : "", privilege,
				    vsphere_meanings[meaning].also);
	return error_refuse(err, vsphere_meanings[meaning].kind,
			    "the cloud answers with the status %d and %.300s%s", status,
			    *text ? text : "nothing that can be read",
			    vsphere_meanings[meaning].also);
}

/* The type of a fault is what xsi:type says, else the name of its element: "NotAuthenticatedFault".
 */
static int vsphere_read_fault(const struct xml_node *fault, int status, struct cloud_fault *f,
			      bool *ret_again, struct error *err)
{
	const struct xml_node *detail = xml_child(fault, "detail");
	const struct xml_node *first = detail ? detail->first : NULL;
	char name[80] = "";

	if (first && str_eq(first->space, VSPHERE_SPACE)) {
		if (str_copy(name, sizeof(name), *first->type ? first->type : first->name) < 0)
			name[0] = '\0';
		if (!*first->type && str_has_suffix(name, "Fault"))
			name[strlen(name) - strlen("Fault")] = '\0';
	}
	return vsphere_refuse(status, name, xml_text(fault, "faultstring"),
			      xml_text(first, "privilegeId"), f, ret_again, err);
}

int vsphere_judge(int status, const char *method, const struct xml_node *root,
		  const struct xml_node **ret, struct cloud_fault *f, bool *ret_again,
		  struct error *err)
{
	const struct xml_node *body, *fault, *response;
	char name[80];

	*f = (struct cloud_fault){ .code = "" };
	*ret_again = false;
	body = root && str_eq(root->name, "Envelope") && str_eq(root->space, SOAP_SPACE)
		       ? soap_child(root, "Body")
		       : NULL;
	fault = soap_child(body, "Fault");
	if (fault)
		return vsphere_read_fault(fault, status, f, ret_again, err);
	(void)str_printf(name, sizeof(name), "%sResponse", method);
	response = status == 200 ? xml_child(body, name) : NULL;
	if (response && str_eq(response->space, VSPHERE_SPACE)) {
		*ret = response;
		return 0;
	}
	/* A status that says what was not done is believed without a body too. */
	return vsphere_refuse(status == 200 ? 500 : status, "", "", "", f, ret_again, err);
}

int vsphere_judge_task(const struct xml_node *object, struct cloud_fault *f, bool *ret_again,
		       struct error *err)
{
	const char *state = vsphere_text(object, "info.state");
	const struct xml_node *e = vsphere_property(object, "info.error");
	const struct xml_node *fault = soap_child(e, "fault");

	*ret_again = false;
	if (str_eq(state, "success"))
		return 1;
	if (str_eq(state, "error"))
		return vsphere_refuse(500, fault ? fault->type : "",
				      xml_text(e, "localizedMessage"),
				      xml_text(fault, "privilegeId"), f, ret_again, err);
	return 0;
}

/* ---- one try ---- */

static int vsphere_post(struct vsphere *v, const struct vsphere_session *s,
			const struct vsphere_request *q, struct arena *arena,
			const struct xml_node **ret, struct cloud_fault *f, bool *ret_again,
			struct error *err)
{
	_cleanup_(buf_done) struct buf body = BUF_INIT, answer = BUF_INIT;
	char url[URL_SIZE], cookie[sizeof(s->cookie) + 16];
	const char *headers[] = { "Content-Type: text/xml; charset=utf-8",
				  "SOAPAction: \"urn:vim25/6.5\"", cookie };
	struct error own = ERROR_INIT;
	struct xml_node *root = NULL;
	struct http_answer a;
	int r = buf_addf(&body,
			 SOAP_HEAD "<%s xmlns=\"" VSPHERE_SPACE "\"><_this type=\"%s\">%s</_this>"
				   "%s</%s></Body></Envelope>",
			 q->method, q->type, q->id, q->arguments, q->method);

	*f = (struct cloud_fault){ .code = "" };
	*ret_again = false;
	if (r < 0)
		return error_set(err, r, "ask the cloud");
	url_format(&v->account->endpoint, url);
	(void)str_printf(cookie, sizeof(cookie), "Cookie: %s", s->cookie);
	r = http_ask(&v->http,
		     &(struct http_request){ .method = "POST",
					     .url = url,
					     .headers = headers,
					     .n_headers = *s->cookie ? 3 : 2,
					     .body = buf_data(&body),
					     .body_len = body.len,
					     .timeout_ms = VSPHERE_TIMEOUT_MS,
					     .answer_max = VSPHERE_ANSWER_MAX,
					     .fresh = q->once },
		     &a, &answer, err);
	if (str_eq(q->method, "Login"))
		explicit_bzero(body.base, body.size);
	if (r < 0) {
		*ret_again = err->kind == ERROR_UNAVAILABLE;
		f->unknown = true;
		return r;
	}
	if (xml_parse(&root, arena, answer.len ? (const void *)buf_data(&answer) : "", answer.len,
		      &own) == -ENOMEM) {
		f->unknown = true;
		return error_copy(err, &own);
	}
	r = vsphere_judge(a.status, q->method, root, ret, f, ret_again, err);
	f->date = a.date;
	return r;
}

/* ---- the session ---- */

static int vsphere_take_ids(struct vsphere_session *s, const struct xml_node *response,
			    struct error *err)
{
	const struct xml_node *content = soap_child(response, "returnval");
	const struct {
		const char *name;
		char *to;
	} ids[] = { { "sessionManager", s->manager },
		    { "propertyCollector", s->collector },
		    { "searchIndex", s->search } };
	const char *kind = xml_text(soap_child(content, "about"), "apiType");

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		const char *id = xml_text(content, ids[i].name);

		if (!vsphere_is_id(id))
			return error_refuse(err, ERROR_UNAVAILABLE,
					    "the cloud's answer has no %s that is one",
					    ids[i].name);
		(void)str_copy(ids[i].to, VSPHERE_ID_MAX + 1, id);
	}
	return str_eq(kind, "VirtualCenter")
		       ? 0
		       : error_refuse(err, ERROR_PRECONDITION,
				      "cloud.vsphere.endpoint is no vCenter (it says it is "
				      "\"%.32s\"): a host alone makes no machines from templates",
				      kind);
}

static int vsphere_take_cookie(struct vsphere *v, struct vsphere_session *s, struct error *err)
{
	char header[1024];

	for (size_t i = 0; http_header(&v->http, "Set-Cookie", i, header, sizeof(header)); i++) {
		header[strcspn(header, ";")] = '\0';
		if (str_has_prefix(header, VSPHERE_COOKIE) && str_is_clean(header) &&
		    str_copy(s->cookie, sizeof(s->cookie), header) >= 0)
			return 0;
	}
	return error_refuse(err, ERROR_UNAVAILABLE, "the cloud's answer to a login has no cookie");
}

static int vsphere_login(struct vsphere *v, struct cloud_fault *f, bool *ret_again,
			 struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(VSPHERE_MEMORY);
	_cleanup_(buf_done) struct buf login = BUF_INIT;
	struct vsphere_account *a = v->account;
	struct vsphere_session s = { .cookie = "" };
	const struct xml_node *response;
	int r = vsphere_post(v, &s,
			     &(struct vsphere_request){ .method = "RetrieveServiceContent",
							.type = "ServiceInstance",
							.id = "ServiceInstance",
							.arguments = "" },
			     &arena, &response, f, ret_again, err);

	if (r == 0)
		r = vsphere_take_ids(&s, response, err);
	if (r < 0)
		return r;
	r = vsphere_put(&login, "userName", a->key.name);
	if (r == 0)
		r = vsphere_put(&login, "password", a->key.password);
	if (r == 0)
		r = buf_add(&login, "", 1);
	if (r < 0)
		return error_set(err, r, "log in to the cloud");
	r = vsphere_post(v, &s,
			 &(struct vsphere_request){ .method = "Login",
						    .type = "SessionManager",
						    .id = s.manager,
						    .arguments = (const char *)buf_data(&login) },
			 &arena, &response, f, ret_again, err);
	explicit_bzero(login.base, login.size);
	if (r == 0)
		r = vsphere_take_cookie(v, &s, err);
	if (r == 0)
		a->session = s;
	return r;
}

/* With the lock held: who comes meanwhile waits for the same answer. */
static int vsphere_renew(struct vsphere *v, struct cloud_fault *f, bool *ret_again,
			 struct error *err)
{
	struct vsphere_account *a = v->account;
	int r;

	if (a->refused) {
		/* Another process finds another password, if anybody does. */
		f->stale = clock_mono() - a->refused >= VSPHERE_REFUSED_PAUSE;
		return error_copy(err, &a->refusal);
	}
	r = vsphere_login(v, f, ret_again, err);
	/* Whatever happened, what was asked for was not. */
	f->unknown = false;
	if (r < 0 && err->kind == ERROR_PRECONDITION) {
		a->refused = clock_mono();
		a->refusal = *err;
	}
	return r;
}

static int vsphere_get_session(struct vsphere *v, struct vsphere_session *ret,
			       struct cloud_fault *f, bool *ret_again, struct error *err)
{
	struct vsphere_account *a = v->account;
	int r = 0;

	*f = (struct cloud_fault){ .code = "" };
	*ret_again = false;
	(void)pthread_mutex_lock(&a->lock);
	if (!*a->session.cookie)
		r = vsphere_renew(v, f, ret_again, err);
	if (r == 0)
		*ret = a->session;
	(void)pthread_mutex_unlock(&a->lock);
	return r;
}

static void vsphere_drop_session(struct vsphere_account *a, const struct vsphere_session *old)
{
	(void)pthread_mutex_lock(&a->lock);
	if (str_eq(a->session.cookie, old->cookie))
		a->session.cookie[0] = '\0';
	(void)pthread_mutex_unlock(&a->lock);
}

/* ---- again and again ---- */

static int vsphere_try(struct vsphere *v, const struct vsphere_request *q,
		       struct vsphere_session *s, struct arena *arena, const struct xml_node **ret,
		       struct cloud_fault *f, bool *ret_again, struct error *err)
{
	struct vsphere_request own = *q;
	int r = vsphere_get_session(v, s, f, ret_again, err);

	if (r < 0)
		return r;
	if (!own.id)
		own.id = str_eq(q->type, "SearchIndex") ? s->search : s->collector;
	r = vsphere_post(v, s, &own, arena, ret, f, ret_again, err);
	if (q->once && f->unknown)
		*ret_again = false;
	return r;
}

int vsphere_call(struct vsphere *v, const struct vsphere_request *q, struct arena *arena,
		 const struct xml_node **ret, struct cloud_fault *f, struct error *err)
{
	nsec_t until = clock_mono() + VSPHERE_PATIENCE;
	bool again, unknown = false, renewed = false;
	int pause_ms = 0;

	for (;;) {
		struct vsphere_session s = { .cookie = "" };
		int r;

		*err = (struct error)ERROR_INIT;
		r = vsphere_try(v, q, &s, arena, ret, f, &again, err);
		/* A result stays unknown, once a try left it so, until a try succeeds. */
		unknown = unknown || f->unknown;
		f->unknown = r < 0 && unknown;
		if (r < 0 && str_eq(f->code, "NotAuthenticated")) {
			vsphere_drop_session(v->account, &s);
			again = !renewed;
			renewed = true;
			if (again)
				continue;
		}
		if (r == 0 || !again || clock_mono() >= until)
			return r;
		http_rest(&pause_ms);
	}
}

/* ---- properties ---- */

static int vsphere_keep(struct vsphere_objects *all, const struct xml_node *object,
			struct arena *arena)
{
	/* Doubled at each power of two. */
	if ((all->n & (all->n - 1)) == 0) {
		const struct xml_node **more =
			arena_zalloc(arena, MAX(all->n * 2, (size_t)16), sizeof(*more));

		if (!more)
			return -ENOMEM;
		if (all->n)
			memcpy(more, all->at, all->n * sizeof(*more));
		all->at = more;
	}
	all->at[all->n++] = object;
	return 0;
}

/* token "": the first page; then that of the next one, "" where this is the last. */
static int vsphere_next_page(struct vsphere *v, const char *spec, char token[VSPHERE_ID_MAX + 1],
			     struct arena *arena, struct vsphere_objects *all,
			     struct cloud_fault *f, struct error *err)
{
	char more[VSPHERE_ID_MAX + 32], options[64];
	_cleanup_str_ char *first = NULL;
	const struct xml_node *response, *page, *o;
	int r;

	(void)str_printf(more, sizeof(more), "<token>%s</token>", token);
	(void)str_printf(options, sizeof(options), "<options><maxObjects>%d</maxObjects></options>",
			 VSPHERE_PAGE);
	first = str_format("%s%s", spec, options);
	if (!first)
		return error_set(err, -ENOMEM, "ask the cloud");
	r = vsphere_call(
		v,
		&(struct vsphere_request){ .method = *token ? "ContinueRetrievePropertiesEx"
							    : "RetrievePropertiesEx",
					   .type = "PropertyCollector",
					   .arguments = *token ? more : first },
		arena, &response, f, err);
	if (r < 0)
		return r;
	page = soap_child(response, "returnval");
	for (o = page ? page->first : NULL; o && r == 0; o = o->next)
		if (str_eq(o->name, "objects") && str_eq(o->space, VSPHERE_SPACE))
			r = vsphere_keep(all, o, arena);
	if (r < 0)
		return error_set(err, r, "read the cloud's answer");
	if (*xml_text(page, "token") && !vsphere_is_id(xml_text(page, "token")))
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "the cloud's answer has a token that is none");
	(void)str_copy(token, VSPHERE_ID_MAX + 1, xml_text(page, "token"));
	return 0;
}

int vsphere_retrieve(struct vsphere *v, const char *spec, struct arena *arena,
		     struct vsphere_objects *ret, struct cloud_fault *f, struct error *err)
{
	char token[VSPHERE_ID_MAX + 1] = "";
	int restarts = 0, r = 0;

	*ret = (struct vsphere_objects){ .n = 0 };
	for (int i = 0; i < VSPHERE_PAGES_MAX && r == 0; i++) {
		bool first = !*token;

		r = vsphere_next_page(v, spec, token, arena, ret, f, err);
		if (r == 0 && !*token)
			return 0;
		/* The token of a page ends with the session: all begins anew. */
		if (r < 0 && !first && *f->code && restarts++ < VSPHERE_RESTARTS_MAX) {
			token[0] = '\0';
			ret->n = 0;
			r = 0;
		}
	}
	return r < 0 ? r
		     : error_refuse(err, ERROR_EXHAUSTED, "the cloud has more than %d machines",
				    VSPHERE_PAGES_MAX * VSPHERE_PAGE);
}

/* ---- tasks ---- */

int vsphere_task(struct vsphere *v, const struct vsphere_request *q, struct cloud_fault *f,
		 struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(VSPHERE_MEMORY);
	nsec_t until = clock_mono() + VSPHERE_PATIENCE;
	_cleanup_str_ char *spec = NULL;
	const struct xml_node *response;
	struct vsphere_objects task;
	int pause_ms = 0, r = vsphere_call(v, q, &arena, &response, f, err);
	bool again;

	if (r < 0)
		return r;
	if (vsphere_is_id(xml_text(response, "returnval")))
		spec = str_format("<specSet><propSet><type>Task</type><pathSet>info.state</pathSet>"
				  "<pathSet>info.error</pathSet></propSet><objectSet>"
				  "<obj type=\"Task\">%s</obj></objectSet></specSet>",
				  xml_text(response, "returnval"));
	r = spec ? vsphere_retrieve(v, spec, &arena, &task, f, err)
		 : error_refuse(err, ERROR_UNAVAILABLE, "the cloud's answer names no task");
	while (r == 0) {
		r = vsphere_judge_task(task.n ? task.at[0] : NULL, f, &again, err);
		if (r != 0)
			return r < 0 ? r : 0;
		if (clock_mono() >= until)
			r = error_refuse(err, ERROR_UNAVAILABLE,
					 "the cloud has not done it in %d seconds",
					 (int)(VSPHERE_PATIENCE / NSEC_PER_SEC));
		http_rest(&pause_ms);
		if (r == 0)
			r = vsphere_retrieve(v, spec, &arena, &task, f, err);
	}
	/* The outcome is unknown. */
	f->unknown = true;
	err->kind = ERROR_UNAVAILABLE;
	return r;
}
