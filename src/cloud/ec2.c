/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/ec2.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "cloud/xml.h"
#include "wire/format/base64.h"

#define EC2_ID_MAX 63

/* ---- forms ---- */

static int ec2_put(struct buf *b, const char *name, const char *value)
{
	_cleanup_str_ char *escaped = malloc(3 * strlen(value) + 1);

	if (!escaped)
		return -ENOMEM;
	url_escape(escaped, value);
	return buf_addf(b, "&%s=%s", name, escaped);
}

static int ec2_begin(struct buf *b, const char *action)
{
	return buf_addf(b, "Action=%s&Version=2016-11-15", action);
}

/* A word of the request, where it has one. */
static int ec2_put_word(struct buf *b, const char *name, const struct cloudmsg *q, const char *key)
{
	const char *value = cloudmsg_get(q, key);

	return *value ? ec2_put(b, name, value) : 0;
}

static int ec2_put_groups(struct buf *b, const struct cloudmsg *q)
{
	const char *at = NULL, *group;
	char name[64];
	int r = 0;

	for (unsigned n = 1; r == 0 && (group = cloudmsg_next(q, "group", &at)) != NULL; n++) {
		(void)str_printf(name, sizeof(name), "SecurityGroupId.%u", n);
		r = ec2_put(b, name, group);
	}
	return r;
}

/* One tag of what the call makes: the machine, and its disks. */
static int ec2_put_tag(struct buf *b, unsigned kind, unsigned n, const char *tag)
{
	const char *equals = strchr(tag, '=');
	_cleanup_str_ char *key = str_format("%.*s", (int)(equals - tag), tag);
	char name[96];
	int r;

	(void)str_printf(name, sizeof(name), "TagSpecification.%u.Tag.%u.Key", kind, n);
	r = key ? ec2_put(b, name, key) : -ENOMEM;
	if (r < 0)
		return r;
	(void)str_printf(name, sizeof(name), "TagSpecification.%u.Tag.%u.Value", kind, n);
	return ec2_put(b, name, equals + 1);
}

static int ec2_put_tags(struct buf *b, const struct cloudmsg *q)
{
	static const char *const kinds[] = { "instance", "volume" };
	char name[64];
	int r = 0;

	for (unsigned kind = 0; kind < ARRAY_SIZE(kinds) && r == 0; kind++) {
		const char *at = NULL, *tag;
		unsigned n = 1;

		(void)str_printf(name, sizeof(name), "TagSpecification.%u.ResourceType", kind + 1);
		r = ec2_put(b, name, kinds[kind]);
		while (r == 0 && (tag = cloudmsg_next(q, "tag", &at)) != NULL)
			if (strchr(tag, '='))
				r = ec2_put_tag(b, kind + 1, n++, tag);
	}
	return r;
}

int ec2_create_form(struct buf *b, const struct cloudmsg *q)
{
	static const struct {
		const char *name, *key;
	} words[] = {
		{ "ImageId", "image" },      { "InstanceType", "type" },
		{ "ClientToken", "token" },  { "SubnetId", "subnet" },
		{ "KeyName", "key-name" },   { "IamInstanceProfile.Name", "instance-profile" },
		{ "UserData", "user-data" },
	};
	int r = ec2_begin(b, "RunInstances");

	if (r == 0)
		r = buf_add_str(b, "&MinCount=1&MaxCount=1"
				   "&InstanceInitiatedShutdownBehavior=terminate"
				   "&MetadataOptions.HttpTokens=required"
				   "&MetadataOptions.HttpPutResponseHopLimit=1");
	/* Taken back, it is gone like any other that has ended. */
	if (r == 0 && str_eq(cloudmsg_get(q, "spot"), "yes"))
		r = buf_add_str(b, "&InstanceMarketOptions.MarketType=spot"
				   "&InstanceMarketOptions.SpotOptions.SpotInstanceType=one-time"
				   "&InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior"
				   "=terminate");
	for (size_t i = 0; i < ARRAY_SIZE(words) && r == 0; i++)
		r = ec2_put_word(b, words[i].name, q, words[i].key);
	if (r == 0)
		r = ec2_put_groups(b, q);
	if (r == 0)
		r = ec2_put_tags(b, q);
	if (r == 0 && str_eq(cloudmsg_get(q, "dry-run"), "yes"))
		r = buf_add_str(b, "&DryRun=true");
	return r;
}

