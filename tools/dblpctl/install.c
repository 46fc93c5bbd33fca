// SPDX-License-Identifier: GPL-2.0-only
/*
 * dblpctl doctor: the loaded module and the installed modules.
 */

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "doctor.h"
#include "finding.h"
#include "version.h"

#define VERSION_LEN	64
#define RELOAD		"sudo modprobe -r dblp && sudo modprobe dblp"

/* Does the kernel or a loaded module have this function? */
static bool kernel_has(const char *function)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], name[256];
	bool there = false;

	if (!f)
		return false;
	while (!there && fgets(line, sizeof(line), f))
		there = sscanf(line, "%*s %*s %255s", name) == 1 &&
			!strcmp(name, function);
	fclose(f);
	return there;
}

/* Command that enrols the key of DKMS: on Ubuntu DKMS signs with the key of shim-signed */
static const char *enrol_command(void)
{
	if (access("/var/lib/dkms/mok.pub", F_OK) &&
	    !access("/var/lib/shim-signed/mok/MOK.der", F_OK))
		return "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der && sudo reboot";
	return "sudo mokutil --import /var/lib/dkms/mok.pub && sudo reboot";
}

/* Report whether the kernel requires signed modules */
static void check_secure_boot(bool loaded)
{
	static const char check[] = "secure-boot";
	/* EFI variable: four bytes of attributes, then 0 or 1 */
	char on[5] = "", enforce[4] = "";
	FILE *f;

	f = fopen("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
		  "re");
	if (f && fread(on, 1, sizeof(on), f) != sizeof(on))
		on[4] = 0;
	if (f)
		fclose(f);
	read_line("/sys/module/module/parameters/sig_enforce", enforce,
		  sizeof(enforce));
	if (!on[4] && *enforce != 'Y')
		return;
	if (loaded)
		doctor_says(VERDICT_OK, check, "",
			    "the kernel requires signed modules, and dblp is loaded");
	else
		doctor_says(VERDICT_NOTE, check, enrol_command(),
			    "the kernel requires modules signed by an enrolled key: enrol the key of DKMS, and choose 'Enroll MOK' at the next boot");
}

static bool is_loaded(char version[VERSION_LEN])
{
	static const char check[] = "module";

	if (access("/sys/module/dblp", F_OK)) {
		/* One function of udp_tunnel and one of ip6_udp_tunnel */
		if (!kernel_has("setup_udp_tunnel_sock") ||
		    !kernel_has("udp_sock_create6"))
			doctor_says(VERDICT_BAD, check,
				    "sudo modprobe -a udp_tunnel ip6_udp_tunnel && sudo modprobe dblp",
				    "dblp is not loaded, and needs udp_tunnel and ip6_udp_tunnel, which are not loaded either");
		else
			doctor_says(VERDICT_BAD, check, "sudo modprobe dblp",
				    "dblp is not loaded");
		return false;
	}
	if (!read_line("/sys/module/dblp/version", version, VERSION_LEN))
		strcpy(version, "of unknown version");
	if (!strcmp(version, DBLP_BUILD))
		doctor_says(VERDICT_OK, check, "",
			    "dblp and dblpctl are of version %s", version);
	else
		doctor_says(VERDICT_BAD, check, RELOAD,
			    "dblp is %s, dblpctl is %s: install both from one source",
			    version, DBLP_BUILD);
	return true;
}

/* Read the version of the module in @file; "" if that fails */
static void read_version(const char *file, char version[VERSION_LEN])
{
	char command[512], word[256];
	FILE *f;

	*version = '\0';
	shell_quote(word, sizeof(word), file);
	snprintf(command, sizeof(command),
		 "PATH=$PATH:/usr/sbin:/sbin modinfo -F version %s 2>/dev/null",
		 word);
	f = popen(command, "re");
	if (!f)
		return;
	if (fgets(version, VERSION_LEN, f))
		version[strcspn(version, "\n")] = '\0';
	pclose(f);
}

/* Compare the module in @file with @loaded, the version of the loaded module */
static void compare_installed(const char *loaded, const char *file)
{
	char version[VERSION_LEN];

	read_version(file, version);
	if (!*version || !strcmp(version, loaded))
		doctor_says(VERDICT_OK, "installed", "", "%s", file);
	else
		doctor_says(VERDICT_BAD, "installed", RELOAD,
			    "%s is %s, but %s is loaded", file, version,
			    loaded);
}

static void check_installed(const char *loaded)
{
	static const char check[] = "installed";
	struct utsname host;
	char pattern[256];
	glob_t found;

	if (uname(&host))
		return;
	/* Directories of make install, of DKMS, and of other ways to install */
	snprintf(pattern, sizeof(pattern),
		 "/lib/modules/%s/{updates,updates/dkms,extra,kernel/net/dblp}/dblp.ko*",
		 host.release);
	if (glob(pattern, GLOB_BRACE, NULL, &found))
		doctor_says(VERDICT_NOTE, check, "",
			    "dblp is not installed for this kernel (run 'make install' in its sources)");
	else if (found.gl_pathc > 1)
		doctor_says(VERDICT_BAD, check, "",
			    "modprobe may load %s or %s ('make uninstall' in the sources removes both)",
			    found.gl_pathv[0], found.gl_pathv[1]);
	else
		compare_installed(loaded, found.gl_pathv[0]);
	globfree(&found);
}

bool check_module(void)
{
	char version[VERSION_LEN];
	bool loaded = is_loaded(version);

	check_secure_boot(loaded);
	if (loaded)
		check_installed(version);
	return loaded;
}
