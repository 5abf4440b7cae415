/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/hurry.h"

void hurry_set(struct hurry *h, bool on)
{
	(void)pthread_mutex_lock(&h->lock);
	h->on = on;
	if (!on)
		(void)pthread_cond_broadcast(&h->over);
	(void)pthread_mutex_unlock(&h->lock);
}

void hurry_stand(struct hurry *h)
{
	nsec_t end;
	struct timespec until;

	if (!h)
		return;
	end = clock_mono() + HURRY_MAX;
	until = (struct timespec){ .tv_sec = (time_t)(end / NSEC_PER_SEC),
				   .tv_nsec = (long)(end % NSEC_PER_SEC) };
	(void)pthread_mutex_lock(&h->lock);
	while (h->on && pthread_cond_clockwait(&h->over, &h->lock, CLOCK_MONOTONIC, &until) == 0)
		;
	(void)pthread_mutex_unlock(&h->lock);
}