/* ---- answers ---- */

static int ec2_check(const char **text, const char *what, struct error *err)
{
	if (strlen(*text) > CLOUDMSG_TEXT_MAX || !str_is_clean(*text))
		return error_refuse(err, ERROR_INVALID, "the cloud's answer: no %s is like that",
				    what);
	return 0;
}

static bool ec2_is_id(const char *id)
{
	size_t n = strlen(id);

	return n > 2 && n <= EC2_ID_MAX && str_has_prefix(id, "i-") &&
	       strspn(id + 2, "0123456789abcdef") == n - 2;
}

static int ec2_read_tags(struct cloud_machine *m, const struct xml_node *item, struct arena *arena)
{
	const struct xml_node *set = xml_child(item, "tagSet"), *t;
	size_t n = 0;

	for (t = set ? set->first : NULL; t; t = t->next)
		n++;
	m->tags = arena_zalloc(arena, n + 1, sizeof(char *));
	if (!m->tags)
		return -ENOMEM;
	for (t = set ? set->first : NULL; t; t = t->next) {
		char *tag = arena_printf(arena, "%.128s=%.256s", xml_text(t, "key"),
					 xml_text(t, "value"));

		if (!tag)
			return -ENOMEM;
		str_clean(tag);
		if (str_is_utf8(tag, strlen(tag)))
			m->tags[m->n_tags++] = tag;
	}
	return 0;
}

int ec2_read_machine(struct cloud_machine *ret, const struct xml_node *item, struct arena *arena,
		     struct error *err)
{
	const struct xml_node *state = xml_child(item, "instanceState");
	const struct xml_node *why = xml_child(item, "stateReason");
	struct cloud_machine m = {
		.id = xml_text(item, "instanceId"),
		.token = xml_text(item, "clientToken"),
		.state = xml_text(state, "name"),
		.type = xml_text(item, "instanceType"),
		.address = xml_text(item, "privateIpAddress"),
		.zone = xml_text(xml_child(item, "placement"), "availabilityZone"),
		.launched = xml_text(item, "launchTime"),
	};
	const struct {
		const char **text;
		const char *what;
	} texts[] = { { &m.token, "client token" }, { &m.state, "state" },
		      { &m.type, "instance type" }, { &m.address, "address" },
		      { &m.zone, "zone" },          { &m.launched, "time" } };
	char *reason;
	int r = 0;

	if (!ec2_is_id(m.id))
		return error_refuse(err, ERROR_INVALID,
				    "the cloud's answer: \"%.64s\" is no id of an instance", m.id);
	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == 0; i++)
		r = ec2_check(texts[i].text, texts[i].what, err);
	if (r < 0)
		return r;
	reason = arena_printf(arena, "%.256s", xml_text(why, "message"));
	if (!reason || ec2_read_tags(&m, item, arena) < 0)
		return error_set(err, -ENOMEM, "read the cloud's answer");
	/* A character may have been cut in the middle. */
	for (size_t n = strlen(reason); n > 0 && !str_is_utf8(reason, n);)
		reason[--n] = '\0';
	str_clean(reason);
	m.reason = reason;
	*ret = m;
	return 0;
}

/* ---- calls ---- */

static int ec2_create(void *self, const struct cloudmsg *q, struct arena *arena,
		      struct cloud_machine *ret, struct cloud_fault *f, struct error *err)
{
	struct ec2 *e = self;
	_cleanup_(buf_done) struct buf form = BUF_INIT;
	const struct xml_node *item;
	struct xml_node *root;
	int r = ec2_create_form(&form, q);

	*ret = (struct cloud_machine){ .id = "" };
	if (r < 0)
		return error_set(err, r, "ask the cloud");
	e->once = true;
	r = ec2_call(e, &form, arena, &root, f, err);
	e->once = false;
	if (str_eq(f->code, "DryRunOperation"))
		return 0;
	if (r < 0)
		return r;
	item = xml_find(root, "instancesSet/item");
	r = ec2_read_machine(ret, item, arena, err);
	if (r < 0) {
		/* It was made, whatever it is called. */
		f->unknown = true;
		err->kind = r == -ENOMEM ? err->kind : ERROR_UNAVAILABLE;
	}
	return r;
}

