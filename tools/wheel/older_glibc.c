/* What Debian 12's static libraries (libstdc++, yaml-cpp) ask of glibc that glibc 2.31 does not have. Linked into
   each program and library of a wheel, and seen by nobody else. */
#include <stdint.h>
#include <sys/random.h>

#define OWN __attribute__((visibility("hidden")))

uint32_t arc4random(void);
extern char __libc_single_threaded;

/* glibc 2.32. "There may be threads" is always right: counters are then changed by atomic instructions. */
OWN char __libc_single_threaded = 0;

/* glibc 2.36. For std::random_device. A request as short as this one is never cut short once the system's
   generator is ready, and getrandom waits for that. */
OWN uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) continue;
  return value;
}
