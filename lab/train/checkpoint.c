// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"
#include "text.h"

struct checkpoint *checkpoint_new(const struct config *config, size_t size)
{
	const size_t bytes = sizeof(struct checkpoint) + 3 * size * sizeof(float);
	struct checkpoint *c = calloc(1, bytes);

	if (!c)
		return NULL;
	strcpy(c->magic, CHECKPOINT_MAGIC);
	c->bytes = bytes;
	c->config = config_saved(config);
	return c;
}

uint64_t checkpoint_digest(const struct checkpoint *c)
{
	const size_t head = offsetof(struct checkpoint, config);

	return digest((const char *)c + head, c->bytes - head);
}

static int write_all(int fd, const char *from, size_t len)
{
	while (len) {
		ssize_t n = write(fd, from, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			from += n;
			len -= n;
		}
	}
	return fsync(fd) ? -errno : 0;
}

/* Write the new name of the file to the disk, too */
static int sync_folder(const char *file)
{
	char copy[strlen(file) + 1];
	int fd, err;

	fd = open(dirname(strcpy(copy, file)), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = fsync(fd) ? -errno : 0;
	close(fd);
	return err;
}

int checkpoint_write(struct checkpoint *c, const char *file)
{
	char new[strlen(file) + sizeof(".new")];
	int fd, err;

	c->digest = checkpoint_digest(c);
	strcat(strcpy(new, file), ".new");
	fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	err = write_all(fd, (const char *)c, c->bytes);
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(new, file))
		err = -errno;
	if (err) {
		unlink(new);
		return err;
	}
	return sync_folder(file);
}

static int refuse(char *why, const char *file, const char *reason, ...)
{
	va_list args;
	int n = snprintf(why, CHECKPOINT_REASON, "%s ", file);

	va_start(args, reason);
	if (n < CHECKPOINT_REASON)
		vsnprintf(why + n, CHECKPOINT_REASON - n, reason, args);
	va_end(args);
	return -EINVAL;
}

static int check(const struct checkpoint *new, const struct checkpoint *c,
		 size_t len, const char *file, char *why)
{
	char what[CONFIG_DIFFERENCE];

	if (len < sizeof(*new) || memcmp(new->magic, c->magic, sizeof(c->magic)))
		return refuse(why, file, "is not a checkpoint of this version");
	if (new->bytes != len)
		return refuse(why, file, "is damaged: it has %zu bytes, not %llu",
			      len, (unsigned long long)new->bytes);
	if (new->digest != checkpoint_digest(new))
		return refuse(why, file, "is damaged: its digest is wrong");
	if (config_differ(&new->config, &c->config, true, what))
		return refuse(why, file, "is of another run: it %s", what);
	if (len != c->bytes)
		return refuse(why, file, "is of another model");
	return 0;
}

/* @room is 1 byte more than the size, to notice that the file has grown */
static int read_file(const char *file, char *to, size_t room, size_t *len)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (n && *len < room) {
		n = read(fd, to + *len, room - *len);
		if (n < 0)
			break;
		*len += n;
	}
	if (n < 0)
		n = -errno;
	close(fd);
	return n < 0 ? n : 0;
}

int checkpoint_read(struct checkpoint *c, const char *file,
		    char why[CHECKPOINT_REASON])
{
	struct checkpoint *new;
	struct stat st;
	size_t len = 0;
	int err;

	if (stat(file, &st)) {
		err = -errno;
		refuse(why, file, "cannot be read: %s", strerror(-err));
		return err;
	}
	new = calloc(1, st.st_size + sizeof(*new) + 1);
	err = new ? read_file(file, (char *)new, st.st_size + 1, &len) : -ENOMEM;
	if (err)
		refuse(why, file, "cannot be read: %s", strerror(-err));
	else
		err = check(new, c, len, file, why);
	if (!err)
		memcpy(c, new, len);
	free(new);
	return err;
}
