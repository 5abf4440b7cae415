/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/cmd/handlers.h"
#include "cli/cmd/pull.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/each.h"
#include "cli/table/command.h"

int cmd_image_tag(const struct cli *cli, const struct args *args)
{
	Nacre__V1__TagImageRequest request = NACRE__V1__TAG_IMAGE_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__TagImageResponse *answer = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	request.image = args->operands[0];
	request.name = args->operands[1];
	answer = client_ask_once(&cli->daemon, "/nacre.v1.ImageService/Tag", &request.base,
				 &nacre__v1__tag_image_response__descriptor, 0, &err);
	if (!answer) {
		pull_hint(&err, request.image);
		return cli_fail(&err);
	}
	if (!answer->image)
		return cli_complain("the daemon's answer has no image");
	if (cli->json)
		view_image(&j, NULL, answer->image);
	return 0;
}

static int image_pin(const struct cli *cli, const struct args *args, bool pinned)
{
	Nacre__V1__PinImageRequest request = NACRE__V1__PIN_IMAGE_REQUEST__INIT;

	request.pinned = pinned;
	return each_operand(cli, args,
			    &(struct each_call){ "/nacre.v1.ImageService/Pin", &request.base,
						 &request.image,
						 &nacre__v1__pin_image_response__descriptor });
}

int cmd_image_pin(const struct cli *cli, const struct args *args)
{
	return image_pin(cli, args, true);
}

int cmd_image_unpin(const struct cli *cli, const struct args *args)
{
	return image_pin(cli, args, false);
}
