# SPDX-License-Identifier: Apache-2.0
"""No field of the requests that make and change pods, containers and images is ignored in silence: each is honoured, told again, refused by its
name, or stands in the table of doc/kubernetes.md with the reason why it has no effect. A field that a later interface adds fails here first."""
import os
import re
import subprocess
import unittest

import grpc

import nacre_test

cri, cri_grpc = nacre_test.pb["cri_pb2"], nacre_test.pb["cri_pb2_grpc"]
Code = grpc.StatusCode
SECURITY = "config.linux.security_context."
ROOTS = ("RunPodSandbox", "CreateContainer", "UpdateContainerResources", "UpdatePodSandboxResources", "PullImage", "ImageStatus", "ListImages",
         "RemoveImage")
# What other tests of this folder set, and look at what the kernel or the answer says of it.
HONOURED = {
    "RunPodSandboxRequest": "config runtime_handler", "CreateContainerRequest": "pod_sandbox_id config",
    "PodSandboxConfig": "metadata hostname log_directory dns_config port_mappings labels annotations linux",
    "PodSandboxMetadata": "name uid namespace attempt", "DNSConfig": "servers searches options",
    "PortMapping": "protocol container_port host_port host_ip",
    "LinuxPodSandboxConfig": "cgroup_parent security_context sysctls overhead resources",
    "LinuxSandboxSecurityContext": "namespace_options run_as_group privileged",
    "NamespaceOption": "network pid ipc target_id userns_options", "UserNamespace": "mode uids gids", "IDMapping": "host_id container_id length",
    "ContainerConfig": "metadata image command args working_dir envs mounts devices labels annotations log_path stdin stdin_once tty linux "
                       "CDI_devices stop_signal",
    "ContainerMetadata": "name attempt", "KeyValue": "key value", "ImageSpec": "image runtime_handler annotations user_specified_image",
    "Mount": "container_path host_path readonly propagation uidMappings gidMappings recursive_read_only image image_sub_path mount_options",
    "Device": "container_path host_path permissions", "CDIDevice": "name", "LinuxContainerConfig": "resources security_context",
    "LinuxContainerResources": "cpu_period cpu_quota cpu_shares memory_limit_in_bytes oom_score_adj cpuset_cpus cpuset_mems hugepage_limits unified "
                               "memory_swap_limit_in_bytes",
    "HugepageLimit": "page_size limit",
    "LinuxContainerSecurityContext": "capabilities privileged namespace_options run_as_user run_as_group run_as_username readonly_rootfs "
                                     "supplemental_groups supplemental_groups_policy no_new_privs masked_paths readonly_paths seccomp "
                                     "seccomp_profile_path",
    "Capability": "add_capabilities drop_capabilities", "SecurityProfile": "profile_type localhost_ref", "Int64Value": "value",
    "UpdateContainerResourcesRequest": "container_id linux", "UpdatePodSandboxResourcesRequest": "pod_sandbox_id overhead resources",
    "PullImageRequest": "image auth", "AuthConfig": "username password auth server_address identity_token registry_token",
    "ImageStatusRequest": "image verbose", "ListImagesRequest": "filter", "ImageFilter": "image", "RemoveImageRequest": "image",
}
# Each is set by a case of REFUSED below.
REFUSED_FIELDS = {"LinuxSandboxSecurityContext.selinux_options", "LinuxContainerSecurityContext.selinux_options",
                  "LinuxContainerSecurityContext.apparmor", "LinuxContainerSecurityContext.apparmor_profile", "Capability.add_ambient_capabilities",
                  "SELinuxOption.user", "SELinuxOption.role", "SELinuxOption.type", "SELinuxOption.level"}


def fields():
    """{"Mount.readonly", …}: of all messages that the requests are made of, without the entries of maps."""
    found, seen, left = set(), set(), [cri.DESCRIPTOR.message_types_by_name[r + "Request"] for r in ROOTS]
    while left:
        m = left.pop()
        if m.full_name in seen:
            continue
        seen.add(m.full_name)
        for f in m.fields:
            found.add(f"{m.name}.{f.name}")
            if f.message_type and not f.message_type.GetOptions().map_entry:
                left.append(f.message_type)
    return found


def without_effect():
    """The rows of the table in doc/kubernetes.md."""
    with open(os.path.join(nacre_test.ROOT, "doc", "kubernetes.md"), encoding="utf-8") as f:
        text = f.read().partition("| without effect |")[2].partition("\n\n")[0]
    return {f"{message}.{field}" for names in re.findall(r"^\| (`.*?) \|", text, re.M)
            for message, several in re.findall(r"`(\w+)\.([\w, ]+)`", names) for field in several.split(", ")}


