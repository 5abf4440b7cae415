/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/text/args.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/guest_source.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"
#include "vm/guest/guest_build.h"
#include "vm/guest/guest_set.h"

/*
 * Guest sets are files in the node's root directory, made and removed here without the daemon: they
 * may be there before it first starts, and who has a machine running holds its set by a lock of the
 * kernel.
 */

#define GUEST_MIB (UINT64_C(1) << 20)
#define GUEST_ROOT "/var/lib/nacre"
#define GUEST_INFO_TIMEOUT (2 * NSEC_PER_SEC)

static void guest_json(struct json *j, const struct guest_set_info *info)
{
	const struct guest_desc *d = &info->desc;

	json_put_object(j, NULL);
	json_put_string(j, "name", info->name);
	json_put_string(j, "kernel", d->release);
	json_put_string(j, "version", d->version);
	json_put_string(j, "build", d->build);
	json_put_string(j, "gate", d->gate);
	json_put_string(j, "form", d->is_vmlinux ? "vmlinux" : "bzimage");
	json_put_string(j, "devices", d->needs_acpi ? "acpi" : "mmio");
	json_put_unsigned(j, "memory", d->memory_mib * GUEST_MIB);
	json_put_unsigned(j, "kernel_size", d->kernel_bytes);
	json_put_unsigned(j, "initrd_size", d->initrd_bytes);
	json_put_bool(j, "in_use", info->in_use);
	json_put_bool(j, "default", info->is_default);
	json_put_end(j);
}

static void guest_tell(void *userdata, const char *text)
{
	(void)fprintf(stderr, "nacre: %s\n", text);
}

/*
 * The root directory that --root names, else that of the daemon, else the usual one: the daemon is
 * not needed.
 */
static int guest_root(const struct cli *cli, const struct args *args, bool make, struct error *err)
{
	Nacre__V1__InfoRequest request = NACRE__V1__INFO_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InfoResponse *info = NULL;
	const char *root = args_value(args, "root");
	struct error unused = ERROR_INIT;

	if (root)
		return guest_source_root(root, make, err);
	if (target_check_local(&cli->daemon, "guest sets are files of the node", err) < 0)
		return -EOPNOTSUPP;
	info = client_ask_once(&cli->daemon, "/nacre.v1.NodeService/Info", &request.base,
			       &nacre__v1__info_response__descriptor, GUEST_INFO_TIMEOUT, &unused);
	return guest_source_root(info ? info->root : GUEST_ROOT, make, err);
}

static int guest_build_run(const struct cli *cli, const struct guest_build *b)
{
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;
	struct guest_set_info info;
	bool made;

	if (guest_build(b, &info, &made, &err) < 0)
		return cli_fail(&err);
	if (!made)
		guest_tell(NULL, "this guest set is there already");
	if (cli->json)
		guest_json(&j, &info);
	else
		(void)puts(info.name);
	return 0;
}

int cmd_guest_build(const struct cli *cli, const struct args *args)
{
	struct guest_source source = GUEST_SOURCE_INIT;
	struct error err = ERROR_INIT;
	_cleanup_fd_ int root_fd = -1;
	int status, r;

	r = guest_source_find(&source, args, &err);
	if (r == 0) {
		root_fd = guest_root(cli, args, true, &err);
		r = MIN(root_fd, 0);
	}
	status = r < 0 ? cli_fail(&err)
		       : guest_build_run(cli,
					 &(struct guest_build){
						 .root_fd = root_fd,
						 .name = args_value(args, "name"),
						 .kernel_fd = source.kernel_fd,
						 .modules_fd = source.modules_fd,
						 .nacre_fd = source.nacre_fd,
						 .gate_fd = source.gate_fd,
						 .keep_default = args_flag(args, "keep-default"),
						 .nested = args_flag(args, "nested"),
						 .cloud = args_flag(args, "cloud"),
						 .tell = guest_tell,
					 });
	guest_source_done(&source);
	return status;
}

static void guest_row(struct table *t, const struct guest_set_info *info)
{
	char size[TEXT_SIZE], nacre[GUEST_DESC_VERSION_MAX + 16];

	text_bytes(size, info->desc.kernel_bytes + info->desc.initrd_bytes);
	(void)str_printf(nacre, sizeof(nacre), "%s (%.8s)", info->desc.version, info->desc.build);
	table_add(t, info->name);
	table_add(t, info->desc.release);
	table_add(t, nacre);
	table_add(t, size);
	table_add(t, info->in_use ? "yes" : "no");
	table_add(t, info->is_default ? "yes" : "no");
}

static void guest_table(const struct cli *cli, const struct guest_set_info *list, size_t n)
{
	static const char *const heads[] = {
		"NAME", "KERNEL", "NACRE", "SIZE", "IN USE", "DEFAULT"
	};
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < n; i++)
		guest_row(&t, &list[i]);
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_guest_ls(const struct cli *cli, const struct args *args)
{
	struct guest_set_info *list = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;
	_cleanup_fd_ int root_fd = guest_root(cli, args, false, &err);
	size_t n = 0;

	if (root_fd < 0 || guest_set_list(root_fd, &list, &n, &err) < 0)
		return cli_fail(&err);
	if (cli->json) {
		json_put_array(&j, NULL);
		for (size_t i = 0; i < n; i++)
			guest_json(&j, &list[i]);
		json_put_end(&j);
	} else {
		guest_table(cli, list, n);
	}
	free(list);
	return 0;
}

int cmd_guest_default(const struct cli *cli, const struct args *args)
{
	struct error err = ERROR_INIT;
	_cleanup_fd_ int root_fd = guest_root(cli, args, false, &err);

	if (root_fd < 0 || guest_set_make_default(root_fd, args->operands[0], &err) < 0)
		return cli_fail(&err);
	return 0;
}

int cmd_guest_rm(const struct cli *cli, const struct args *args)
{
	struct error err = ERROR_INIT;
	_cleanup_fd_ int root_fd = guest_root(cli, args, false, &err);
	int status = 0;

	if (root_fd < 0)
		return cli_fail(&err);
	for (size_t i = 0; i < args->n_operands; i++)
		if (guest_set_remove(root_fd, args->operands[i], &err) < 0)
			status = cli_fail(&err);
	return status;
}
