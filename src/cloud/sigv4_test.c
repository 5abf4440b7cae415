/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/sigv4.h"

#include "base/text/str.h"
#include "unit.h"

/* Each answer is one that AWS has published for its test suite and manual, or that its own client
 * computes. */

#define SUITE_SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"

static void sign(struct sigv4_request q, const char *signature, const char *authorization)
{
	_cleanup_str_ char *got = NULL;
	char hex[SIGV4_HEX_SIZE];

	CHECK_INT(sigv4_sign(&q, hex, &got), 0);
	CHECK_STR(hex, signature);
	if (authorization)
		CHECK_STR(got, authorization);
}

static struct sigv4_request suite(const char *method, const struct sigv4_header *headers, size_t n)
{
	return (struct sigv4_request){ .method = method,
				       .path = "/",
				       .query = "",
				       .headers = headers,
				       .n_headers = n,
				       .time = "20150830T123600Z",
				       .region = "us-east-1",
				       .service = "service",
				       .key_id = "AKIDEXAMPLE",
				       .secret = SUITE_SECRET };
}

static void of_the_suite(void)
{
	static const struct sigv4_header plain[] = { { "host", "example.amazonaws.com" },
						     { "x-amz-date", "20150830T123600Z" } };
	static const struct sigv4_header more[] = { { "host", "example.amazonaws.com" },
						    { "my-header1", "value2,value2,value1" },
						    { "x-amz-date", "20150830T123600Z" } };
	static const struct sigv4_header form[] = { { "content-type",
						      "application/x-www-form-urlencoded" },
						    { "host", "example.amazonaws.com" },
						    { "x-amz-date", "20150830T123600Z" } };
	struct sigv4_request q = suite("GET", plain, 2);

	sign(q, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
	     "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
	     "SignedHeaders=host;x-amz-date, Signature="
	     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
	q.method = "POST";
	sign(q, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b", NULL);
	sign(suite("GET", more, 3),
	     "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea", NULL);
	q = suite("POST", form, 3);
	q.body = "Param1=value1";
	q.body_len = 13;
	sign(q, "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a", NULL);
}

/* The example of the manual of AWS. */
static void of_the_manual(void)
{
	static const struct sigv4_header headers[] = {
		{ "content-type", "application/x-www-form-urlencoded; charset=utf-8" },
		{ "host", "iam.amazonaws.com" },
		{ "x-amz-date", "20150830T123600Z" }
	};
	struct sigv4_request q = suite("GET", headers, 3);

	q.service = "iam";
	q.query = "Action=ListUsers&Version=2010-05-08";
	sign(q, "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7", NULL);
}

static void of_ec2(void)
{
	static const char body[] = "Action=DescribeInstances&Version=2016-11-15";
	static const struct sigv4_header headers[] = {
		{ "content-type", "application/x-www-form-urlencoded; charset=utf-8" },
		{ "host", "ec2.us-east-1.amazonaws.com" },
		{ "x-amz-date", "20260101T000000Z" }
	};
	struct sigv4_request q = suite("POST", headers, 3);

	sigv4_time(q.time, UINT64_C(1767225600) * NSEC_PER_SEC);
	CHECK_STR(q.time, "20260101T000000Z");
	q.service = "ec2";
	q.secret = "SECRETEXAMPLEKEY";
	q.body = body;
	q.body_len = sizeof(body) - 1;
	sign(q, "c0edf9d0ddd4c3e312099ee5a701df3d692e45becbd8c425bf7c0ec1e8879979", NULL);
}

UNIT_MAIN({ "of the suite", of_the_suite }, { "of the manual", of_the_manual },
	  { "of ec2", of_ec2 })
