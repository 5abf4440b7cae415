/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What src/daemon/alone.c is for libc as the core uses it, for what libcrypto names besides: it can
 * look up hosts and services, which nobody here asks it to.
 */

#include <netdb.h>
#include <stddef.h>

struct hostent *gethostbyname(const char *name)
{
	(void)name;
	return NULL;
}

struct servent *getservbyname(const char *name, const char *proto)
{
	(void)name;
	(void)proto;
	return NULL;
}

int getnameinfo(const struct sockaddr *sa, socklen_t salen, char *host, socklen_t hostlen,
		char *serv, socklen_t servlen, int flags)
{
	(void)sa;
	(void)salen;
	(void)host;
	(void)hostlen;
	(void)serv;
	(void)servlen;
	(void)flags;
	return EAI_FAIL;
}

const char *gai_strerror(int code)
{
	(void)code;
	return "this program looks up no names";
}
