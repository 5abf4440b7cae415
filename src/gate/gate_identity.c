/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/gate_identity.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* A tenth of the half, to either side. */
#define GATE_IDENTITY_JITTER 10

uint64_t gate_identity_now(void)
{
	return clock_real() / NSEC_PER_SEC;
}

nsec_t gate_identity_renew_at(uint64_t not_after)
{
	nsec_t end = (nsec_t)not_after * NSEC_PER_SEC, now = clock_real();
	nsec_t half = end > now ? (end - now) / 2 : 0;
	nsec_t spread = half / GATE_IDENTITY_JITTER;
	uint32_t dice = 0;

	/* Without random bytes all are renewed at the early end. */
	(void)!getrandom(&dice, sizeof(dice), GRND_NONBLOCK);
	return clock_mono() + half - spread + (nsec_t)dice % (2 * spread + 1);
}

void gate_identity_done(struct gate_identity *p)
{
	p->key = key_free(p->key);
	p->next = key_free(p->next);
	p->config = tls_config_free(p->config);
}

int gate_identity_begin(struct gate_identity *p, uint8_t ret[GATE_KEY_SIZE], struct error *err)
{
	int r;

	p->next = key_free(p->next);
	r = key_new(&p->next, err);
	return r == 0 ? key_public(p->next, ret, err) : r;
}

static int gate_identity_check(struct gate_identity *p, bool server, const struct gate_bytes *chain,
			       const struct gate_bytes *bundle, const char *peer_id,
			       struct tls_config **ret, uint64_t *ret_not_after, struct error *err)
{
	const struct tls_identity who = { .key = p->next,
					  .chain = chain->data,
					  .chain_len = chain->len,
					  .bundle = bundle->data,
					  .bundle_len = bundle->len,
					  .peer_id = peer_id };
	uint64_t from;
	int r;

	if (!p->next || chain->len > sizeof(p->cert.der))
		return error_refuse(err, ERROR_INVALID, "a certificate that was not asked for");
	r = cert_check_key(chain->data, chain->len, p->next, err);
	if (r == 0)
		r = cert_times(chain->data, chain->len, &from, ret_not_after, err);
	return r == 0 ? tls_config_new_mutual(ret, server, &who, err) : r;
}

int gate_identity_take(struct gate_identity *p, bool server, const struct gate_bytes *chain,
		       const struct gate_bytes *bundle, const char *peer_id, struct error *err)
{
	struct tls_config *config = NULL;
	uint64_t not_after = 0;
	int r = gate_identity_check(p, server, chain, bundle, peer_id, &config, &not_after, err);

	if (r < 0) {
		p->next = key_free(p->next);
		return r;
	}
	p->key = key_free(p->key);
	p->key = TAKE_PTR(p->next);
	p->config = tls_config_free(p->config);
	p->config = config;
	p->cert.len = chain->len;
	memcpy(p->cert.der, chain->data, chain->len);
	p->not_after = not_after;
	p->renew_at = gate_identity_renew_at(not_after);
	return 0;
}

int gate_identity_trust(struct gate_identity *p, bool server, const struct gate_bytes *bundle,
			const char *peer_id, struct error *err)
{
	const struct tls_identity who = { .key = p->key,
					  .chain = p->cert.der,
					  .chain_len = p->cert.len,
					  .bundle = bundle->data,
					  .bundle_len = bundle->len,
					  .peer_id = peer_id };
	struct tls_config *config = NULL;
	int r = p->config ? tls_config_new_mutual(&config, server, &who, err) : 0;

	if (r < 0 || !config)
		return r;
	p->config = tls_config_free(p->config);
	p->config = config;
	return 0;
}

bool gate_identity_are_valid(const struct gate_identity *p)
{
	return p->config && gate_identity_now() < p->not_after;
}
