// The part of the C library that the libraries call, with the types and numbers of Apple's systems.

#pragma once
#include <stddef.h>
#include <stdint.h>

#pragma clang assume_nonnull begin

typedef int errno_t;
typedef long time_t;
typedef long ssize_t;
typedef long long off_t;
typedef uint16_t mode_t;
typedef uint16_t nlink_t;
typedef int32_t dev_t;
typedef uint64_t ino_t;

char *_Null_unspecified strerror(int code);
char *_Null_unspecified getenv(const char *name);
errno_t memset_s(
    void *_Null_unspecified memory, size_t size, int byte, size_t count);

#define EPERM 1
#define ENOENT 2
#define EINTR 4
#define ENXIO 6
#define EBADF 9
#define EACCES 13
#define EEXIST 17
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define ENOSPC 28
#define EROFS 30
#define EAGAIN 35
#define EWOULDBLOCK EAGAIN
#define ENOTSUP 45
#define EADDRINUSE 48
#define ECONNREFUSED 61
#define ELOOP 62
#define EDQUOT 69
#define ENOLCK 77
#define ENOSYS 78
#define EOPNOTSUPP 102

// stdio.h and pthread.h, for swift-log
typedef struct _opaque_pthread_mutex_t {
    long signature;
} pthread_mutex_t;
typedef struct _opaque_pthread_rwlock_t {
    long signature;
} pthread_rwlock_t;
typedef struct __sFILE {
    int _file;
} FILE;
int fflush(FILE *_Nullable file);
void flockfile(FILE *_Null_unspecified file);
void funlockfile(FILE *_Null_unspecified file);
size_t fwrite(
    const void *_Null_unspecified bytes, size_t size, size_t count, FILE *_Null_unspecified file);

// sched.h, string.h, uuid/uuid.h
int sched_yield(void);
void *_Null_unspecified memchr(const void *_Null_unspecified bytes, int byte, size_t count);
int memcmp(const void *_Null_unspecified one, const void *_Null_unspecified other, size_t count);
typedef unsigned char uuid_t[16];

// time.h
struct timespec {
    time_t tv_sec;
    long tv_nsec;
};
typedef enum { CLOCK_REALTIME = 0 } clockid_t;
int clock_gettime(clockid_t clock, struct timespec *_Null_unspecified time);

// fcntl.h, sys/file.h, unistd.h. open and fcntl have a variable number of arguments: see Darwin.swift.
#define O_RDONLY 0x0000
#define O_RDWR 0x0002
#define O_NONBLOCK 0x00000004
#define O_NOFOLLOW 0x00000100
#define O_CREAT 0x00000200
#define O_EXCL 0x00000800
#define O_DIRECTORY 0x00100000
#define O_CLOEXEC 0x01000000
#define AT_FDCWD -2
#define F_SETFD 2
#define F_GETFL 3
#define F_SETFL 4
#define F_PREALLOCATE 42
#define F_FULLFSYNC 51
#define FD_CLOEXEC 1
#define F_ALLOCATEALL 0x00000004
#define F_PEOFPOSMODE 3
#define LOCK_EX 0x02
#define LOCK_NB 0x04
#define LOCK_UN 0x08

typedef struct fstore {
    unsigned int fst_flags;
    int fst_posmode;
    off_t fst_offset;
    off_t fst_length;
    off_t fst_bytesalloc;
} fstore_t;

int close(int descriptor);
int flock(int descriptor, int operation);
int getpid(void);
int fsync(int descriptor);
int ftruncate(int descriptor, off_t size);
int linkat(int folder, const char *path, int new_folder, const char *new_path, int flags);
ssize_t pread(int descriptor, void *_Null_unspecified bytes, size_t count, off_t offset);
ssize_t pwrite(int descriptor, const void *_Null_unspecified bytes, size_t count, off_t offset);
int rename(const char *old, const char *new);
int rmdir(const char *path);
int unlink(const char *path);

// sys/stat.h
struct stat {
    dev_t st_dev;
    mode_t st_mode;
    nlink_t st_nlink;
    ino_t st_ino;
    struct timespec st_birthtimespec;
    off_t st_size;
};
int fstat(int descriptor, struct stat *_Null_unspecified status);
int lstat(const char *path, struct stat *_Null_unspecified status);
int stat(const char *path, struct stat *_Null_unspecified status);
int mkdir(const char *path, mode_t mode);

// sys/clonefile.h
#define CLONE_NOFOLLOW 0x0001
int clonefile(const char *path, const char *new_path, uint32_t flags);

// dirent.h
struct dirent {
    uint64_t d_ino;
    uint16_t d_reclen;
    char d_name[1024];
};
typedef struct _Directory DIR;
DIR *_Null_unspecified opendir(const char *path);
struct dirent *_Null_unspecified readdir(DIR *_Null_unspecified directory);
int closedir(DIR *_Null_unspecified directory);

// sys/socket.h, netinet/in.h, netinet/tcp.h, arpa/inet.h, poll.h
typedef uint8_t sa_family_t;
typedef uint16_t in_port_t;
typedef uint32_t in_addr_t;
typedef uint32_t socklen_t;
typedef unsigned int nfds_t;

#define AF_INET 2
#define AF_INET6 30
#define SOCK_STREAM 1
#define SOL_SOCKET 0xffff
#define SO_REUSEADDR 0x0004
#define SO_LINGER 0x0080
#define SO_REUSEPORT 0x0200
#define SO_NOSIGPIPE 0x1022
#define IPPROTO_TCP 6
#define TCP_NODELAY 0x01
#define POLLIN 0x0001
#define POLLOUT 0x0004

struct in_addr {
    in_addr_t s_addr;
};
struct in6_addr {
    uint8_t bytes[16];
};
struct sockaddr {
    uint8_t sa_len;
    sa_family_t sa_family;
    char sa_data[14];
};
struct sockaddr_in {
    uint8_t sin_len;
    sa_family_t sin_family;
    in_port_t sin_port;
    struct in_addr sin_addr;
    char sin_zero[8];
};
struct linger {
    int l_onoff;
    int l_linger;
};
struct pollfd {
    int fd;
    short events;
    short revents;
};

int socket(int domain, int kind, int protocol);
int bind(int descriptor, const struct sockaddr *_Null_unspecified address, socklen_t size);
int connect(int descriptor, const struct sockaddr *_Null_unspecified address, socklen_t size);
int listen(int descriptor, int waiting);
int accept(
    int descriptor, struct sockaddr *_Null_unspecified address, socklen_t *_Null_unspecified size);
int getsockname(
    int descriptor, struct sockaddr *_Null_unspecified address, socklen_t *_Null_unspecified size);
int setsockopt(
    int descriptor, int level, int name, const void *_Null_unspecified value, socklen_t size);
ssize_t recv(int descriptor, void *_Null_unspecified bytes, size_t count, int flags);
ssize_t send(int descriptor, const void *_Null_unspecified bytes, size_t count, int flags);
int poll(struct pollfd *_Null_unspecified ends, nfds_t count, int milliseconds);
int pipe(int *_Null_unspecified ends);
ssize_t read(int descriptor, void *_Null_unspecified bytes, size_t count);
ssize_t write(int descriptor, const void *_Null_unspecified bytes, size_t count);
int inet_aton(const char *text, struct in_addr *address);
int inet_pton(int family, const char *text, void *_Null_unspecified address);

#pragma clang assume_nonnull end
