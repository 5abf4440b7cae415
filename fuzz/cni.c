/* SPDX-License-Identifier: Apache-2.0 */

/* Parsers of CNI network configurations and of plugin results; the first byte selects one. */

#include "fuzz.h"
#include "wire/document/cni_config.h"
#include "wire/document/cni_result.h"
#include "wire/message/cnimsg.h"

static void fuzz_config(struct arena *arena, const uint8_t *data, size_t size)
{
	struct buf b = BUF_INIT;
	struct cni_config c, again;
	struct error err = ERROR_INIT;

	if (cni_config_parse(&c, arena, data, size, &err) < 0)
		return;
	/* Each plugin can read what it is sent, and is the same one. */
	for (size_t i = 0; i < c.n_plugins; i++) {
		buf_clear(&b);
		fuzz_need(cni_request_print(
				  &b, &(struct cni_request){ .config = &c, .plugin = i }) == 0);
		fuzz_need(cni_config_parse(&again, arena, buf_data(&b), b.len, &err) == 0 ||
			  b.len > CNI_CONFIG_MAX || json_member(c.plugins[i].object, "plugins"));
	}
	buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena = ARENA_INIT_LIMIT((size_t)64 << 20);
	char text[CNI_ERROR_TEXT_MAX];
	struct error err = ERROR_INIT;
	struct cni_result result;
	struct cnimsg m;
	unsigned code;

	if (size == 0)
		return 0;
	if (data[0] == 'c')
		fuzz_config(&arena, data + 1, size - 1);
	else if (data[0] == 'm' && cnimsg_read(&m, data + 1, size - 1) == 0)
		fuzz_need(cnimsg_get(&m, "verb") != NULL);
	else if (cni_result_parse(&result, &arena, data + 1, size - 1, "eth0", &err) < 0)
		(void)cni_error_parse(text, &code, data + 1, size - 1);
	arena_done(&arena);
	return 0;
}
