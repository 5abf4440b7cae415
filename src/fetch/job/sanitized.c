/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Options of the sanitizers, for a build with them: the helper runs with an empty environment, and
 * its sandbox lets no leak checker look at it from a second process.
 */

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
const char *__tsan_default_options(void);

__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
	return "detect_leaks=0:exitcode=99";
}

__attribute__((visibility("default"))) const char *__ubsan_default_options(void)
{
	return "print_stacktrace=1:halt_on_error=1";
}

__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
	return "halt_on_error=1:exitcode=98:report_thread_leaks=0";
}
