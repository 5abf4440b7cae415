/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text/str.h"

#define URL_LETTERS "abcdefghijklmnopqrstuvwxyz"
#define URL_DIGITS "0123456789"
#define URL_PLAIN URL_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ" URL_DIGITS "-._~"
/* What stands in a path and a query without being escaped (RFC 3986, pchar and "/?"). */
#define URL_INNER URL_PLAIN "!$&'()*+,;=:@/?%"

static int url_refuse(struct error *err, const char *text, const char *why)
{
	return error_refuse(err, ERROR_INVALID, "URL \"%.200s\": %s", text, why);
}

static int url_take_scheme(struct url *u, const char **p, const char *text, struct error *err)
{
	if (str_has_prefix(*p, "https://"))
		u->tls = true;
	else if (!str_has_prefix(*p, "http://"))
		return url_refuse(err, text, "neither https nor http");
	*p += u->tls ? 8 : 7;
	u->port = u->tls ? 443 : 80;
	return 0;
}

static bool url_take_name(struct url *u, const char *from, size_t len)
{
	if (len == 0 || len > URL_HOST_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = from[i];

		u->host[i] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
	}
	u->host[len] = '\0';
	return true;
}

static bool url_take_port(struct url *u, const char **p)
{
	size_t len = strspn(*p, URL_DIGITS);
	unsigned port = 0;

	if (len == 0 || len > 5)
		return false;
	for (size_t i = 0; i < len; i++)
		port = port * 10 + (unsigned)((*p)[i] - '0');
	*p += len;
	u->port = (uint16_t)port;
	return port > 0 && port <= UINT16_MAX;
}

static bool url_take_host(struct url *u, const char **p)
{
	struct in6_addr address;
	size_t len;

	if (**p == '[') {
		len = strcspn(*p + 1, "]");
		if ((*p)[1 + len] != ']' || !url_take_name(u, *p + 1, len) ||
		    inet_pton(AF_INET6, u->host, &address) != 1)
			return false;
		*p += len + 2;
	} else {
		len = strcspn(*p, ":/?#");
		if (!url_take_name(u, *p, len) ||
		    strspn(u->host, URL_LETTERS URL_DIGITS "-._") != len || u->host[0] == '-' ||
		    u->host[0] == '.' || strstr(u->host, ".."))
			return false;
		*p += len;
	}
	if (**p != ':')
		return true;
	(*p)++;
	return url_take_port(u, p);
}

static bool url_path_is_clean(const char *path)
{
	return *path == '/' && path[strspn(path, URL_INNER)] == '\0';
}

static int url_take_path(struct url *u, const char *path, const char *text, struct error *err)
{
	const char *slash = *path == '?' || *path == '\0' ? "/" : "";

	if (str_printf(u->path, sizeof(u->path), "%s%s", slash, path) < 0)
		return url_refuse(err, text, "too long");
	if (!url_path_is_clean(u->path))
		return url_refuse(err, text, "a byte that no path or query may have");
	return 0;
}

int url_parse(struct url *ret, const char *text, struct error *err)
{
	const char *p = text;
	struct url u = { .tls = false };
	int r;

	r = url_take_scheme(&u, &p, text, err);
	if (r < 0)
		return r;
	if (!url_take_host(&u, &p))
		return url_refuse(err, text, "no host and port");
	r = url_take_path(&u, p, text, err);
	if (r == 0)
		*ret = u;
	return r;
}

/* The path of `base` up to its last slash, without the query. */
static void url_cut_to_folder(struct url *u)
{
	u->path[strcspn(u->path, "?")] = '\0';
	strrchr(u->path, '/')[1] = '\0';
}

int url_join(struct url *ret, const struct url *base, const char *text, struct error *err)
{
	char whole[URL_SIZE];
	struct url u = *base;
	int r;

	if (strstr(text, "://") && strcspn(text, ":") < strcspn(text, "/?"))
		return url_parse(ret, text, err);
	if (str_has_prefix(text, "//")) {
		r = str_printf(whole, sizeof(whole), "%s:%s", base->tls ? "https" : "http", text);
		return r < 0 ? url_refuse(err, text, "too long") : url_parse(ret, whole, err);
	}
	if (!*text)
		return url_refuse(err, text, "empty");
	if (*text == '/') {
		u.path[0] = '\0';
	} else if (*text == '?') {
		u.path[strcspn(u.path, "?")] = '\0';
	} else {
		url_cut_to_folder(&u);
	}
	if (str_printf(whole, sizeof(whole), "%s%s", u.path, text) < 0)
		return url_refuse(err, text, "too long");
	r = url_take_path(&u, whole, text, err);
	if (r == 0)
		*ret = u;
	return r;
}

