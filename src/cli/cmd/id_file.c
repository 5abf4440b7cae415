/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cmd/id_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

int id_file_open(const struct args *args, const char *option, int *ret_fd, struct error *err)
{
	const char *file = args_value(args, option);
	int fd;

	*ret_fd = -1;
	if (!file)
		return 0;
	fd = sysio_openat(AT_FDCWD, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 && errno == EEXIST)
		return error_refuse(err, ERROR_EXISTS,
				    "--%s: %s is there already: remove it, or name another file",
				    option, file);
	if (fd < 0)
		return error_set(err, -errno, "--%s: make %s", option, file);
	*ret_fd = fd;
	return 0;
}

int id_file_write(int fd, const struct args *args, const char *option, const char *id)
{
	struct error err = ERROR_INIT;
	int r = fd < 0 ? 0 : fd_write_full(fd, id, strlen(id));

	if (r < 0) {
		(void)error_set(&err, r, "write the id %s to %s", id, args_value(args, option));
		(void)cli_fail(&err);
	}
	return r;
}

void id_file_drop(const struct args *args, const char *option)
{
	(void)unlink(args_value(args, option));
}

int remove_by_force(struct client *client, const char *target, int status)
{
	Nacre__V1__RemoveRequest request = NACRE__V1__REMOVE_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__RemoveResponse *answer = NULL;
	struct error err = ERROR_INIT;

	request.target = (char *)(uintptr_t)target;
	request.force = true;
	request.volumes = true;
	answer = client_ask(client, "/nacre.v1.WorkloadService/Remove", &request.base,
			    &nacre__v1__remove_response__descriptor, &err);
	if (answer || err.kind == ERROR_NOT_FOUND)
		return status;
	(void)cli_fail(&err);
	return status ? status : CLI_FAILED;
}

int replace_named(struct client *client, const struct args *args)
{
	const char *name = args_value(args, "name"), *in = args_value(args, "in");
	char path[NAME_PATH_MAX + 1];

	if (!args_flag(args, "replace"))
		return 0;
	if (!name)
		return cli_complain("--replace is about the name, which --name gives");
	if (str_printf(path, sizeof(path), "%s%s%s", in ? in : "", in ? "/" : "", name) < 0)
		return cli_complain("--replace: the name %.80s… is too long", name);
	return remove_by_force(client, path, 0);
}
