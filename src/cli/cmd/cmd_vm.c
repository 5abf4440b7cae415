/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "api/runtime.pb-c.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/json.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/mount_words.h"
#include "cli/options/spec.h"
#include "cli/options/walls.h"
#include "cli/output/alloc.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/each.h"
#include "cli/table/command.h"
#include "cli/table/vm_words.h"

#define VM_FILE_MAX ((size_t)1 << 20)

const struct arg_option vm_run_options[] = {
	{ "name", 'n', "NAME", "its name: a-z, 0-9 and '-'; else one is made up" },
	{ "cpus", 0, "N", "processors, 1 to 64, else one" },
	{ "memory", 'm', "SIZE", "its memory, else 512m" },
	{ "disk", 'd', "NAME", "keep what it writes under this name, else it is thrown away" },
	{ "disk-size", 0, "SIZE", "how large its disk is, else as the image" },
	{ "format", 'f', "FORMAT", "of the image: raw or qcow2, else what it begins as" },
	{ "firmware", 0, "KIND", "that boots the disk: bios or uefi, else bios" },
	{ "kernel", 'k', "FILE", "boot this kernel, in place of firmware" },
	{ "initrd", 'i', "FILE", "the kernel's first root" },
	{ "append", 'a', "WORDS", "for the kernel's command line; may be given again" },
	{ "network", 0, "MODE", "none or own (one in which it is 169.254.74.2)" },
	{ "user-data", 'u', "FILE", "for cloud-init" },
	{ "meta-data", 0, "FILE", "the same, else its name" },
	{ "network-config", 0, "FILE", "the same, else its address" },
	{ "rm", 0, NULL, "remove its record once it has ended" },
	{ NULL, 0, NULL, NULL },
};

const char vm_run_help[] =
	"A machine that boots IMAGE, a raw or qcow2 file that is only read: what the machine\n"
	"writes goes to a disk over it, which is thrown away at its end or kept by --disk NAME.\n"
	"It is no instance: there is no nacre in it, so nothing is run in it from outside.\n"
	"`nacre attach` shows its console; `nacre stop` asks its guest agent (qemu-ga) to power\n"
	"off, or presses its power button; ps, inspect, wait and rm are as for any workload. A\n"
	"NoCloud volume for cloud-init is its last disk. Prints its id.\n"
	"\n"
	"    nacre vm run --name web --disk web --user-data web.yaml debian-12.qcow2\n"
	"    nacre attach web";

/* ---- vm run ---- */

/* What has to live until the answer. */
struct vm_run {
	Aurae__Runtime__V0__RunVirtualMachineRequest q;
	Aurae__Runtime__V0__Meta meta;
	char **paths; /* owned */
	char **words;
	struct buf files[3];
};

static void vm_run_done(struct vm_run *v)
{
	strv_free(v->paths);
	strv_free(v->words);
	for (size_t i = 0; i < ARRAY_SIZE(v->files); i++)
		buf_done(&v->files[i]);
}

/* The daemon has another working directory. A URL is its own matter. */
static int vm_path(struct vm_run *v, char **to, const char *path, struct error *err)
{
	_cleanup_str_ char *real = NULL;

	if (!path)
		return 0;
	if (!strstr(path, "://"))
		real = realpath(path, NULL);
	if (!real && path[0] != '/' && !strstr(path, "://"))
		return error_set(err, -errno, "find %s", path);
	if (strv_add(&v->paths, real ?: path) < 0)
		return error_set(err, -ENOMEM, "find %s", path);
	*to = v->paths[strv_len(v->paths) - 1];
	return 0;
}

static int vm_size(const struct args *args, const char *name, uint64_t *to, struct error *err)
{
	const char *value = args_value(args, name);

	if (value && mount_words_size(value, to) < 0)
		return error_refuse(err, ERROR_INVALID, "--%s: \"%s\" is no size", name, value);
	return 0;
}

static int vm_words(struct vm_run *v, const struct args *args, struct error *err)
{
	size_t pos = 0;
	const char *value;

	while ((value = args_next(args, "append", &pos))) {
		_cleanup_str_ char *copy = xstrdup(value);
		char *rest = copy, *word;

		while ((word = strsep(&rest, " ")))
			if (*word && strv_add(&v->words, word) < 0)
				return error_set(err, -ENOMEM, "--append");
	}
	v->q.args = v->words;
	v->q.n_args = strv_len(v->words);
	return 0;
}

static int vm_file(const struct args *args, const char *name, struct buf *b,
		   ProtobufCBinaryData *to, struct error *err)
{
	const char *path = args_value(args, name);
	int r;

	if (!path)
		return 0;
	r = fd_read_file(AT_FDCWD, path, VM_FILE_MAX, b);
	if (r < 0)
		return error_set(err, r, "--%s: read %s", name, path);
	*to = (ProtobufCBinaryData){ b->len, (uint8_t *)(uintptr_t)buf_data(b) };
	return 0;
}

