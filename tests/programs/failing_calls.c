// Preloaded into a program: system calls on paths that hold $FAIL_NAME, or on their files, fail.
//   FAIL_AT=N        the Nth of them, from 0 (none below 0); FAIL_FOR_GOOD=1: and all after it
//   FAIL_ONE_IN=N    each with this chance, by FAIL_SEED
//   FAIL_WITH=ERRNO  FAIL_COUNT=FILE: gets the number of calls when the program ends
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
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define MOST_FILES 4096

static char watched[MOST_FILES];
static long calls;

static long number(const char* name, long otherwise) {
  const char* value = getenv(name);
  return value ? atol(value) : otherwise;
}

static int is_watched_path(const char* path) {
  const char* name = getenv("FAIL_NAME");
  return name && path && strstr(path, name);
}

static int is_watched(int file) { return file >= 0 && file < MOST_FILES && watched[file]; }

static int watch(int file, const char* path) {
  if (file >= 0 && file < MOST_FILES) watched[file] = is_watched_path(path);
  return file;
}

// Whether this call fails.
static int fails(int concerns) {
  if (!concerns) return 0;
  const long call = __sync_fetch_and_add(&calls, 1), at = number("FAIL_AT", -1), one_in = number("FAIL_ONE_IN", 0);
  int fail = at >= 0 && (call == at || (call > at && number("FAIL_FOR_GOOD", 0)));
  if (one_in > 0) {
    unsigned seed = (unsigned)(number("FAIL_SEED", 1) * 7919 + getpid() * 104729 + call * 15485863);
    fail = rand_r(&seed) % one_in == 0;
  }
  if (fail) errno = (int)number("FAIL_WITH", EIO);
  return fail;
}

__attribute__((destructor)) static void tell(void) {
  const char* path = getenv("FAIL_COUNT");
  FILE* file = path && calls > 0 ? REAL(fopen)(path, "w") : NULL;  // MPI's helpers make none
  if (!file) return;
  fprintf(file, "%ld\n", calls);
  fclose(file);
}

static mode_t mode_of(int flags, va_list more) { return flags & O_CREAT ? va_arg(more, mode_t) : 0; }

#define OPEN(name)                                                           \
  int name(const char* path, int flags, ...) {                               \
    va_list more;                                                            \
    va_start(more, flags);                                                   \
    const mode_t mode = mode_of(flags, more);                                \
    va_end(more);                                                            \
    return fails(is_watched_path(path)) ? -1 : watch(REAL(name)(path, flags, mode), path); \
  }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                        \
  FILE* name(const char* path, const char* mode) {                         \
    return fails(is_watched_path(path)) ? NULL : REAL(name)(path, mode);   \
  }
FOPEN(fopen)
FOPEN(fopen64)

#define ON_PATH(name, parameters, arguments) \
  int name parameters { return fails(is_watched_path(path)) ? -1 : REAL(name) arguments; }
ON_PATH(stat, (const char* path, struct stat* to), (path, to))
ON_PATH(lstat, (const char* path, struct stat* to), (path, to))
ON_PATH(stat64, (const char* path, struct stat64* to), (path, to))
ON_PATH(lstat64, (const char* path, struct stat64* to), (path, to))
ON_PATH(mkdir, (const char* path, mode_t mode), (path, mode))
ON_PATH(rmdir, (const char* path), (path))
ON_PATH(unlink, (const char* path), (path))
ON_PATH(remove, (const char* path), (path))
ON_PATH(access, (const char* path, int mode), (path, mode))
ON_PATH(rename, (const char* path, const char* to), (path, to))
ON_PATH(renameat2, (int from, const char* path, int other, const char* to, unsigned flags), (from, path, other, to, flags))

#define ON_FILE(type, name, parameters, arguments) \
  type name parameters { return fails(is_watched(file)) ? -1 : REAL(name) arguments; }
ON_FILE(int, fstat, (int file, struct stat* to), (file, to))
ON_FILE(int, fstat64, (int file, struct stat64* to), (file, to))
ON_FILE(ssize_t, read, (int file, void* to, size_t bytes), (file, to, bytes))
ON_FILE(ssize_t, pread, (int file, void* to, size_t bytes, off_t at), (file, to, bytes, at))
ON_FILE(ssize_t, pread64, (int file, void* to, size_t bytes, off64_t at), (file, to, bytes, at))
ON_FILE(ssize_t, write, (int file, const void* from, size_t bytes), (file, from, bytes))
ON_FILE(ssize_t, pwrite, (int file, const void* from, size_t bytes, off_t at), (file, from, bytes, at))
ON_FILE(ssize_t, pwrite64, (int file, const void* from, size_t bytes, off64_t at), (file, from, bytes, at))
ON_FILE(int, fsync, (int file), (file))
ON_FILE(int, ftruncate, (int file, off_t bytes), (file, bytes))
ON_FILE(int, ftruncate64, (int file, off64_t bytes), (file, bytes))
ON_FILE(int, flock, (int file, int operation), (file, operation))

int close(int file) {
  const int fail = fails(is_watched(file));
  if (file >= 0 && file < MOST_FILES) watched[file] = 0;
  const int reason = errno, result = REAL(close)(file);  // closed all the same
  if (!fail) return result;
  errno = reason;
  return -1;
}

DIR* opendir(const char* path) {
  if (fails(is_watched_path(path))) return NULL;
  DIR* directory = REAL(opendir)(path);
  if (directory) watch(dirfd(directory), path);
  return directory;
}
struct dirent* readdir(DIR* directory) { return fails(is_watched(dirfd(directory))) ? NULL : REAL(readdir)(directory); }
struct dirent64* readdir64(DIR* directory) {
  return fails(is_watched(dirfd(directory))) ? NULL : REAL(readdir64)(directory);
}
