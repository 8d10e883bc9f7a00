/* A library to preload: calls on files below one folder fail, as those on a file server do that is away.
     FAILING_BELOW=PATH   a folder or a file, absolute, as the system resolves it
     FAILING_AT=N         the Nth call of a process fails, from 0; FAILING_FOR_GOOD=1: and all after it
     FAILING_ONE_IN=N     one call in N fails at random; FAILING_SEED=N draws the same ones again; 0: none
     FAILING_WHILE=FILE   all calls fail for as long as this file, which lies elsewhere, exists
     FAILING_WITH=ERRNO   instead of EIO, ESTALE, EMFILE and ENOMEM by turns
     FAILING_CALLS=WORDS  only these count, of: look open close list read write sync rename make remove lock room
     FAILING_COUNT=FILE   gets the number of calls when the process ends
   A call that fails does nothing else, but for close(). Calls that libc makes inside itself do not pass here, but for fopen. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long calls;

static long number(const char* name, long otherwise) {
  const char* value = getenv(name);
  return value ? atol(value) : otherwise;
}

/* Of a call. */
static unsigned random_number(long call) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  unsigned state = (unsigned)(number("FAILING_SEED", now.tv_nsec) * 7919 + getpid() * 104729L + call * 15485863L);
  rand_r(&state);
  return (unsigned)rand_r(&state);
}

static int is_below(const char* path) {
  const char* folder = getenv("FAILING_BELOW");
  const size_t length = folder ? strlen(folder) : 0;
  return length > 0 && strncmp(path, folder, length) == 0 && (path[length] == 0 || path[length] == '/');
}

static int resolve(int directory, const char* path, char* full, size_t bytes) {
  char place[4096], link[64];
  if (path && path[0] == '/') return snprintf(full, bytes, "%s", path);
  if (directory == AT_FDCWD) {
    if (!getcwd(place, sizeof place)) return 0;
  } else {
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    const ssize_t length = readlink(link, place, sizeof place - 1);
    if (length < 0) return 0;
    place[length] = 0;
  }
  return path && path[0] ? snprintf(full, bytes, "%s/%s", place, path) : snprintf(full, bytes, "%s", place);
}

