/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A static program is alone (architecture 9.8): glibc's static dlopen, name service and iconv would
 * load libraries and configuration from whatever root file system the process finds itself in, with
 * its privilege. These definitions take their place, so that libc's are not linked; a test looks at
 * the symbols of the program.
 */

#include <errno.h>
#include <grp.h>
#include <iconv.h>
#include <netdb.h>
#include <pwd.h>
#include <stddef.h>

#pragma GCC visibility push(default)
void *dlopen(const char *name, int flags);
void *dlsym(void *handle, const char *name);
int dlclose(void *handle);
char *dlerror(void);
#pragma GCC visibility pop

void *dlopen(const char *name, int flags)
{
	(void)name;
	(void)flags;
	return NULL;
}

void *dlsym(void *handle, const char *name)
{
	(void)handle;
	(void)name;
	return NULL;
}

int dlclose(void *handle)
{
	(void)handle;
	return -1;
}

char *dlerror(void)
{
	static char text[] = "this program loads no libraries";

	return text;
}

struct passwd *getpwnam(const char *name)
{
	(void)name;
	errno = ENOSYS;
	return NULL;
}

struct passwd *getpwuid(uid_t uid)
{
	(void)uid;
	errno = ENOSYS;
	return NULL;
}

struct group *getgrnam(const char *name)
{
	(void)name;
	errno = ENOSYS;
	return NULL;
}

struct group *getgrgid(gid_t gid)
{
	(void)gid;
	errno = ENOSYS;
	return NULL;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *req,
		struct addrinfo **pai)
{
	(void)name;
	(void)service;
	(void)req;
	(void)pai;
	return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *ai)
{
	(void)ai;
}

iconv_t iconv_open(const char *tocode, const char *fromcode)
{
	(void)tocode;
	(void)fromcode;
	errno = EINVAL;
	return (iconv_t)-1;
}
