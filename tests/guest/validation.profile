# SPDX-License-Identifier: Apache-2.0
# The profile that OCI runtime-tools ask for: it need only be there.
abi <abi/3.0>,
profile acme_secure_profile flags=(attach_disconnected) {
  file,
  signal,
  unix,
  network,
  capability,
}
