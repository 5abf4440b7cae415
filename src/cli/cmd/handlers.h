/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_HANDLERS_H
#define NACRE_CLI_HANDLERS_H

/* The functions of the table of commands; each file is named after its commands. */

struct args;
struct cli;

/* cmd_run.c */
int cmd_run(const struct cli *cli, const struct args *args);
int cmd_create(const struct cli *cli, const struct args *args);
int cmd_start(const struct cli *cli, const struct args *args);
/* cmd_start.c */
int cmd_pod(const struct cli *cli, const struct args *args);
int cmd_cell(const struct cli *cli, const struct args *args);
int cmd_spawn(const struct cli *cli, const struct args *args);
/* cmd_health.c */
int cmd_healthcheck_run(const struct cli *cli, const struct args *args);
/* cmd_attach.c */
int cmd_attach(const struct cli *cli, const struct args *args);
/* cmd_exec.c */
int cmd_exec(const struct cli *cli, const struct args *args);
int cmd_execute(const struct cli *cli, const struct args *args);
/* cmd_list.c */
int cmd_ps(const struct cli *cli, const struct args *args);
int cmd_inspect(const struct cli *cli, const struct args *args);
/* cmd_completion.c */
int cmd_completion(const struct cli *cli, const struct args *args);
/* cmd_copy.c */
int cmd_cp(const struct cli *cli, const struct args *args);
int cmd_export(const struct cli *cli, const struct args *args);
/* cmd_system.c */
int cmd_processes(const struct cli *cli, const struct args *args);
int cmd_prune(const struct cli *cli, const struct args *args);
int cmd_system_df(const struct cli *cli, const struct args *args);
int cmd_network_prune(const struct cli *cli, const struct args *args);
int cmd_system_prune(const struct cli *cli, const struct args *args);
/* cmd_debug.c */
int cmd_debug(const struct cli *cli, const struct args *args);