int url_of_host(struct url *ret, const char *host, bool tls, struct error *err)
{
	char text[URL_SIZE];

	if (str_eq(host, "docker.io") || str_eq(host, "index.docker.io"))
		host = "registry-1.docker.io";
	if (strpbrk(host, "/?#") ||
	    str_printf(text, sizeof(text), "http%s://%s", tls ? "s" : "", host) < 0)
		return url_refuse(err, host, "no host and port");
	return url_parse(ret, text, err);
}

void url_format_origin(const struct url *u, char ret[URL_SIZE])
{
	bool v6 = strchr(u->host, ':') != NULL;

	(void)str_printf(ret, URL_SIZE, "http%s://%s%s%s", u->tls ? "s" : "", v6 ? "[" : "",
			 u->host, v6 ? "]" : "");
	if (u->port != (u->tls ? 443 : 80))
		(void)str_printf(ret + strlen(ret), URL_SIZE - strlen(ret), ":%u", u->port);
}

void url_format(const struct url *u, char ret[URL_SIZE])
{
	url_format_origin(u, ret);
	(void)str_copy(ret + strlen(ret), URL_SIZE - strlen(ret), u->path);
}

bool url_same_origin(const struct url *a, const struct url *b)
{
	return a->tls == b->tls && a->port == b->port && str_eq(a->host, b->host);
}

static bool url_is_address(const struct url *u)
{
	const char *last = strrchr(u->host, '.');

	/* A name whose last label is a number is an address to some resolver. */
	last = last ? last + 1 : u->host;
	return strchr(u->host, ':') || *last == '\0' || strspn(last, URL_DIGITS) == strlen(last) ||
	       str_has_prefix(last, "0x");
}

static const char *url_label(const char *host, const char *end)
{
	while (end > host && end[-1] != '.')
		end--;
	return end;
}

/* The part of a name that one owner has, or NULL. */
static const char *url_owned(const char *host)
{
	const char *end = host + strlen(host);
	const char *top = url_label(host, end);
	const char *second;

	if (top == host)
		return NULL;
	second = url_label(host, top - 1);
	if (end - top != 2 || top - 1 - second > 3)
		return second;
	return second == host ? NULL : url_label(host, second - 1);
}

bool url_same_owner(const struct url *a, const struct url *b)
{
	const char *owned;

	if (str_eq(a->host, b->host))
		return true;
	if (url_is_address(a) || url_is_address(b))
		return false;
	owned = url_owned(a->host);
	return owned && url_owned(b->host) && str_eq(owned, url_owned(b->host));
}

static enum url_reach url_reach_v4(uint32_t address)
{
	if (address >> 24 == 127 || address >> 24 == 0)
		return URL_LOOPBACK;
	return address >> 16 == 0xa9fe ? URL_LINK_LOCAL : URL_FAR;
}

static enum url_reach url_reach_v6(const struct in6_addr *a)
{
	uint32_t last;

	if (IN6_IS_ADDR_LOOPBACK(a) || IN6_IS_ADDR_UNSPECIFIED(a))
		return URL_LOOPBACK;
	memcpy(&last, a->s6_addr + 12, sizeof(last));
	if (IN6_IS_ADDR_V4MAPPED(a) || IN6_IS_ADDR_V4COMPAT(a))
		return url_reach_v4(ntohl(last));
	return IN6_IS_ADDR_LINKLOCAL(a) ? URL_LINK_LOCAL : URL_FAR;
}

enum url_reach url_reach_of(const struct sockaddr *address, size_t len)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	if (address->sa_family == AF_INET && len >= sizeof(v4)) {
		memcpy(&v4, address, sizeof(v4));
		return url_reach_v4(ntohl(v4.sin_addr.s_addr));
	}
	if (address->sa_family == AF_INET6 && len >= sizeof(v6)) {
		memcpy(&v6, address, sizeof(v6));
		return url_reach_v6(&v6.sin6_addr);
	}
	return URL_LINK_LOCAL;
}

enum url_reach url_reach(const struct url *u)
{
	struct in6_addr v6;
	struct in_addr v4;

	if (str_eq(u->host, "localhost") || str_has_suffix(u->host, ".localhost"))
		return URL_LOOPBACK;
	if (inet_pton(AF_INET, u->host, &v4) == 1)
		return url_reach_v4(ntohl(v4.s_addr));
	return inet_pton(AF_INET6, u->host, &v6) == 1 ? url_reach_v6(&v6) : URL_FAR;
}

void url_escape(char *to, const char *text)
{
	static const char digits[] = "0123456789ABCDEF";

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (strchr(URL_PLAIN, c)) {
			*to++ = *text;
		} else {
			*to++ = '%';
			*to++ = digits[c >> 4];
			*to++ = digits[c & 15];
		}
	}
	*to = '\0';
}