static int fails(const char* kind, int directory, const char* path) {
  static const int reasons[] = {EIO, ESTALE, EMFILE, ENOMEM};
  char full[8192];
  const int before = errno;
  const char *only = getenv("FAILING_CALLS"), *on = getenv("FAILING_WHILE");
  const int counts = (!only || strstr(only, kind)) && resolve(directory, path, full, sizeof full) && is_below(full);
  errno = before;
  if (!counts) return 0;
  const long call = __sync_fetch_and_add(&calls, 1), at = number("FAILING_AT", -1), one_in = number("FAILING_ONE_IN", 0);
  const unsigned drawn = random_number(call);
  const int fail = (at >= 0 && (call == at || (call > at && number("FAILING_FOR_GOOD", 0)))) || (one_in > 0 && drawn % one_in == 0) ||
                   (on && syscall(SYS_faccessat, AT_FDCWD, on, F_OK) == 0);
  errno = fail ? (int)number("FAILING_WITH", reasons[drawn / 256 % 4]) : before;
  return fail;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((destructor)) static void tell(void) {
  const char* path = getenv("FAILING_COUNT");
  FILE* file = path && calls > 0 ? NEXT(fopen)(path, "w") : NULL;  /* MPI's helpers make none */
  if (!file) return;
  fprintf(file, "%ld\n", calls);
  fclose(file);
}

#define OPENS(name)                                                 \
  int name(const char* path, int flags, ...) {                      \
    va_list more;                                                   \
    va_start(more, flags);                                          \
    const mode_t mode = va_arg(more, mode_t);                       \
    va_end(more);                                                   \
    return fails("open", AT_FDCWD, path) ? -1 : NEXT(name)(path, flags, mode); \
  }
OPENS(open)
OPENS(open64)
#define OPENS_AT(name)                                              \
  int name(int directory, const char* path, int flags, ...) {       \
    va_list more;                                                   \
    va_start(more, flags);                                          \
    const mode_t mode = va_arg(more, mode_t);                       \
    va_end(more);                                                   \
    return fails("open", directory, path) ? -1 : NEXT(name)(directory, path, flags, mode); \
  }
OPENS_AT(openat)
OPENS_AT(openat64)
FILE* fopen(const char* path, const char* mode) { return fails("open", AT_FDCWD, path) ? NULL : NEXT(fopen)(path, mode); }
FILE* fopen64(const char* path, const char* mode) { return fails("open", AT_FDCWD, path) ? NULL : NEXT(fopen64)(path, mode); }

DIR* opendir(const char* path) { return fails("list", AT_FDCWD, path) ? NULL : NEXT(opendir)(path); }
DIR* fdopendir(int file) { return fails("list", file, NULL) ? NULL : NEXT(fdopendir)(file); }
struct dirent* readdir(DIR* list) { return fails("list", dirfd(list), NULL) ? NULL : NEXT(readdir)(list); }
struct dirent64* readdir64(DIR* list) { return fails("list", dirfd(list), NULL) ? NULL : NEXT(readdir64)(list); }

#define LOOKS(name, type) \
  int name(const char* path, type* to) { return fails("look", AT_FDCWD, path) ? -1 : NEXT(name)(path, to); }
LOOKS(stat, struct stat)
LOOKS(lstat, struct stat)
LOOKS(stat64, struct stat64)
LOOKS(lstat64, struct stat64)
#define LOOKS_AT(name, type)                                              \
  int name(int directory, const char* path, type* to, int flags) {        \
    return fails("look", directory, path) ? -1 : NEXT(name)(directory, path, to, flags); \
  }
LOOKS_AT(fstatat, struct stat)
LOOKS_AT(fstatat64, struct stat64)
int statx(int directory, const char* path, int flags, unsigned mask, struct statx* to) {
  return fails("look", directory, path) ? -1 : NEXT(statx)(directory, path, flags, mask, to);
}
int fstat(int file, struct stat* to) { return fails("look", file, NULL) ? -1 : NEXT(fstat)(file, to); }
int fstat64(int file, struct stat64* to) { return fails("look", file, NULL) ? -1 : NEXT(fstat64)(file, to); }
int access(const char* path, int mode) { return fails("look", AT_FDCWD, path) ? -1 : NEXT(access)(path, mode); }

ssize_t read(int file, void* to, size_t bytes) { return fails("read", file, NULL) ? -1 : NEXT(read)(file, to, bytes); }
ssize_t pread(int file, void* to, size_t bytes, off_t at) { return fails("read", file, NULL) ? -1 : NEXT(pread)(file, to, bytes, at); }
ssize_t pread64(int file, void* to, size_t bytes, off64_t at) { return fails("read", file, NULL) ? -1 : NEXT(pread64)(file, to, bytes, at); }
ssize_t write(int file, const void* from, size_t bytes) { return fails("write", file, NULL) ? -1 : NEXT(write)(file, from, bytes); }
ssize_t pwrite(int file, const void* from, size_t bytes, off_t at) { return fails("write", file, NULL) ? -1 : NEXT(pwrite)(file, from, bytes, at); }
ssize_t pwrite64(int file, const void* from, size_t bytes, off64_t at) { return fails("write", file, NULL) ? -1 : NEXT(pwrite64)(file, from, bytes, at); }
int ftruncate(int file, off_t bytes) { return fails("write", file, NULL) ? -1 : NEXT(ftruncate)(file, bytes); }
int ftruncate64(int file, off64_t bytes) { return fails("write", file, NULL) ? -1 : NEXT(ftruncate64)(file, bytes); }
int fsync(int file) { return fails("sync", file, NULL) ? -1 : NEXT(fsync)(file); }
int flock(int file, int operation) { return fails("lock", file, NULL) ? -1 : NEXT(flock)(file, operation); }
int close(int file) {
  const int fail = fails("close", file, NULL), reason = errno, result = NEXT(close)(file);  /* closed all the same */
  return fail ? errno = reason, -1 : result;
}

#define ROOM(name, type) \
  int name(const char* path, struct type* to) { return fails("room", AT_FDCWD, path) ? -1 : NEXT(name)(path, to); }
ROOM(statfs, statfs)
ROOM(statfs64, statfs64)
ROOM(statvfs, statvfs)
ROOM(statvfs64, statvfs64)

int rename(const char* from, const char* to) { return fails("rename", AT_FDCWD, from) ? -1 : NEXT(rename)(from, to); }
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  return fails("rename", from_at, from) ? -1 : NEXT(renameat2)(from_at, from, to_at, to, flags);
}
int mkdir(const char* path, mode_t mode) { return fails("make", AT_FDCWD, path) ? -1 : NEXT(mkdir)(path, mode); }
int unlink(const char* path) { return fails("remove", AT_FDCWD, path) ? -1 : NEXT(unlink)(path); }
int rmdir(const char* path) { return fails("remove", AT_FDCWD, path) ? -1 : NEXT(rmdir)(path); }
int remove(const char* path) { return fails("remove", AT_FDCWD, path) ? -1 : NEXT(remove)(path); }
int unlinkat(int directory, const char* path, int flags) { return fails("remove", directory, path) ? -1 : NEXT(unlinkat)(directory, path, flags); }