static int ec2_list_form(struct buf *b, const struct cloudmsg *q, const char *next)
{
	const char *at = NULL, *tag;
	char name[64], filter[512];
	int r = ec2_begin(b, "DescribeInstances");

	if (r == 0)
		r = buf_add_str(b, "&MaxResults=1000");
	for (unsigned n = 1; r == 0 && (tag = cloudmsg_next(q, "tag", &at)) != NULL; n++) {
		size_t len = strcspn(tag, "=");

		(void)str_printf(name, sizeof(name), "Filter.%u.Name", n);
		(void)str_printf(filter, sizeof(filter), "tag:%.*s", (int)MIN(len, (size_t)400),
				 tag);
		r = ec2_put(b, name, filter);
		(void)str_printf(name, sizeof(name), "Filter.%u.Value.1", n);
		if (r == 0)
			r = ec2_put(b, name, tag[len] ? tag + len + 1 : "");
	}
	return r == 0 && *next ? ec2_put(b, "NextToken", next) : r;
}

static int ec2_each_machine(const struct xml_node *root, struct arena *arena, cloud_machine_fn fn,
			    void *userdata, struct error *err)
{
	const struct xml_node *set = xml_child(root, "reservationSet"), *i, *item;
	struct cloud_machine m;
	int r = 0;

	for (i = set ? set->first : NULL; i; i = i->next) {
		const struct xml_node *inner = xml_child(i, "instancesSet");

		for (item = inner ? inner->first : NULL; item && r == 0; item = item->next) {
			r = ec2_read_machine(&m, item, arena, err);
			if (r == 0)
				r = fn(userdata, &m);
		}
	}
	return r;
}

static int ec2_list(void *self, const struct cloudmsg *q, cloud_machine_fn fn, void *userdata,
		    struct cloud_fault *f, struct error *err)
{
	struct ec2 *e = self;
	_cleanup_str_ char *next = strdup("");
	int r = next ? 0 : error_set(err, -ENOMEM, "ask the cloud");

	for (unsigned page = 0; r == 0; page++) {
		_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(CLOUD_ANSWER_MEMORY);
		_cleanup_(buf_done) struct buf form = BUF_INIT;
		struct xml_node *root;

		if (page == EC2_PAGES_MAX)
			return error_refuse(err, ERROR_UNAVAILABLE,
					    "the cloud's list has more than %d pages",
					    EC2_PAGES_MAX);
		r = ec2_list_form(&form, q, next);
		if (r < 0)
			return error_set(err, r, "ask the cloud");
		r = ec2_call(e, &form, &arena, &root, f, err);
		if (r == 0)
			r = ec2_each_machine(root, &arena, fn, userdata, err);
		if (r < 0 || !*xml_text(root, "nextToken"))
			break;
		free(next);
		next = strdup(xml_text(root, "nextToken"));
		if (!next)
			return error_set(err, -ENOMEM, "ask the cloud");
	}
	return r;
}

static int ec2_ask_about(struct ec2 *e, const char *action, const char *field, const char *id,
			 struct arena *arena, struct xml_node **ret, struct cloud_fault *f,
			 struct error *err)
{
	_cleanup_(buf_done) struct buf form = BUF_INIT;
	int r = ec2_begin(&form, action);

	if (r == 0)
		r = ec2_put(&form, field, id);
	if (r < 0)
		return error_set(err, r, "ask the cloud");
	return ec2_call(e, &form, arena, ret, f, err);
}

static int ec2_terminate(void *self, const char *id, struct arena *arena, const char **ret_state,
			 struct cloud_fault *f, struct error *err)
{
	struct ec2 *e = self;
	const struct xml_node *state;
	struct xml_node *root;
	int r = ec2_ask_about(e, "TerminateInstances", "InstanceId.1", id, arena, &root, f, err);

	if (r < 0)
		return r;
	state = xml_find(root, "instancesSet/item/currentState");
	*ret_state = xml_text(state, "name");
	return ec2_check(ret_state, "state", err);
}

