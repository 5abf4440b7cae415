/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/health_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"
#include "base/text/str.h"
#include "pod/workload/workloads.h"
#include "store/store.h"

static struct run_store *health_record_store(const struct pod_container *c)
{
	return c->workload->all->config.store;
}

static void health_record_fail(const struct pod_container *c, const struct error *err)
{
	log_error("cannot keep or read results of health checks",
		  LOG_STR("workload", c->workload->path), LOG_STR("container", c->name),
		  LOG_ERR(err));
}

/* ---- as digits ---- */

static const char digits[] = "0123456789abcdef";

static void health_record_write(char *to, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		to[2 * i] = digits[(uint8_t)bytes[i] >> 4];
		to[2 * i + 1] = digits[(uint8_t)bytes[i] & 15];
	}
	to[2 * n] = '\0';
}

/* -1: it is none. */
static int health_record_digit(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Without memory, or where they are no digits, the result is without its output. */
static void health_record_take(struct health_result *r, const char *text)
{
	size_t n = strlen(text) / 2;
	char *output;

	if (n == 0 || n > HEALTH_OUTPUT_MAX)
		return;
	output = malloc(n);
	for (size_t i = 0; output && i < n; i++) {
		int high = health_record_digit(text[2 * i]),
		    low = health_record_digit(text[2 * i + 1]);

		if (high < 0 || low < 0) {
			free(output);
			return;
		}
		output[i] = (char)(high << 4 | low);
	}
	r->output = output;
	r->n_output = output ? n : 0;
}

/* ---- rows ---- */

void health_record_put(const struct pod_container *c, size_t place, const struct health_result *r)
{
	char id[ID_SIZE + 8], output[2 * HEALTH_OUTPUT_MAX + 1];
	const struct run_health row = { .id = id,
					.container = c->id,
					.started_at = r->started_at,
					.ended_at = r->ended_at,
					.exit_code = r->exit_code,
					.output = output };
	struct error err = ERROR_INIT;

	(void)str_printf(id, sizeof(id), "%s.%zu", c->id, place);
	health_record_write(output, r->output, r->n_output);
	if (run_store_put_health(health_record_store(c), &row, &err) < 0)
		health_record_fail(c, &err);
}

struct health_record_walk {
	struct health_result *results;
	size_t n, next;
};

static int health_record_add(void *data, const struct run_health *row)
{
	const char *place = strrchr(row->id, '.');
	struct health_record_walk *walk = data;
	struct health_result *r;

	if (!place || place[1] < '0' || place[1] >= '0' + HEALTH_RESULTS || place[2] ||
	    walk->n == HEALTH_RESULTS)
		return -EBADMSG;
	walk->next = ((size_t)(place[1] - '0') + 1) % HEALTH_RESULTS;
	r = &walk->results[walk->n++];
	*r = (struct health_result){ .started_at = row->started_at,
				     .ended_at = row->ended_at,
				     .exit_code = row->exit_code };
	health_record_take(r, row->output);
	return 0;
}

size_t health_record_read(const struct pod_container *c, struct health_result *results,
			  size_t *ret_n)
{
	struct health_record_walk walk = { .results = results };
	struct error err = ERROR_INIT;
	int r = run_store_each_health(health_record_store(c), c->id, health_record_add, &walk,
				      &err);

	if (r < 0) {
		if (!err.code)
			(void)error_set(&err, r, "read the results of health checks");
		health_record_fail(c, &err);
	}
	*ret_n = walk.n;
	return walk.next;
}

void health_record_drop(const struct pod_container *c)
{
	struct error err = ERROR_INIT;

	if (run_store_drop_health(health_record_store(c), c->id, &err) < 0)
		health_record_fail(c, &err);
}