/* cmd_diff.c */
int cmd_diff(const struct cli *cli, const struct args *args);
/* cmd_stats.c */
int cmd_stats(const struct cli *cli, const struct args *args);
int cmd_top(const struct cli *cli, const struct args *args);
/* cmd_tree.c */
int cmd_tree(const struct cli *cli, const struct args *args);
/* cmd_logs.c */
int cmd_logs(const struct cli *cli, const struct args *args);
int cmd_events(const struct cli *cli, const struct args *args);
/* cmd_end.c */
int cmd_wait(const struct cli *cli, const struct args *args);
int cmd_stop(const struct cli *cli, const struct args *args);
int cmd_restart(const struct cli *cli, const struct args *args);
int cmd_kill(const struct cli *cli, const struct args *args);
int cmd_pause(const struct cli *cli, const struct args *args);
int cmd_unpause(const struct cli *cli, const struct args *args);
int cmd_update(const struct cli *cli, const struct args *args);
int cmd_rename(const struct cli *cli, const struct args *args);
int cmd_rm(const struct cli *cli, const struct args *args);
/* cmd_image.c */
int cmd_login(const struct cli *cli, const struct args *args);      /* cmd_login.c */
int cmd_logout(const struct cli *cli, const struct args *args);     /* the same */
int cmd_image_pull(const struct cli *cli, const struct args *args); /* cmd_pull.c */
int cmd_image_export(const struct cli *cli, const struct args *args);
int cmd_image_copy(const struct cli *cli, const struct args *args); /* cmd_push.c */
int cmd_image_push(const struct cli *cli, const struct args *args); /* cmd_push.c */
int cmd_image_verify(const struct cli *cli, const struct args *args);
int cmd_image_tags(const struct cli *cli, const struct args *args);
int cmd_image_import(const struct cli *cli, const struct args *args);
int cmd_image_rm(const struct cli *cli, const struct args *args);
/* cmd_image_change.c */
int cmd_image_pin(const struct cli *cli, const struct args *args);
int cmd_image_tag(const struct cli *cli, const struct args *args);
int cmd_image_unpin(const struct cli *cli, const struct args *args);
/* cmd_image_disk.c */
int cmd_image_df(const struct cli *cli, const struct args *args);
int cmd_image_prune(const struct cli *cli, const struct args *args);
/* cmd_image_list.c */
int cmd_image_ls(const struct cli *cli, const struct args *args);
/* cmd_image_show.c */
int cmd_image_history(const struct cli *cli, const struct args *args);
int cmd_image_inspect(const struct cli *cli, const struct args *args);
/* cmd_guest.c */
int cmd_guest_build(const struct cli *cli, const struct args *args);
int cmd_guest_default(const struct cli *cli, const struct args *args);
int cmd_guest_ls(const struct cli *cli, const struct args *args);
int cmd_guest_rm(const struct cli *cli, const struct args *args);
/* cmd_vm.c */
int cmd_vm_disks(const struct cli *cli, const struct args *args);
int cmd_vm_rmdisk(const struct cli *cli, const struct args *args);
int cmd_vm_run(const struct cli *cli, const struct args *args);
/* cmd_cloud.c */
int cmd_cloud_gc(const struct cli *cli, const struct args *args);
int cmd_cloud_logs(const struct cli *cli, const struct args *args);
int cmd_cloud_ls(const struct cli *cli, const struct args *args);
int cmd_cloud_rm(const struct cli *cli, const struct args *args);
int cmd_cloud_run(const struct cli *cli, const struct args *args);
int cmd_cloud_stop(const struct cli *cli, const struct args *args);
/* cmd_network.c */
int cmd_network_connect(const struct cli *cli, const struct args *args);
int cmd_network_create(const struct cli *cli, const struct args *args);
int cmd_network_disconnect(const struct cli *cli, const struct args *args);
int cmd_network_inspect(const struct cli *cli, const struct args *args);
int cmd_network_ls(const struct cli *cli, const struct args *args);
int cmd_network_rm(const struct cli *cli, const struct args *args);
int cmd_port(const struct cli *cli, const struct args *args);
/* cmd_volume.c */
int cmd_secret_create(const struct cli *cli, const struct args *args);  /* cmd_secret.c */
int cmd_secret_ls(const struct cli *cli, const struct args *args);      /* cmd_secret.c */
int cmd_secret_inspect(const struct cli *cli, const struct args *args); /* cmd_secret.c */
int cmd_secret_rm(const struct cli *cli, const struct args *args);      /* cmd_secret.c */
int cmd_volume_create(const struct cli *cli, const struct args *args);
int cmd_volume_export(const struct cli *cli, const struct args *args); /* cmd_copy.c */
int cmd_volume_import(const struct cli *cli, const struct args *args); /* the same */
int cmd_volume_inspect(const struct cli *cli, const struct args *args);
int cmd_volume_ls(const struct cli *cli, const struct args *args);
int cmd_volume_prune(const struct cli *cli, const struct args *args);
int cmd_volume_rm(const struct cli *cli, const struct args *args);
/* cmd_context.c */
int cmd_context_create(const struct cli *cli, const struct args *args);
int cmd_context_ls(const struct cli *cli, const struct args *args);
int cmd_context_rm(const struct cli *cli, const struct args *args);
int cmd_context_show(const struct cli *cli, const struct args *args);
int cmd_context_use(const struct cli *cli, const struct args *args);
/* cmd_identity.c */
int cmd_identity_ca(const struct cli *cli, const struct args *args);
int cmd_identity_issue(const struct cli *cli, const struct args *args);
int cmd_identity_ls(const struct cli *cli, const struct args *args);
int cmd_identity_revoke(const struct cli *cli, const struct args *args);
/* cmd_doctor.c */
int cmd_doctor(const struct cli *cli, const struct args *args);
/* cmd_check.c */
int cmd_check(const struct cli *cli, const struct args *args);
/* cmd_about.c */
int cmd_version(const struct cli *cli, const struct args *args);
int cmd_info(const struct cli *cli, const struct args *args);
int cmd_help(const struct cli *cli, const struct args *args);
int cmd_man(const struct cli *cli, const struct args *args);

#endif
