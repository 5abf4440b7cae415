/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_vmware.h"

/* Of processors without ports. */

int guest_vmware_exchange(const char *question, struct buf *ret, struct error *err)
{
	(void)question;
	(void)ret;
	return error_refuse(err, ERROR_UNSUPPORTED,
			    "a host of VMware answers at a port, which this processor has not");
}

int guest_vmware_ask(const char *question, struct buf *ret, struct error *err)
{
	return guest_vmware_exchange(question, ret, err);
}
