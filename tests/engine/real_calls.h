#pragma once

// The system's own calls, behind those that simulated_calls.cc puts in their place (-Wl,--wrap).

#include <poll.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include <cstddef>
#include <ctime>

extern "C" {
ssize_t __real_write(int fd, const void* bytes, std::size_t size);
ssize_t __real_send(int socket, const void* bytes, std::size_t size, int flags);
int __real_epoll_ctl(int epoll, int operation, int fd, epoll_event* event);
int __real_epoll_wait(int epoll, epoll_event* events, int most, int timeout);
int __real_poll(pollfd* fds, nfds_t count, int timeout);
}
