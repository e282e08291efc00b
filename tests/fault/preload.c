/* Injects faults of the disk and the clocks into one process, by LD_PRELOAD. TENURE_FAULT_FILE names
 * a file of eight 64-bit numbers; it is mapped, so the driver changes faults while the process runs.
 * Without the file the library changes nothing. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

struct faults {
  volatile int64_t sync_delay_us; /* added to the duration of each fdatasync and fsync */
  volatile int64_t sync_errno;    /* error of fdatasync and fsync; 0: none */
  volatile int64_t wall_ms;       /* added to CLOCK_REALTIME */
  volatile int64_t rate_ppm;      /* drift of all monotonic clocks; fixed at start */
  volatile int64_t write_delay_us; /* added to the duration of each pwrite */
  volatile int64_t syncs;          /* number of syncs, read by the driver */
  volatile int64_t steer_ppm;      /* NTP slew: drift of all monotonic clocks except
                                      CLOCK_MONOTONIC_RAW, and of timers; fixed at start */
  volatile int64_t unused[1];
};

static struct faults nothing;
static struct faults *faults = &nothing;
static int64_t rate_ppm;
static int64_t steered_ppm; /* rate_ppm + steer_ppm */
static int64_t began_ns[3]; /* monotonic, boot time, raw */
static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_fdatasync)(int);
static int (*real_fsync)(int);
static int (*real_timerfd_create)(int, int);
static int (*real_timerfd_settime)(int, int, const struct itimerspec *, struct itimerspec *);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);

static int64_t nanoseconds(clockid_t clock) {
  struct timespec time;
  real_clock_gettime(clock, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void find_real(void) {
  if (real_pwrite != NULL) {
    return;
  }
  real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_timerfd_create = dlsym(RTLD_NEXT, "timerfd_create");
  real_timerfd_settime = dlsym(RTLD_NEXT, "timerfd_settime");
  real_pwrite = dlsym(RTLD_NEXT, "pwrite");
}

__attribute__((constructor)) static void begin(void) {
  find_real();
  const char *path = getenv("TENURE_FAULT_FILE");
  const int file = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) {
    return;
  }
  void *mapped = mmap(NULL, sizeof(struct faults), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) {
    return;
  }
  began_ns[0] = nanoseconds(CLOCK_MONOTONIC);
  began_ns[1] = nanoseconds(CLOCK_BOOTTIME);
  began_ns[2] = nanoseconds(CLOCK_MONOTONIC_RAW);
  faults = mapped;
  rate_ppm = faults->rate_ppm;
  steered_ppm = rate_ppm + faults->steer_ppm;
}

static void wait_us(int64_t us) {
  const struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
  nanosleep(&time, NULL);
}

static int inject_sync_fault(void) {
  faults->syncs++;
  if (faults->sync_delay_us > 0) {
    wait_us(faults->sync_delay_us);
  }
  if (faults->sync_errno != 0) {
    errno = (int)faults->sync_errno;
    return -1;
  }
  return 0;
}

int fdatasync(int file) {
  find_real();
  return inject_sync_fault() != 0 ? -1 : real_fdatasync(file);
}

int fsync(int file) {
  find_real();
  return inject_sync_fault() != 0 ? -1 : real_fsync(file);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
  find_real();
  if (faults->write_delay_us > 0) {
    wait_us(faults->write_delay_us);
  }
  return real_pwrite(file, bytes, count, offset);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off_t offset) {
  return pwrite(file, bytes, count, offset);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  find_real();
  const int result = real_clock_gettime(clock, time);
  if (result != 0 || faults == &nothing) {
    return result;
  }
  int64_t add = 0;
  const int64_t now = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    add = faults->wall_ms * 1000000;
  } else if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE) {
    add = (now - began_ns[0]) / 1000000 * steered_ppm;
  } else if (clock == CLOCK_BOOTTIME) {
    add = (now - began_ns[1]) / 1000000 * steered_ppm;
  } else if (clock == CLOCK_MONOTONIC_RAW) {
    add = (now - began_ns[2]) / 1000000 * rate_ppm;
  }
  const int64_t reported = now + add;
  time->tv_sec = reported / 1000000000;
  time->tv_nsec = reported % 1000000000;
  return 0;
}

/* Timers of the kernel follow the slewed clocks. */
enum { timers_max = 4096 };
static clockid_t timer_clocks[timers_max];

int timerfd_create(int clock, int flags) {
  find_real();
  const int file = real_timerfd_create(clock, flags);
  if (file >= 0 && file < timers_max) {
    timer_clocks[file] = clock;
  }
  return file;
}

static struct timespec unsteered(struct timespec time, int64_t began) {
  const int64_t steered = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec - began;
  const int64_t real = (int64_t)((double)steered * 1e6 / (double)(1000000 + steered_ppm)) + began;
  const struct timespec out = {.tv_sec = real / 1000000000, .tv_nsec = real % 1000000000};
  return out;
}

int timerfd_settime(int file, int flags, const struct itimerspec *when, struct itimerspec *before) {
  find_real();
  const int is_off = when->it_value.tv_sec == 0 && when->it_value.tv_nsec == 0;
  if (steered_ppm == 0 || is_off || file >= timers_max || timer_clocks[file] == CLOCK_REALTIME) {
    return real_timerfd_settime(file, flags, when, before);
  }
  struct itimerspec real = *when;
  const int is_absolute = (flags & TFD_TIMER_ABSTIME) != 0;
  const int is_boot = timer_clocks[file] == CLOCK_BOOTTIME;
  real.it_value = unsteered(when->it_value, is_absolute ? began_ns[is_boot ? 1 : 0] : 0);
  if (real.it_value.tv_sec <= 0 && real.it_value.tv_nsec <= 0) {
    real.it_value.tv_sec = 0;
    real.it_value.tv_nsec = 1; /* in the past: expire at once; 0 would disarm the timer */
  }
  return real_timerfd_settime(file, flags, &real, before);
}

/* OpenSSL checks the validity of certificates with time(). */

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) {
    *out = now.tv_sec;
  }
  return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}
