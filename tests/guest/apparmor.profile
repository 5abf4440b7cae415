# SPDX-License-Identifier: Apache-2.0
# All that a shell in a container needs, but for one file that may not be written.
abi <abi/3.0>,
profile nacre-guest flags=(attach_disconnected) {
  file,
  signal,
  unix,
  capability,
  deny /tmp/denied w,
}