static int ec2_tag_form(struct buf *b, const struct cloudmsg *q)
{
	const char *at = NULL, *id, *tag = cloudmsg_get(q, "tag"), *equals = strchr(tag, '=');
	_cleanup_str_ char *key = NULL;
	char name[64];
	int r = ec2_begin(b, "CreateTags");

	for (unsigned n = 1; r == 0 && (id = cloudmsg_next(q, "id", &at)) != NULL; n++) {
		(void)str_printf(name, sizeof(name), "ResourceId.%u", n);
		r = ec2_put(b, name, id);
	}
	key = str_format("%.*s", equals ? (int)(equals - tag) : 0, tag);
	if (r == 0)
		r = key ? ec2_put(b, "Tag.1.Key", key) : -ENOMEM;
	return r < 0 ? r : ec2_put(b, "Tag.1.Value", equals ? equals + 1 : "");
}

static int ec2_tag(void *self, const struct cloudmsg *q, struct arena *arena, struct cloud_fault *f,
		   struct error *err)
{
	struct ec2 *e = self;
	_cleanup_(buf_done) struct buf form = BUF_INIT;
	struct xml_node *root;
	int r = ec2_tag_form(&form, q);

	return r < 0 ? error_set(err, r, "ask the cloud")
		     : ec2_call(e, &form, arena, &root, f, err);
}

/* The last bytes, with '?' for each NUL, as base64 again. */
static int ec2_console_text(const char *text, struct arena *arena, const char **ret)
{
	size_t room = strlen(text), len;
	uint8_t *data = arena_alloc(arena, room + 1);

	if (!data || !base64_decode_lines(text, data, &len))
		return data ? -EINVAL : -ENOMEM;
	if (len > CLOUDMSG_CONSOLE_MAX) {
		data += len - CLOUDMSG_CONSOLE_MAX;
		len = CLOUDMSG_CONSOLE_MAX;
	}
	for (size_t i = 0; i < len; i++)
		if (data[i] == '\0')
			data[i] = '?';
	*ret = base64_encode(arena, data, len);
	return *ret ? 0 : -ENOMEM;
}

static int ec2_console(void *self, const char *id, struct arena *arena, const char **ret_base64,
		       const char **ret_time, struct cloud_fault *f, struct error *err)
{
	struct ec2 *e = self;
	struct xml_node *root;
	int r = ec2_ask_about(e, "GetConsoleOutput", "InstanceId", id, arena, &root, f, err);

	if (r < 0)
		return r;
	*ret_time = xml_text(root, "timestamp");
	r = ec2_check(ret_time, "time", err);
	if (r < 0)
		return r;
	r = ec2_console_text(xml_text(root, "output"), arena, ret_base64);
	return r == -EINVAL ? error_refuse(err, ERROR_UNAVAILABLE,
					   "the cloud's answer: the console is no base64")
	       : r < 0      ? error_set(err, r, "read the console")
			    : 0;
}

/* ---- the table ---- */

static void ec2_close(void *account)
{
	ec2_account_close(account);
	free(account);
}

static int ec2_open(void **ret, const struct cloudmsg *begin, struct error *err)
{
	struct ec2_account *a = calloc(1, sizeof(*a));
	int r = a ? ec2_account_open(a, cloudmsg_get(begin, "region"),
				     cloudmsg_get(begin, "endpoint"),
				     cloudmsg_get(begin, "profile"), err)
		  : error_set(err, -ENOMEM, "the cloud");

	if (r < 0)
		free(a);
	else
		*ret = a;
	return r;
}

static int ec2_attach(void **ret, void *account, struct error *err)
{
	struct ec2 *e = calloc(1, sizeof(*e));
	int r = e ? ec2_init(e, account, err) : error_set(err, -ENOMEM, "the cloud");

	if (r < 0)
		free(e);
	else
		*ret = e;
	return r;
}

const struct cloud_provider ec2_provider = {
	.name = "ec2",
	.open = ec2_open,
	.close = ec2_close,
	.attach = ec2_attach,
	.create = ec2_create,
	.list = ec2_list,
	.terminate = ec2_terminate,
	.tag = ec2_tag,
	.console = ec2_console,
};
