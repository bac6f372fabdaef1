/* Swift does not import statx, which GNU libc declares only with _GNU_SOURCE, nor the request of FICLONE. */
#include <sys/ioctl.h>
#include <unistd.h>
#if __has_include(<asm/unistd.h>) && __has_include(<linux/stat.h>)
#include <asm/unistd.h>
#include <linux/stat.h>
#endif

/* The number of names of an open file; -1 if it is unknown. Does not read the file's times, as fstat does. */
static inline long statx_link_count(int descriptor) {
#if defined(STATX_NLINK) && defined(__NR_statx)
    struct statx status;
    const int empty_path = 0x1000; /* AT_EMPTY_PATH */
    if (syscall(__NR_statx, descriptor, "", empty_path, STATX_NLINK, &status) == 0
        && (status.stx_mask & STATX_NLINK)) {
        return status.stx_nlink;
    }
#endif
    return -1;
}

/* The creation time of an open file in nanoseconds since 1970; -1 if it is unknown. */
static inline long long statx_birth_time(int descriptor) {
#if defined(STATX_BTIME) && defined(__NR_statx)
    struct statx status;
    const int empty_path = 0x1000; /* AT_EMPTY_PATH */
    if (syscall(__NR_statx, descriptor, "", empty_path, STATX_BTIME, &status) == 0
        && (status.stx_mask & STATX_BTIME)) {
        return status.stx_btime.tv_sec * 1000000000LL + status.stx_btime.tv_nsec;
    }
#endif
    return -1;
}

/* Makes an empty file share the blocks of another one; -1 if the file system cannot. */
static inline int clone_file(int destination, int source) {
    const unsigned long ficlone = _IOW(0x94, 9, int);
    return ioctl(destination, ficlone, source);
}
