/* Loaded into a server, it leaks as a careless one would: a kilobyte with each connection, and a descriptor with
 * every hundredth. A soak that does not find this one finds nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Written and never read. Where nothing holds what was allocated, the compiler leaves the allocation out. */
static void* volatile leaked_last;

enum { leaked_bytes = 1024, connections_per_descriptor = 100 };

int accept4(int listener, struct sockaddr* address, socklen_t* length, int flags) {
    static int (*real)(int, struct sockaddr*, socklen_t*, int);
    static int connections;
    if (!real) {
        *(void**)&real = dlsym(RTLD_NEXT, "accept4");
    }
    const int made = real(listener, address, length, flags);
    if (made >= 0) {
        void* const leaked = malloc(leaked_bytes);
        if (leaked) {
            memset(leaked, 1, leaked_bytes);
            leaked_last = leaked;
        }
        if (++connections % connections_per_descriptor == 0) {
            (void)!dup(STDIN_FILENO);
        }
    }
    return made;
}