class Fields(nacre_test.NodeTest):
    CONFIG = "network:\n  default: default\ncri:\n  network: builtin\n"

    @classmethod
    def prepare(cls):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        cls.node.cli("run", "-d", "--name", "first", "busybox", "sleep", "1000")
        cls.node.clear()

    def setUp(self):
        self.api = cri_grpc.RuntimeServiceStub(self.node.channel)
        self.images = cri_grpc.ImageServiceStub(self.node.channel)
        self.addCleanup(self.node.clear)

    def sandbox(self, security=None, **more):
        linux = cri.LinuxPodSandboxConfig(security_context=cri.LinuxSandboxSecurityContext(**security or {}))
        config = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="pod", uid="1", namespace="tests"), hostname="pod", linux=linux, **more)
        return self.api.RunPodSandbox(cri.RunPodSandboxRequest(config=config)).pod_sandbox_id

    def container(self, pod, security=None, resources=None, sandbox_config=None, name="one", **more):
        linux = cri.LinuxContainerConfig(security_context=security and cri.LinuxContainerSecurityContext(**security),
                                         resources=resources and cri.LinuxContainerResources(**resources))
        config = cri.ContainerConfig(**{"metadata": cri.ContainerMetadata(name=name), "image": cri.ImageSpec(image="busybox"),
                                        "command": ["sleep", "1000"], "linux": linux, **more})
        return self.api.CreateContainer(cri.CreateContainerRequest(pod_sandbox_id=pod, config=config, sandbox_config=sandbox_config)).container_id

    def assertRefused(self, code, field, call):
        said = self.assertFails(code, call)
        self.assertTrue(said.startswith(field + ": "), said)

    def test_every_field_has_a_class(self):
        honoured = {f"{message}.{field}" for message, several in HONOURED.items() for field in several.split()}
        none = without_effect()
        self.assertEqual([], sorted(fields() - honoured - REFUSED_FIELDS - none), "fields of which nobody says what becomes of them")
        self.assertEqual([], sorted((honoured | REFUSED_FIELDS | none) - fields()), "fields that there are not")
        self.assertEqual([], sorted((honoured & none) | (honoured & REFUSED_FIELDS) | (REFUSED_FIELDS & none)))

    def test_refused_fields_of_sandboxes(self):
        for code, field, call in (
                *((Code.UNIMPLEMENTED, SECURITY + "selinux_options", lambda part=part: self.sandbox({"selinux_options": cri.SELinuxOption(**{part: "x"})}))
                  for part in ("user", "role", "type", "level")),
                (Code.INVALID_ARGUMENT, SECURITY + "namespace_options.target_id",
                 lambda: self.sandbox({"namespace_options": cri.NamespaceOption(pid=cri.CONTAINER, target_id="x")})),
                (Code.INVALID_ARGUMENT, "config.port_mappings[0]", lambda: self.sandbox(port_mappings=[cri.PortMapping(protocol=7, host_port=8080)]))):
            self.assertRefused(code, field, call)
        self.assertEqual([], list(self.api.ListPodSandbox(cri.ListPodSandboxRequest()).items))

    def test_refused_fields_of_containers(self):
        pod = self.sandbox()
        runtime_default, unknown = cri.SecurityProfile(localhost_ref="/x"), cri.SecurityProfile(profile_type=7)
        localhost = cri.SecurityProfile(profile_type=cri.SecurityProfile.Localhost, localhost_ref="/x")
        mapped = [cri.IDMapping(host_id=65536, length=65536)]
        image = {"container_path": "/x", "readonly": True}
        spaces = lambda **kwargs: {"namespace_options": cri.NamespaceOption(**{"pid": cri.CONTAINER, **kwargs})}
        for code, field, kwargs in (
                *((Code.UNIMPLEMENTED, SECURITY + "selinux_options", {"security": {"selinux_options": cri.SELinuxOption(**{part: "x"})}})
                  for part in ("user", "role", "type", "level")),
                (Code.UNIMPLEMENTED, SECURITY + "apparmor", {"security": {"apparmor": localhost}}),
                (Code.UNIMPLEMENTED, SECURITY + "apparmor_profile", {"security": {"apparmor_profile": "localhost/x"}}),
                (Code.UNIMPLEMENTED, SECURITY + "capabilities.add_ambient_capabilities",
                 {"security": {"capabilities": cri.Capability(add_ambient_capabilities=["CHOWN"])}}),
                (Code.INVALID_ARGUMENT, SECURITY + "seccomp.profile_type", {"security": {"seccomp": unknown}}),
                (Code.INVALID_ARGUMENT, SECURITY + "seccomp.localhost_ref", {"security": {"seccomp": runtime_default}}),
                (Code.INVALID_ARGUMENT, SECURITY + "apparmor.profile_type", {"security": {"apparmor": unknown}}),
                (Code.INVALID_ARGUMENT, SECURITY + "apparmor.localhost_ref", {"security": {"apparmor": runtime_default}}),
                (Code.INVALID_ARGUMENT, SECURITY + "supplemental_groups_policy", {"security": {"supplemental_groups_policy": 7}}),
                (Code.INVALID_ARGUMENT, SECURITY + "namespace_options.target_id", {"security": spaces(target_id="x")}),
                (Code.INVALID_ARGUMENT, SECURITY + "namespace_options.network", {"security": spaces(network=cri.NODE)}),
                (Code.INVALID_ARGUMENT, SECURITY + "namespace_options.ipc", {"security": spaces(ipc=cri.NODE)}),
                (Code.INVALID_ARGUMENT, SECURITY + "namespace_options.pid", {"security": spaces(pid=cri.NODE)}),
                (Code.INVALID_ARGUMENT, SECURITY + "namespace_options.userns_options",
                 {"security": spaces(userns_options=cri.UserNamespace(mode=cri.POD, uids=mapped, gids=mapped))}),
                (Code.INVALID_ARGUMENT, "config.image.runtime_handler", {"image": cri.ImageSpec(image="busybox", runtime_handler="gone")}),
                (Code.INVALID_ARGUMENT, "config.mounts[0].image.runtime_handler",
                 {"mounts": [cri.Mount(image=cri.ImageSpec(image="busybox", runtime_handler="gone"), **image)]}),
                (Code.INVALID_ARGUMENT, "config.mounts[0].propagation",
                 {"mounts": [cri.Mount(image=cri.ImageSpec(image="busybox"), propagation=cri.PROPAGATION_HOST_TO_CONTAINER, **image)]})):
            self.assertRefused(code, field, lambda kwargs=kwargs: self.container(pod, **kwargs))
        self.assertEqual([], list(self.api.ListContainers(cri.ListContainersRequest()).containers))

    def test_a_sandbox_with_such_namespaces_takes_them(self):
        spaces = cri.NamespaceOption(pid=cri.NODE, network=cri.NODE, ipc=cri.NODE)
        self.container(self.sandbox({"namespace_options": spaces}), {"namespace_options": spaces})

    def test_refused_fields_of_images(self):
        gone = cri.ImageSpec(image="busybox", runtime_handler="gone")
        for field, call in (("image.runtime_handler", lambda: self.images.ImageStatus(cri.ImageStatusRequest(image=gone))),
                            ("image.runtime_handler", lambda: self.images.RemoveImage(cri.RemoveImageRequest(image=gone))),
                            ("image.runtime_handler", lambda: self.images.PullImage(cri.PullImageRequest(image=gone))),
                            ("filter.image.runtime_handler",
                             lambda: self.images.ListImages(cri.ListImagesRequest(filter=cri.ImageFilter(image=gone))))):
            self.assertRefused(Code.INVALID_ARGUMENT, field, call)
        self.assertTrue(self.images.ImageStatus(cri.ImageStatusRequest(image=cri.ImageSpec(image="busybox", runtime_handler="vm"))).image.id)

    def test_fields_without_effect_are_taken(self):
        """As the table says: what a kubelet sends of these starts a pod all the same."""
        other = cri.PodSandboxConfig(metadata=cri.PodSandboxMetadata(name="other", uid="2", namespace="tests"))
        pod = self.sandbox({"run_as_user": cri.Int64Value(value=65535), "readonly_rootfs": True, "supplemental_groups": [1],
                            "supplemental_groups_policy": cri.Strict, "seccomp_profile_path": "localhost/x",
                            "seccomp": cri.SecurityProfile(profile_type=cri.SecurityProfile.Localhost, localhost_ref="/x"),
                            "apparmor": cri.SecurityProfile(profile_type=cri.SecurityProfile.Localhost, localhost_ref="x")})
        one = self.container(pod, sandbox_config=other, image=cri.ImageSpec(image="busybox", image_ref="x"),
                             mounts=[cri.Mount(container_path="/x", host_path="/etc", readonly=True, selinux_relabel=True)])
        self.api.StartContainer(cri.StartContainerRequest(container_id=one))
        self.api.UpdateContainerResources(cri.UpdateContainerResourcesRequest(container_id=one, annotations={"a": "b"},
                                                                              linux=cri.LinuxContainerResources(oom_score_adj=7)))


if __name__ == "__main__":
    unittest.main()