static int vm_run_fill(struct vm_run *v, const struct args *args, struct error *err)
{
	Aurae__Runtime__V0__RunVirtualMachineRequest *q = &v->q;
	const char *cpus = args_value(args, "cpus");
	int r;

	q->meta = &v->meta;
	q->auto_remove = args_flag(args, "rm");
	spec_set(&v->meta.name, args_value(args, "name"));
	spec_set(&q->disk, args_value(args, "disk"));
	spec_set(&q->format, args_value(args, "format"));
	spec_set(&q->firmware, args_value(args, "firmware"));
	spec_set(&q->network, args_value(args, "network"));
	if (cpus && parse_u32(cpus, &q->vcpus) < 0)
		return error_refuse(err, ERROR_INVALID, "--cpus: \"%s\" is no number", cpus);
	r = vm_size(args, "memory", &q->memory, err);
	if (r == 0)
		r = vm_size(args, "disk-size", &q->disk_size, err);
	if (r == 0)
		r = vm_path(v, &q->image, args->n_operands ? args->operands[0] : NULL, err);
	if (r == 0)
		r = vm_path(v, &q->kernel, args_value(args, "kernel"), err);
	if (r == 0)
		r = vm_path(v, &q->initrd, args_value(args, "initrd"), err);
	if (r == 0)
		r = vm_words(v, args, err);
	if (r == 0)
		r = vm_file(args, "user-data", &v->files[0], &q->user_data, err);
	if (r == 0)
		r = vm_file(args, "meta-data", &v->files[1], &q->meta_data, err);
	if (r == 0)
		r = vm_file(args, "network-config", &v->files[2], &q->network_config, err);
	return r;
}

int cmd_vm_run(const struct cli *cli, const struct args *args)
{
	_cleanup_(vm_run_done) struct vm_run v = {
		.q = AURAE__RUNTIME__V0__RUN_VIRTUAL_MACHINE_REQUEST__INIT,
		.meta = AURAE__RUNTIME__V0__META__INIT,
		.files = { BUF_INIT, BUF_INIT, BUF_INIT },
	};
	Aurae__Runtime__V0__RunVirtualMachineResponse *m;
	_cleanup_message_ ProtobufCMessage *answer = NULL;
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;

	if (vm_run_fill(&v, args, &err) < 0)
		return cli_fail(&err);
	client = client_open(&cli->daemon, &err);
	if (!client)
		return cli_fail(&err);
	answer = client_ask(client, "/aurae.runtime.v0.RuntimeService/RunVirtualMachine", &v.q.base,
			    &aurae__runtime__v0__run_virtual_machine_response__descriptor, &err);
	if (!answer)
		return cli_fail(&err);
	m = (Aurae__Runtime__V0__RunVirtualMachineResponse *)(void *)answer;
	if (cli->json)
		view_started(m->id, m->name, "vm", "");
	else
		(void)puts(m->id);
	return 0;
}

/* ---- vm disks, vm rmdisk ---- */

static void vm_disks_table(const struct cli *cli, const Nacre__V1__ListDisksResponse *list)
{
	static const char *const heads[] = { "NAME", "SIZE", "USED", "IN USE", "IMAGE" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));
	char size[TEXT_SIZE], used[TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < list->n_disks; i++) {
		const Nacre__V1__Disk *d = list->disks[i];

		text_bytes(size, d->size);
		text_bytes(used, d->used);
		table_add(&t, d->name);
		table_add(&t, size);
		table_add(&t, used);
		table_add(&t, d->busy ? "yes" : "no");
		table_add(&t, d->image);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_vm_disks(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ListDisksRequest request = NACRE__V1__LIST_DISKS_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListDisksResponse *list = NULL;
	_cleanup_client_ struct client *client = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	(void)args;
	client = client_open(&cli->daemon, &err);
	list = client ? client_ask(client, "/nacre.v1.DiskService/List", &request.base,
				   &nacre__v1__list_disks_response__descriptor, &err)
		      : NULL;
	if (!list)
		return cli_fail(&err);
	if (!cli->json) {
		vm_disks_table(cli, list);
		return 0;
	}
	json_put_array(&j, NULL);
	for (size_t i = 0; i < list->n_disks; i++) {
		json_put_object(&j, NULL);
		json_put_string(&j, "name", list->disks[i]->name);
		json_put_string(&j, "image", list->disks[i]->image);
		json_put_unsigned(&j, "size", list->disks[i]->size);
		json_put_unsigned(&j, "used", list->disks[i]->used);
		json_put_bool(&j, "in_use", list->disks[i]->busy);
		json_put_end(&j);
	}
	json_put_end(&j);
	return 0;
}

int cmd_vm_rmdisk(const struct cli *cli, const struct args *args)
{
	Nacre__V1__RemoveDiskRequest request = NACRE__V1__REMOVE_DISK_REQUEST__INIT;

	return each_operand(cli, args,
			    &(struct each_call){ "/nacre.v1.DiskService/Remove", &request.base,
						 &request.name,
						 &nacre__v1__remove_disk_response__descriptor });
}
