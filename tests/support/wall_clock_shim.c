/* Loaded before a server's libraries: its wall clock is the system's plus what a shared file says,
 * and a test can change that at any moment. All other clocks, timers and waits stay the kernel's.
 * (libfaketime is not used: it moves the absolute timers of the monotonic clock along with the wall
 * clock, so that a correct server's timers fail or come late when a test sets the clock.) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const _Atomic int64_t* shift_ns;

__attribute__((constructor)) static void open_shift(void) {
    const char* path = getenv("WALL_CLOCK_SHIFT_FILE");
    const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        return;
    }
    void* page = mmap(NULL, sizeof *shift_ns, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED) {
        shift_ns = page;
    }
}

int clock_gettime(clockid_t clock, struct timespec* now) {
    const long result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && shift_ns && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        const int64_t ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + atomic_load(shift_ns);
        now->tv_sec = (time_t)(ns / 1000000000);
        now->tv_nsec = (long)(ns % 1000000000);
    }
    return (int)result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
    (void)zone;
    struct timespec precise;
    const int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t* out) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (out) {
        *out = precise.tv_sec;
    }
    return precise.tv_sec;
}
