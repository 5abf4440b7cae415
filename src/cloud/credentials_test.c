/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/credentials.h"

#include <errno.h>

#include "unit.h"

static int profile(struct credentials *c, const char *text, const char *name)
{
	return credentials_read_profile(c, text, strlen(text), name, NULL);
}

static void profiles(void)
{
	static const char text[] = "# mine\n"
				   "[default]\r\n"
				   "aws_access_key_id = AKID1\r\n"
				   "aws_secret_access_key=abc/def+=\r\n"
				   "\n"
				   "[profile two]\n"
				   "s3 =\n"
				   "  aws_access_key_id = nested\n"
				   "region = eu-central-1\n"
				   "aws_secret_access_key = s2\n"
				   "aws_access_key_id = AKID2\n"
				   "aws_session_token = t2";
	struct credentials c;

	CHECK_INT(profile(&c, text, "default"), 1);
	CHECK_STR(c.id, "AKID1");
	CHECK_STR(c.secret, "abc/def+=");
	CHECK_STR(c.token, "");
	CHECK(c.ends == NSEC_NEVER);
	CHECK_INT(profile(&c, text, "two"), 1);
	CHECK_STR(c.id, "AKID2");
	CHECK_STR(c.token, "t2");
	CHECK_INT(profile(&c, text, "three"), 0);
	CHECK_INT(profile(&c, "", "default"), 0);
}

static void broken_profiles(void)
{
	struct error err = ERROR_INIT;
	struct credentials c;

	CHECK_INT(profile(&c, "[default]\nnothing\n", "default"), -EINVAL);
	CHECK_INT(profile(&c, "[other]\nnothing\n", "default"), 0);
	CHECK_INT(profile(&c, "[default]\naws_access_key_id = a b\n", "default"), -EINVAL);
	CHECK_INT(credentials_read_profile(&c, "a\0b\n", 4, "default", &err), -EINVAL);
	CHECK(strstr(err.text, "line 1") != NULL);
}

static int metadata(struct credentials *c, const char *text)
{
	return credentials_read_metadata(c, text, strlen(text), NULL);
}

static void of_the_metadata_service(void)
{
	struct credentials c;

	CHECK_INT(metadata(&c, "{\"Code\":\"Success\",\"AccessKeyId\":\"A\",\"SecretAccessKey\":"
			       "\"S\",\"Token\":\"T\",\"Expiration\":\"2026-01-01T00:00:00Z\"}"),
		  0);
	CHECK_STR(c.id, "A");
	CHECK_STR(c.token, "T");
	CHECK(c.ends == UINT64_C(1767225600) * NSEC_PER_SEC);
	CHECK_INT(metadata(&c, "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\",\"Token\":\"T\"}"),
		  -EINVAL);
	CHECK_INT(metadata(&c, "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\",\"Token\":\"T\","
			       "\"Expiration\":\"soon\"}"),
		  -EINVAL);
	CHECK_INT(metadata(&c, "[]"), -EINVAL);
}

UNIT_MAIN({ "profiles", profiles }, { "broken profiles", broken_profiles },
	  { "of the metadata service", of_the_metadata_service })
