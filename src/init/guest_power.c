/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_power.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/input.h>
#include <sys/reboot.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"

#define POWER_BUTTON_NAME "Power Button\n"

void guest_power_end(bool restart)
{
	if (!restart && access("/sys/firmware/acpi", F_OK) == 0)
		(void)reboot(RB_POWER_OFF);
	(void)reboot(RB_AUTOBOOT);
	/* The kernel would panic if this process ended, and that would look like a fault. */
	for (;;)
		(void)pause();
}

void guest_power_off(void)
{
	sync();
	guest_power_end(false);
}

/* Whether the input device of that name in /sys/class/input is a power button. */
static bool power_is_button(int class_fd, const char *name)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT_LIMIT(256);
	char path[128];

	return str_has_prefix(name, "event") &&
	       str_printf(path, sizeof(path), "%s/device/name", name) > 0 &&
	       fd_read_file(class_fd, path, 128, &text) == 0 &&
	       text.len == strlen(POWER_BUTTON_NAME) &&
	       memcmp(buf_data(&text), POWER_BUTTON_NAME, text.len) == 0;
}

int guest_power_button_open(void)
{
	_cleanup_fd_ int class_fd = -1;
	_cleanup_strv_ char **names = NULL;
	char path[128];

	class_fd =
		sysio_openat(AT_FDCWD, "/sys/class/input", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (class_fd < 0 || fd_list_dir(class_fd, &names) < 0)
		return -ENOENT;
	for (size_t i = 0; names && names[i]; i++)
		if (power_is_button(class_fd, names[i]) &&
		    str_printf(path, sizeof(path), "/dev/input/%s", names[i]) > 0)
			return sysio_openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	return -ENOENT;
}

int guest_power_button_read(int fd)
{
	struct input_event event;
	int pressed = 0;

	while (sysio_read(fd, &event, sizeof(event)) == (ssize_t)sizeof(event))
		if (event.type == EV_KEY && event.code == KEY_POWER && event.value == 1)
			pressed = 1;
	return pressed;
}
