/* SPDX-License-Identifier: Apache-2.0 */

/* config.json of a bundle, and the documents that are parts of it. */

#include "fuzz.h"
#include "wire/document/oci_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = ARENA_INIT_LIMIT(OCI_CONFIG_ARENA_MAX);
	struct oci_config *c = NULL;
	struct oci_process *p = NULL;
	struct oci_resources *res = NULL;
	struct error err = ERROR_INIT;

	if (oci_config_read(&c, &arena, data, size, &err) == 0)
		fuzz_need(c->version && c->os && (!c->process || c->process->n_args > 0));
	else
		fuzz_need(err.code != 0 && err.text[0] != '\0');
	if (oci_process_read(&p, &arena, data, size, NULL) == 0)
		fuzz_need(p->cwd[0] == '/');
	(void)oci_resources_read(&res, &arena, data, size, NULL);
	arena_done(&arena);
	return 0;
}
